"""Cancelled at every checkpoint, and without power at every disk operation: the log is whole and the conversation goes on."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agentcore import (
    ActionAssessed,
    ActionEvent,
    ActionStarted,
    Agent,
    AlwaysConfirm,
    Assessment,
    Conversation,
    Host,
    LocalWorkspace,
    MemoryStore,
    ObservationEvent,
    Store,
    Workspace,
)
from agentcore.errors import ConversationNotFound, StoreError
from agentcore.record import read_log
from agentcore.security import CheckContext
from agentcore.testing import ScriptLine, Survival, call, calls, cancel_everywhere, crash_everywhere, say
from agentcore.tools import tool
from talks import BOUND, FINISHED, RUNNING, answers_of, events_of, scripted, talk


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


LONG = (
    calls(call("look", n=1), call("look", n=2), call("change", n=3), call("change", n=4)),
    call("change", n=5),
    call("finish", message="done"),
    *[say("again")] * 3,
)
SHORT = (calls(call("look", n=1), call("look", n=2), call("change", n=3)), *[say("done")] * 4)


def worker(script: Sequence[ScriptLine] = LONG) -> Agent:
    return scripted(script, look, change)


async def check_log(store: Store, *, settled: bool = True) -> None:
    """Every action has at most one answer, and when settled exactly one; starts come before answers."""
    state = await read_log(store, "a")
    started = {event.cause: event.seq for event in events_of(state, ActionStarted)}
    assert len(started) == len(events_of(state, ActionStarted))
    answered = answers_of(state)
    assert len({event.cause for event in answered}) == len(answered)
    assert all(started[event.cause] < event.seq for event in answered if isinstance(event, ObservationEvent))
    assert not settled or not [action for action in state.open_actions.values() if not action.waits]
    assert not settled or state.status is not RUNNING


async def go_on(store: Store, workspace: Workspace) -> None:
    async with talk(worker([say("went on")]), workspace=workspace, store=store, id="a") as conversation:
        assert (await conversation.run("go on")).text == "went on"


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


@pytest.mark.slow
@pytest.mark.parametrize(("script", "confirm"), [(LONG, None), (SHORT, Slow())], ids=["unasked", "assessed"])
async def test_a_conversation_that_is_cancelled_anywhere_is_whole_and_starts_nothing_unassessed_and_goes_on(
    tmp_path: Path, script: Sequence[ScriptLine], confirm: Slow | None
) -> None:
    async with LocalWorkspace(tmp_path) as workspace:
        for attempt in cancel_everywhere():
            store = MemoryStore()

            async def work(store: MemoryStore) -> None:
                agent = worker(script)
                async with Conversation(agent, workspace, store=store, id="a", confirm=confirm) as conversation:
                    await conversation.run("go")
                    await conversation.send("more")

            with anyio.fail_after(BOUND):
                await attempt(work, store)
                try:
                    await check_log(store)
                except ConversationNotFound:
                    continue
                if confirm is not None:
                    state = await read_log(store, "a")
                    n_of = {event.id: event.arguments.get("n") for event in events_of(state, ActionEvent)}
                    assessed = {event.cause: event.seq for event in events_of(state, ActionAssessed)}
                    for event in events_of(state, ActionStarted):
                        n = n_of[event.cause or ""]
                        assert n != 2
                        assert n != 3 or assessed[event.cause] < event.seq
                await go_on(store, workspace)


async def test_a_run_whose_caller_is_cancelled_anywhere_is_settled_when_that_returns(tmp_path: Path) -> None:
    async with LocalWorkspace(tmp_path) as workspace, Host() as host:
        for attempt in cancel_everywhere():
            store = MemoryStore()
            with anyio.fail_after(BOUND):
                conversation = await host.open(worker(), workspace, store=store, id="a")
                await conversation.send("go")
                await attempt(conversation.run)
                assert not conversation.state.open_actions
                assert conversation.state.status is not RUNNING
                assert (await conversation.run()).status is FINISHED
                await conversation.close()
            await check_log(store)


async def test_approvals_that_are_cancelled_anywhere_are_made_or_not_made(tmp_path: Path) -> None:
    async with LocalWorkspace(tmp_path) as workspace, Host() as host:
        for attempt in cancel_everywhere():
            store = MemoryStore()
            agent = worker([call("change", n=1), *[say("done")] * 3])
            with anyio.fail_after(BOUND):
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


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("kept", ["least", "most"])
async def test_a_conversation_that_loses_power_anywhere_has_what_its_watchers_saw(
    tmp_path: Path, kept: Survival
) -> None:
    (tmp_path / "work").mkdir()
    async with LocalWorkspace(tmp_path / "work") as workspace:
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

            with anyio.fail_after(BOUND):
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
    async with LocalWorkspace(tmp_path / "work") as workspace:

        async def work(store: Store) -> None:
            async with Conversation(worker(), workspace, store=store, id="a") as conversation:
                await conversation.run("go")

        for attempt in crash_everywhere(tmp_path):
            with anyio.fail_after(BOUND):
                found = await attempt(work)
            assert found.error is None or isinstance(found.error, StoreError)
