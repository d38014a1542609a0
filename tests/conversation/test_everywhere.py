"""Cancelled at every checkpoint, and without power at every disk operation: the log is whole and the conversation goes on."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agentcore import (
    ActionAssessed,
    ActionEvent,
    ActionStarted,
    Agent,
    AgentErrorEvent,
    AlwaysConfirm,
    Assessment,
    Conversation,
    Host,
    LocalWorkspace,
    MemoryStore,
    ObservationEvent,
    Store,
    UserRejectObservation,
    Workspace,
)
from agentcore.errors import ConversationNotFound, StoreError
from agentcore.record import read_log
from agentcore.security import CheckContext
from agentcore.testing import Kept, ScriptedLLM, call, calls, cancel_everywhere, crash_everywhere, say
from agentcore.tools import tool
from talks import FINISHED, RUNNING, events_of, scripted


@tool(resources=())
async def look(n: int) -> str:
    """Look."""
    for _ in range(2):
        await checkpoint()
    return str(n)


@tool
async def change(n: int) -> str:
    """Change."""
    await checkpoint()
    return str(n)


def worker() -> Agent:
    llm = ScriptedLLM(
        [
            calls(call("look", n=1), call("look", n=2), call("change", n=3), call("change", n=4)),
            call("change", n=5),
            call("finish", message="done"),
            *[say("again")] * 3,
        ]
    )
    return scripted(llm, look, change)


@asynccontextmanager
async def place(tmp_path: Path) -> AsyncGenerator[Workspace]:
    # Entered before anything is counted: its threads take their own time.
    async with LocalWorkspace(tmp_path) as workspace:
        yield workspace


async def check_log(store: Store, *, settled: bool = True) -> None:
    """Every action has at most one answer, and when settled exactly one; starts come before answers."""
    state = await read_log(store, "a")
    answered: Counter[str | None] = Counter()
    started: set[str | None] = set()
    for event in state.events:
        if isinstance(event, ActionStarted):
            assert event.cause not in started
            started.add(event.cause)
        elif isinstance(event, ObservationEvent | UserRejectObservation | AgentErrorEvent):
            answered[event.cause] += 1
            assert not isinstance(event, ObservationEvent) or event.cause in started
    assert set(answered.values()) <= {1}
    assert not settled or not [action for action in state.open_actions.values() if not action.waits]
    assert not settled or state.status is not RUNNING


async def go_on(store: Store, workspace: Workspace) -> None:
    llm = ScriptedLLM([say("went on")])
    async with Conversation(scripted(llm, look, change), workspace, store=store, id="a") as conversation:
        assert (await conversation.run("go on")).text == "went on"


async def test_a_conversation_that_is_cancelled_anywhere_is_whole_and_goes_on(tmp_path: Path) -> None:
    async with place(tmp_path) as workspace:
        for attempt in cancel_everywhere():
            store = MemoryStore()

            async def work(store: MemoryStore) -> None:
                async with Conversation(worker(), workspace, store=store, id="a") as conversation:
                    await conversation.run("go")
                    await conversation.send("more")

            with anyio.fail_after(20):
                await attempt(work, store)
                try:
                    await check_log(store)
                except ConversationNotFound:
                    continue
                await go_on(store, workspace)


class Slow:
    """Denies one call, changes another, and takes its time about each."""

    name = "slow"
    timeout = 20.0

    async def assess(self, action: ActionEvent, context: CheckContext) -> Assessment | None:
        await checkpoint()
        match action.arguments.get("n"):
            case 2:
                return Assessment(verdict="deny", reason="not 2")
            case 3:
                return Assessment(arguments={"n": 30})
            case _:
                return None


async def test_assessing_that_is_cancelled_anywhere_starts_nothing_that_was_not_assessed(tmp_path: Path) -> None:
    async with place(tmp_path) as workspace:
        for attempt in cancel_everywhere():
            store = MemoryStore()

            async def work(store: MemoryStore) -> None:
                async with Conversation(worker(), workspace, store=store, id="a", confirm=Slow()) as conversation:
                    await conversation.run("go")

            with anyio.fail_after(20):
                await attempt(work, store)
                try:
                    await check_log(store)
                except ConversationNotFound:
                    continue
                state = await read_log(store, "a")
                replies = {event.id: event for event in state.events if isinstance(event, ActionEvent)}
                assessed = {event.cause: event for event in state.events if isinstance(event, ActionAssessed)}
                started = events_of(state, ActionStarted)
                for event in started:
                    n = replies[event.cause or ""].arguments.get("n")
                    assert n != 2
                    assert n != 3 or assessed[event.cause].seq < event.seq
                await go_on(store, workspace)


async def test_a_run_whose_caller_is_cancelled_anywhere_is_settled_when_that_returns(tmp_path: Path) -> None:
    async with place(tmp_path) as workspace, Host() as host:
        for attempt in cancel_everywhere():
            store = MemoryStore()
            with anyio.fail_after(20):
                conversation = await host.open(worker(), workspace, store=store, id="a")
                await conversation.send("go")
                await attempt(conversation.run)
                assert not conversation.state.open_actions
                assert conversation.state.status is not RUNNING
                assert (await conversation.run()).status is FINISHED
                await conversation.close()
            await check_log(store)


async def test_approvals_that_are_cancelled_anywhere_are_made_or_not_made(tmp_path: Path) -> None:
    async with place(tmp_path) as workspace, Host() as host:
        for attempt in cancel_everywhere():
            store = MemoryStore()
            agent = scripted([call("change", n=1), *[say("done")] * 3], change)
            with anyio.fail_after(20):
                conversation = await host.open(agent, workspace, store=store, id="a", confirm=AlwaysConfirm())
                await conversation.run("go")
                await attempt(conversation.approve)
                result = await conversation.run()
                if result.pending:
                    await conversation.reject("no")
                    result = await conversation.run()
                assert result.status is FINISHED
                await conversation.close()
            await check_log(store)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("kept", ["least", "most"])
async def test_a_conversation_that_loses_power_anywhere_has_what_its_watchers_saw(tmp_path: Path, kept: Kept) -> None:
    (tmp_path / "work").mkdir()
    async with place(tmp_path / "work") as workspace:
        for attempt in crash_everywhere(tmp_path, kept=kept):
            seen: dict[int, str] = {}

            async def work(store: Store, seen: dict[int, str]) -> None:
                async with Conversation(worker(), workspace, store=store, id="a") as conversation:
                    events = conversation.events()
                    try:
                        await conversation.run("go")
                    finally:
                        while events.seq < conversation.state.head:
                            event = await anext(events)
                            seen[event.seq] = event.id

            with anyio.fail_after(30):
                found = await attempt(work, seen)
                try:
                    state = await read_log(found.store, "a")
                except ConversationNotFound:
                    assert not seen
                    continue
                for seq, event_id in seen.items():
                    assert state.events[seq - 1].id == event_id
                await go_on(found.store, workspace)
                await check_log(found.store)


async def test_the_errors_of_a_lost_disk_are_store_errors(tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    async with place(tmp_path / "work") as workspace:

        async def work(store: Store) -> None:
            async with Conversation(worker(), workspace, store=store, id="a") as conversation:
                await conversation.run("go")

        for attempt in crash_everywhere(tmp_path):
            with anyio.fail_after(30):
                found = await attempt(work)
            assert found.error is None or isinstance(found.error, StoreError)
