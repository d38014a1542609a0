from __future__ import annotations

import copy
import functools
import pickle
import threading
import traceback

import anyio
import pytest
from anyio import to_thread, wait_all_tasks_blocked
from anyio.lowlevel import checkpoint

from agentcore.errors import SecretError
from agentcore.secrets import SecretRegistry


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


async def test_a_static_secret_is_had_and_masked_at_once() -> None:
    registry = SecretRegistry({"TOKEN": "hunter2!", "OTHER": "correct horse"})
    assert registry.names == ("TOKEN", "OTHER")
    assert "TOKEN" in registry
    assert "token" not in registry
    assert await registry.get("TOKEN") == "hunter2!"
    assert registry.masker.mask_text("hunter2! correct horse") == "<secret:TOKEN> <secret:OTHER>"


async def test_a_function_is_called_when_its_value_is_first_needed_and_masked_from_then_on() -> None:
    calls: list[str] = []

    async def fetch() -> str:
        await checkpoint()
        calls.append("fetch")
        return "from-a-vault"

    registry = SecretRegistry({"TOKEN": fetch})
    assert registry.masker.mask_text("from-a-vault") == "from-a-vault"
    assert calls == []
    assert await registry.get("TOKEN") == "from-a-vault"
    assert await registry.get("TOKEN") == "from-a-vault"
    assert calls == ["fetch"]
    assert registry.masker.mask_text("from-a-vault") == "<secret:TOKEN>"


async def test_a_sync_function_runs_in_a_thread() -> None:
    threads: list[int] = []

    def fetch(where: str) -> str:
        threads.append(threading.get_ident())
        return f"{where}-value"

    registry = SecretRegistry({"TOKEN": functools.partial(fetch, "keychain")})
    assert await registry.get("TOKEN") == "keychain-value"
    assert threads != [threading.get_ident()]


async def test_async_functions_are_told_however_they_are_written() -> None:
    async def fetch(value: str) -> str:
        await checkpoint()
        return value

    class Vault:
        async def __call__(self) -> str:
            return await fetch("vault-value")

    registry = SecretRegistry(
        {"A": functools.partial(fetch, "partial-value"), "B": Vault(), "C": lambda: fetch("lambda-value")}
    )
    assert [await registry.get(name) for name in registry.names] == ["partial-value", "vault-value", "lambda-value"]


async def test_a_sync_function_runs_while_tools_fill_the_worker_threads() -> None:
    limiter = to_thread.current_default_thread_limiter()
    before = limiter.total_tokens
    limiter.total_tokens = 1
    done = threading.Event()
    try:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(to_thread.run_sync, done.wait)
                while limiter.available_tokens:
                    await checkpoint()
                assert await SecretRegistry({"TOKEN": lambda: "keychain-value"}).get("TOKEN") == "keychain-value"
                done.set()
    finally:
        done.set()
        limiter.total_tokens = before


async def test_a_sync_function_that_hangs_does_not_hold_up_a_cancellation() -> None:
    release = threading.Event()
    started = threading.Event()

    def fetch() -> str:
        started.set()
        release.wait()
        return "too late for this"

    registry = SecretRegistry({"TOKEN": fetch})
    try:
        with anyio.fail_after(30):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(registry.get, "TOKEN")
                while not started.is_set():
                    await checkpoint()
                tasks.cancel_scope.cancel()
    finally:
        release.set()


async def test_those_who_ask_at_once_share_one_call() -> None:
    calls: list[int] = []
    go_on = anyio.Event()
    found: list[str] = []

    async def fetch() -> str:
        calls.append(1)
        await go_on.wait()
        return "one for all"

    registry = SecretRegistry({"TOKEN": fetch})

    async def ask() -> None:
        found.append(await registry.get("TOKEN"))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(ask)
            await wait_all_tasks_blocked()
            go_on.set()
    assert calls == [1]
    assert found == ["one for all"] * 5


async def test_when_the_one_who_asks_is_cancelled_the_next_one_asks() -> None:
    calls: list[int] = []
    scope = anyio.CancelScope()
    found: list[str] = []

    async def fetch() -> str:
        calls.append(1)
        if len(calls) == 1:
            await anyio.sleep_forever()
        return "at the second go"

    registry = SecretRegistry({"TOKEN": fetch})

    async def give_up() -> None:
        with scope:
            await registry.get("TOKEN")

    async def ask() -> None:
        found.append(await registry.get("TOKEN"))

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(give_up)
            await wait_all_tasks_blocked()
            tasks.start_soon(ask)
            await wait_all_tasks_blocked()
            scope.cancel()
    assert found == ["at the second go"]


async def test_a_failure_is_told_without_its_text_and_kept_for_a_while_only() -> None:
    clock = Clock()
    calls: list[float] = []

    async def fetch() -> str:
        calls.append(clock.now)
        await checkpoint()
        if len(calls) == 1:
            raise PermissionError("token tok-12345678 was refused")
        return "second-time-lucky"

    registry = SecretRegistry({"TOKEN": fetch}, retry_after=10, clock=clock)
    with pytest.raises(SecretError, match="'TOKEN' can't be had: its source raised PermissionError") as caught:
        await registry.get("TOKEN")
    assert isinstance(caught.value.__cause__, PermissionError)
    assert "tok-12345678" not in str(caught.value)
    clock.now += 4
    with pytest.raises(SecretError, match=r"raised PermissionError\. Its source is asked again in 6 s"):
        await registry.get("TOKEN")
    assert len(calls) == 1
    clock.now += 6
    assert await registry.get("TOKEN") == "second-time-lucky"


