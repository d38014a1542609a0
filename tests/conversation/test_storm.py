"""A storm: every command, given up by its caller at a random moment in every way that an event loop has.

Afterwards the state is the fold of the log and what is in force, nobody is said to work who does not, what was
acknowledged has its effect, and no file or lock is left.
"""

from __future__ import annotations

import asyncio  # noqa: TID251  its own ways of giving up are what is tested
import os
import random
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agentcore import (
    ActionApproved,
    ActionEvent,
    Agent,
    AlwaysConfirm,
    Conversation,
    Event,
    FileStore,
    Limits,
    NeverConfirm,
)
from agentcore.agent import record_agent
from agentcore.conversation.core import Core
from agentcore.errors import AgentcoreError
from agentcore.record import ConversationState, read_log
from agentcore.security import record_checks
from agentcore.testing import ScriptedLLM, ScriptLine, call, calls, say
from rounds import rounds, some_quick
from talks import WAITING, answers_of, change, core_of, events_of, look, scripted

LOOPS = [
    pytest.param(("asyncio", {"use_uvloop": False}), id="asyncio"),
    pytest.param(("asyncio", {"use_uvloop": True}), id="uvloop"),
    pytest.param("trio", id="trio"),
]


@pytest.fixture(scope="module", params=LOOPS)
def anyio_backend(request: pytest.FixtureRequest) -> Any:
    return request.param


class Storm:
    """People who use one conversation at once, and give up on most of what they ask for."""

    def __init__(
        self, conversation: Conversation, dice: random.Random, another: Callable[[int], Agent], *, on_asyncio: bool
    ) -> None:
        self.conversation = conversation
        self.another = another
        self.dice = dice
        self.ways = (
            [self.wait_for, self.timeout, self.cancel_twice, self.failing_sibling, self.scope]
            if on_asyncio
            else [self.scope, self.nursery]
        )

    async def person(self, deeds: int) -> None:
        for _ in range(deeds):
            deed = self.deed()
            with suppress(AgentcoreError, TimeoutError):
                if self.dice.random() < 0.3:
                    await deed
                else:
                    await self.dice.choice(self.ways)(deed)

    def deed(self) -> Coroutine[Any, Any, object]:
        c, dice = self.conversation, self.dice
        pending = c.state.pending
        one = dice.choice(pending).id if pending and dice.random() < 0.5 else None
        deeds: list[Callable[[], Coroutine[Any, Any, object]]] = [
            lambda: c.run("go on"),
            c.run,
            lambda: c.send("hello"),
            lambda: c.approve(one),
            lambda: c.approve(one),
            lambda: c.reject("no", one),
            c.pause,
            lambda: c.interrupt("enough"),
            lambda: c.rewind(dice.randrange(c.state.head + 1)),
            lambda: c.set_policy(dice.choice([AlwaysConfirm(), NeverConfirm()])),
            lambda: c.set_limits(Limits(steps=dice.randrange(1, 50))),
            lambda: c.set_title(f"title {dice.random()}"),
            lambda: c.set_tags({"n": str(dice.random())}),
            lambda: c.set_agent(self.another(dice.randrange(1, 9))),
            lambda: c.add_secrets({f"TOKEN_{dice.randrange(5)}": f"a value of {dice.random()}"}),
            lambda: c.ask("how far?"),
            c.fork,
            self.stream,
        ]
        return dice.choice(deeds)()

    async def stream(self) -> None:
        async for _ in self.conversation.run_stream("hurry"):
            if self.dice.random() < 0.2:
                break

    def moment(self) -> float:
        return self.dice.random() * 0.002

    async def wait_for(self, deed: Coroutine[Any, Any, object]) -> None:
        await asyncio.wait_for(deed, self.moment())

    async def timeout(self, deed: Coroutine[Any, Any, object]) -> None:
        async with asyncio.timeout(self.moment()):
            await deed

    async def cancel_twice(self, deed: Coroutine[Any, Any, object]) -> None:
        task = asyncio.ensure_future(deed)
        # In early releases of Python 3.11, a timeout of before can still cancel who waits below, and then no one asks how it ended.
        task.add_done_callback(lambda task: task.cancelled() or task.exception())
        for _ in range(2):
            for _ in range(self.dice.randrange(8)):
                await checkpoint()
            task.cancel()
        await asyncio.wait([task])
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error

    async def failing_sibling(self, deed: Coroutine[Any, Any, object]) -> None:
        async def fail(turns: int) -> None:
            for _ in range(turns):
                await checkpoint()
            raise TimeoutError

        with suppress(ExceptionGroup):
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(deed)
                tasks.create_task(fail(self.dice.randrange(12)))

    async def scope(self, deed: Coroutine[Any, Any, object]) -> None:
        with anyio.move_on_after(self.moment()):
            await deed

    async def nursery(self, deed: Coroutine[Any, Any, object]) -> None:
        async def do(deed: Awaitable[object]) -> None:
            with suppress(AgentcoreError):
                await deed

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(do, deed)
            for _ in range(self.dice.randrange(12)):
                await checkpoint()
            tasks.cancel_scope.cancel()


