from __future__ import annotations

from contextlib import suppress

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.errors import ModelConnectionError, ModelError, ModelUnavailable, RateLimited
from agentcore.llm import (
    AdaptiveLimiter,
    CallContext,
    FallbackLLM,
    LimitedModel,
    RetryingModel,
    RetryPolicy,
    RetryReport,
)
from agentcore.messages import Message
from agentcore.testing import Gate, ScriptedLLM, ScriptLine, truncated

ASK = [Message.user("Hello?")]


def limited(limiter: AdaptiveLimiter, *lines: ScriptLine, repeat: bool = False) -> LimitedModel:
    return LimitedModel(ScriptedLLM(lines, repeat=repeat), limiter)


async def read(model: LimitedModel) -> None:
    async with model.stream(ASK) as stream:
        async for _ in stream:
            pass


async def together(limiter: AdaptiveLimiter, *outcomes: ModelError | str) -> None:
    """Let so many calls overlap, then end them in this order."""
    gates = [Gate() for _ in outcomes]
    models = [limited(limiter, gate.hold(outcome)) for gate, outcome in zip(gates, outcomes, strict=True)]

    async def ask(model: LimitedModel) -> None:
        with suppress(ModelError):
            await model.complete(ASK)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for model, gate in zip(models, gates, strict=True):
                tasks.start_soon(ask, model)
                await gate.arrived()
            for gate in gates:
                gate.open()
                await anyio.wait_all_tasks_blocked()


async def test_no_more_calls_run_at_once_than_the_limit_also_of_several_models() -> None:
    limiter, gate = AdaptiveLimiter(start=2, highest=2), Gate()
    models = [limited(limiter, gate.hold("Hi."), gate.hold("Hi.")) for _ in range(3)]
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            for model in models:
                tasks.start_soon(model.complete, ASK)
                tasks.start_soon(read, model)
            await gate.arrived(2)
            await anyio.wait_all_tasks_blocked()
            assert (limiter.taken, limiter.waiting) == (2, 4)
            gate.open()
    assert (limiter.taken, limiter.waiting) == (0, 0)


async def test_places_are_given_in_the_order_of_asking_and_who_is_cancelled_holds_nobody_up() -> None:
    limiter = AdaptiveLimiter(start=1, highest=1)
    done: list[str] = []

    async def ask(name: str, scope: anyio.CancelScope) -> None:
        with scope:
            await limited(limiter, "Hi.").complete(ASK)
            done.append(name)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            scopes = {name: anyio.CancelScope() for name in ("front", "middle", "third", "last")}
            async with limiter.place():
                for name, scope in scopes.items():
                    tasks.start_soon(ask, name, scope)
                    await anyio.wait_all_tasks_blocked()
                scopes["middle"].cancel()
                await anyio.wait_all_tasks_blocked()
                assert limiter.waiting == 3
            # Freed and cancelled before it could run again: its place goes on.
            scopes["front"].cancel()
    assert done == ["third", "last"]
    assert (limiter.taken, limiter.waiting) == (0, 0)


async def test_a_stream_holds_its_place_until_it_is_left() -> None:
    limiter = AdaptiveLimiter()
    async with limited(limiter, "one two").stream(ASK) as stream:
        await anext(stream)
        assert limiter.taken == 1
    assert limiter.taken == 0
    with pytest.raises(ModelConnectionError):
        await read(limited(limiter, truncated("one two")))
    with anyio.move_on_after(0):
        await read(limited(limiter, "Never."))
    assert limiter.taken == 0


async def test_the_limit_grows_by_one_for_a_round_of_calls_that_went_well() -> None:
    limiter = AdaptiveLimiter(start=2, highest=4)
    await together(limiter, "Hi.", "Hi.")
    assert limiter.limit == 2  # the second call ended with a place to spare
    for _ in range(50):
        await limited(limiter, "Hi.").complete(ASK)
    assert limiter.limit == 2  # nothing came up against it
    for _ in range(20):
        await together(limiter, *["Hi."] * limiter.limit)
    assert limiter.limit == 4


@pytest.mark.parametrize("error", [RateLimited("slow down", status=429), ModelUnavailable("overloaded", status=529)])
async def test_the_limit_shrinks_once_for_calls_that_were_too_many_together(error: ModelError) -> None:
    limiter = AdaptiveLimiter(start=8)
    await together(limiter, error, error, error, "Hi.")
    assert limiter.limit == 4
    await together(limiter, error)
    assert limiter.limit == 2
    for _ in range(5):
        await together(limiter, error)
    assert limiter.limit == 1


async def test_what_says_nothing_of_the_load_changes_nothing() -> None:
    limiter = AdaptiveLimiter(start=8)
    broke = RateLimited("no credit", status=402)
    broke.retryable = False
    await together(limiter, ModelUnavailable("down", status=503), ModelConnectionError("gone"), broke)
    assert limiter.limit == 8


async def test_what_the_own_retries_of_a_model_hide_is_seen_and_passed_on() -> None:
    limiter = AdaptiveLimiter(start=8)
    retried = RetryingModel(ScriptedLLM([RateLimited("slow down"), "Hi."]), RetryPolicy(min_wait=0, max_wait=0))
    reports: list[RetryReport] = []

    async def on_retry(report: RetryReport) -> None:
        await anyio.lowlevel.checkpoint()
        reports.append(report)

    await LimitedModel(retried, limiter).complete(ASK, context=CallContext(on_retry=on_retry))
    assert limiter.limit == 4
    assert len(reports) == 1


async def test_a_failure_that_a_reader_keeps_to_himself_is_seen() -> None:
    limiter = AdaptiveLimiter(start=8)
    breaking = limited(limiter, truncated("one two", error=RateLimited("slow down")))
    async with FallbackLLM(breaking, ScriptedLLM(["Hi."])).stream(ASK) as stream:
        async for _ in stream:
            pass
    assert limiter.limit == 4
    assert limiter.taken == 0


def test_limits_that_make_no_sense_are_refused() -> None:
    for start in (0, 65):
        with pytest.raises(ValueError, match="not in this order"):
            AdaptiveLimiter(start=start)
    with pytest.raises(ValueError, match="would not shrink"):
        AdaptiveLimiter(shrink=1)


@given(st.lists(st.sampled_from(["well", "refused", "cancelled"]), max_size=40), st.integers(1, 6))
def test_whatever_happens_the_limit_keeps_its_bounds_and_no_place_is_lost(outcomes: list[str], calls: int) -> None:
    limiter = AdaptiveLimiter(start=3, lowest=2, highest=5)

    async def work() -> None:
        waiting = list(outcomes)

        async def caller() -> None:
            while waiting:
                outcome = waiting.pop()
                with anyio.CancelScope() as scope:
                    async with limiter.place() as place:
                        assert limiter.taken <= 5
                        if outcome == "cancelled":
                            scope.cancel()
                        await anyio.lowlevel.checkpoint()
                        if outcome == "refused":
                            place.failed(RateLimited("slow down"))
                        else:
                            place.went_well()
                assert 2 <= limiter.limit <= 5

        async with anyio.create_task_group() as tasks:
            for _ in range(calls):
                tasks.start_soon(caller)

    anyio.run(work)
    assert (limiter.taken, limiter.waiting) == (0, 0)