async def test_registering_again_clears_a_failure() -> None:
    async def fail() -> str:
        await checkpoint()
        raise OSError("no network")

    registry = SecretRegistry({"TOKEN": fail})
    with pytest.raises(SecretError):
        await registry.get("TOKEN")
    registry.register("TOKEN", "typed-in-by-hand")
    assert await registry.get("TOKEN") == "typed-in-by-hand"


async def test_a_value_that_was_replaced_stays_masked() -> None:
    registry = SecretRegistry({"TOKEN": "first-value"})
    registry.register("TOKEN", "second-value")
    assert await registry.get("TOKEN") == "second-value"
    assert registry.names == ("TOKEN",)
    assert registry.masker.mask_text("first-value second-value") == "<secret:TOKEN> <secret:TOKEN>"


async def test_a_value_that_is_hidden_is_masked_and_cannot_be_had_by_its_name() -> None:
    registry = SecretRegistry()
    registry.hide("TOKEN", "hush-hush")
    assert registry.mask("say hush-hush") == "say <secret:TOKEN>"
    assert registry.names == ()
    with pytest.raises(SecretError, match="No secret 'TOKEN' is registered"):
        await registry.get("TOKEN")
    for name, value in (("no-name", "hush-hush"), ("TOKEN", "short")):
        with pytest.raises(SecretError):
            registry.hide(name, value)


async def test_a_value_with_an_age_is_asked_for_again_when_it_is_old() -> None:
    clock = Clock()
    values = iter(["token-of-monday", "token-of-tuesday"])
    registry = SecretRegistry(clock=clock)
    registry.register("TOKEN", lambda: next(values), max_age=300)
    assert await registry.get("TOKEN") == "token-of-monday"
    clock.now += 299
    assert await registry.get("TOKEN") == "token-of-monday"
    clock.now += 1
    assert await registry.get("TOKEN") == "token-of-tuesday"
    assert registry.masker.mask_text("token-of-monday token-of-tuesday") == "<secret:TOKEN> <secret:TOKEN>"


async def test_a_masker_knows_the_values_of_its_moment() -> None:
    registry = SecretRegistry({"A": "first-value"})
    masker = registry.masker
    registry.register("B", "second-value")
    assert masker.mask_text("second-value") == "second-value"
    assert registry.masker.mask_text("second-value") == "<secret:B>"


@pytest.mark.parametrize("name", ["", "1ST", "MY-TOKEN", "MY TOKEN", "T\n", "TÖKEN", "A>"])
def test_a_name_that_is_no_variable_s_is_refused(name: str) -> None:
    with pytest.raises(SecretError, match="can't name a secret: use letters, digits and '_'"):
        SecretRegistry().register(name, "long enough")


async def test_a_value_that_can_t_be_masked_is_refused_wherever_it_comes_from() -> None:
    registry = SecretRegistry({"LATER": lambda: "12345"}, retry_after=0)
    with pytest.raises(SecretError, match="'NOW' can't be used: it has fewer than 6 characters") as at_once:
        registry.register("NOW", "54321")
    with pytest.raises(SecretError, match="'LATER' can't be used: it has fewer than 6 characters") as later:
        await registry.get("LATER")
    assert "NOW" not in registry
    assert "54321" not in str(at_once.value)
    assert "12345" not in "".join(traceback.format_exception_only(later.value))
    assert registry.masker.mask_text("12345 54321") == "12345 54321"


async def test_a_refused_value_leaves_the_one_before_in_place() -> None:
    registry = SecretRegistry({"TOKEN": "first-value"})
    with pytest.raises(SecretError):
        registry.register("TOKEN", "tiny")
    assert await registry.get("TOKEN") == "first-value"


async def test_a_source_that_gives_no_text_is_an_error() -> None:
    registry = SecretRegistry({"TOKEN": lambda: None})  # type: ignore[dict-item, return-value]
    with pytest.raises(SecretError, match="source of secret 'TOKEN' gave NoneType instead of text"):
        await registry.get("TOKEN")
    with pytest.raises(SecretError, match="'OTHER' was given as int: pass the value as text, or a function"):
        registry.register("OTHER", 123456789)  # type: ignore[arg-type]


async def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(SecretError, match=r"No secret 'C' is registered\. Registered: 'A', 'B'\."):
        await SecretRegistry({"A": "value-of-a", "B": "value-of-b"}).get("C")
    with pytest.raises(SecretError, match="Registered: none"):
        await SecretRegistry().get("C")


def test_a_registry_shows_and_gives_away_no_value() -> None:
    registry = SecretRegistry({"TOKEN": "hunter2!"})
    assert repr(registry) == str(registry) == "SecretRegistry(names=('TOKEN',))"
    for give in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="can't be copied or pickled"):
            give(registry)


async def test_a_stream_masks_what_becomes_known_while_it_runs() -> None:
    registry = SecretRegistry({"OLD": "ghp_0123456789", "NEW": lambda: "ghp_01zebra-stripes"})
    stream = registry.stream()
    assert stream.feed("a ghp_01") == "a "
    await registry.get("NEW")
    assert stream.feed("zebra-stripes b") + stream.finish() == "<secret:NEW> b"


async def test_values_that_were_replaced_stay_masked_in_streams_and_bytes() -> None:
    registry = SecretRegistry({"TOKEN": "first-value"})
    registry.register("TOKEN", "second-value")
    stream = registry.stream()
    assert stream.feed("first-value, second-value.") + stream.finish() == "<secret:TOKEN>, <secret:TOKEN>."
    assert registry.masker.mask_bytes(b"first-value second-value") == b"<secret:TOKEN> <secret:TOKEN>"