def check(core: Core) -> None:
    """What holds when nobody asks for anything any more."""
    state = core.state
    assert state.is_working == (core.turn is not None)
    if state.policy is not None:
        assert record_checks(core.checks) == state.policy
    assert state.agent is not None
    assert record_agent(core.next_agent or core.agent) == (state.agent.agent, state.agent.missing)
    assert core.next_agent is None or core.turn is not None, "nobody puts it in force"
    counts = Counter(str(event.cause) for event in answers_of(state))
    assert not counts - Counter(str(event.id) for event in events_of(state, ActionEvent)), (
        "two answers, or one to nothing"
    )
    waits = state.status is WAITING
    assert not waits or state.pending, "it waits for nobody"
    on_branch = {event.id for event in state.branch_events()}
    for event in state.events:
        if isinstance(event, ActionApproved) and event.id in on_branch:
            action = state.open_actions.get(event.cause or "")
            assert action is None or action.started or action.runs_next
    for action in state.open_actions.values():
        assert action.waits or core.turn is not None, "approved, and nobody runs it"


async def weather(folder: Path, seed: int, *, on_asyncio: bool) -> None:
    """One conversation in a storm."""
    dice = random.Random(seed)
    number = 0
    seen: list[Event] = []

    def reply(_: object) -> ScriptLine:
        nonlocal number
        number += 1
        looks = calls(*(call("look", name=str(n)) for n in range(dice.choice([2, 3]))))
        return dice.choice([say("done"), say(""), call("change", name=str(number)), looks])

    async def watch(conversation: Conversation) -> None:
        async for event in conversation.events():
            seen.append(event)

    store = FileStore(folder, durability="flush")
    llm = ScriptedLLM(reply)

    def agent(at_once: int) -> Agent:
        return scripted(llm, change, look, max_parallel_calls=at_once)

    given_to = Conversation(agent(8), folder, store=store, id=f"c{seed}", confirm=AlwaysConfirm())
    async with anyio.create_task_group() as watching, given_to as conversation:
        watching.start_soon(watch, conversation)
        storm = Storm(conversation, dice, agent, on_asyncio=on_asyncio)
        async with anyio.create_task_group() as tasks:
            for _ in range(3):
                tasks.start_soon(storm.person, 6)
        core = core_of(conversation)
        with anyio.fail_after(20):
            while core.turn is not None and not core.state.is_asking:
                await core.turn.done.wait()
            await conversation.set_title("the end")  # behind whatever was handed over and left
            while core.turn is not None:
                await core.turn.done.wait()
        check(core)
        state: ConversationState = await read_log(store, conversation.id)
        assert state.snapshot() == conversation.state.snapshot()
    assert seen == list(conversation.state.events)
    state = await read_log(store, conversation.id)
    assert not state.is_working
    assert state.snapshot() == conversation.state.snapshot()


def descriptors() -> set[str]:
    found: set[str] = set()
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            found.add(os.readlink(f"/proc/self/fd/{name}"))
    return found


async def _blow(folder: Path, conversations: range, *, on_asyncio: bool) -> None:
    with anyio.fail_after(60 + len(conversations)):
        for first in conversations[::10]:
            async with anyio.create_task_group() as tasks:
                for seed in range(first, min(first + 10, conversations.stop)):

                    async def one(seed: int = seed) -> None:
                        await weather(folder, seed, on_asyncio=on_asyncio)

                    tasks.start_soon(one)
    # What a fork was cut off in ends by itself: the job that makes it goes on, and its conversation waits for it.
    left = {path for path in descriptors() if path.startswith(str(folder))}
    assert not left
    store = FileStore(folder)
    for info in await store.list():
        assert (await read_log(store, info.conversation_id)).head > 0, "a fork that was begun and never written"


PORTIONS = 4


@pytest.mark.parametrize("portion", some_quick(range(PORTIONS), PORTIONS))
async def test_a_storm_of_commands_that_are_given_up_leaves_everything_whole(
    tmp_path: Path, portion: int, anyio_backend_name: str
) -> None:
    each = 200 // PORTIONS // len(LOOPS) + 1
    await _blow(tmp_path, range(portion * each, (portion + 1) * each), on_asyncio=anyio_backend_name == "asyncio")


@pytest.mark.slow
async def test_a_long_storm(tmp_path: Path, anyio_backend_name: str) -> None:
    first = random.SystemRandom().randrange(1_000_000)
    print(f"seeds from {first}")
    await _blow(tmp_path, range(first, first + rounds(2_000) // len(LOOPS)), on_asyncio=anyio_backend_name == "asyncio")
