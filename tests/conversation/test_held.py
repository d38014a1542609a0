"""Tools that shield themselves from being stopped: the turn and the conversation end all the same, and say who is left."""

from __future__ import annotations

import anyio
import pytest

from agentcore import AgentErrorEvent, Conversation, MemoryStore
from agentcore.conversation import execute
from agentcore.record import read_log
from agentcore.testing import call, calls, say
from agentcore.tools import AnyTool, tool
from talks import BOUND, PAUSED, events_of, hang, hosting, running, scripted, talk


@pytest.fixture(autouse=True)
def _little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(execute, "_STOP_SECONDS", 0.05)


class Holder:
    """Makes a tool that does not stop before it is told to."""

    def __init__(self) -> None:
        self.begun = anyio.Event()
        self.let_go = anyio.Event()
        self.ended = anyio.Event()

        @tool(resources=())
        async def hold() -> str:
            """Hold on."""
            with anyio.CancelScope(shield=True):
                self.begun.set()
                await self.let_go.wait()
            self.ended.set()
            return "held"

        self.tool: AnyTool = hold


async def test_an_interrupt_leaves_a_tool_behind_that_does_not_stop_and_the_next_run_works() -> None:
    holder = Holder()
    async with talk([calls(call("hold"), call("hang")), say("done")], holder.tool, hang) as conversation:
        async with running(conversation) as run:
            await holder.begun.wait()
            await conversation.interrupt()
        assert run.result.status is PAUSED
        answers = {e.tool_name: e for e in events_of(conversation, AgentErrorEvent)}
        assert (answers["hold"].code, answers["hold"].outcome) == ("abandoned", "interrupted")
        assert "'hold' did not stop" in answers["hold"].error
        assert answers["hang"].code == "interrupted"
        assert (await conversation.run()).text == "done"
        head = conversation.state.head
        holder.let_go.set()
        await holder.ended.wait()
        await anyio.wait_all_tasks_blocked()
        assert conversation.state.head == head, "what was answered is not answered again"


async def test_closing_does_not_wait_for_a_tool_that_does_not_stop_and_its_host_does(
    caplog: pytest.LogCaptureFixture,
) -> None:
    holder = Holder()
    store = MemoryStore()
    async with hosting() as host:
        agent = scripted([call("hold"), say("done")], holder.tool)
        conversation = await host.open(agent, store=store, id="a")
        async with running(conversation):
            await holder.begun.wait()
            await conversation.close()
        assert not holder.ended.is_set()
        # Its log is whole and free: it can be opened again while the tool still holds on.
        assert not (await read_log(store, "a")).open_actions
        again = await host.open(agent, store=store, id="a")
        assert (await again.run()).text == "done"
        holder.let_go.set()
    assert holder.ended.is_set()
    assert any("left behind" in record.getMessage() and "hold" in record.getMessage() for record in caplog.records)


async def test_leaving_records_and_closes_everything_before_it_waits_for_a_tool_that_does_not_stop() -> None:
    holder = Holder()
    left = anyio.Event()
    conversation = Conversation(scripted([call("hold")], holder.tool))

    async def converse() -> None:
        async with conversation, running(conversation) as run:
            await holder.begun.wait()
            run.cancel()
        left.set()

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(converse)
            await holder.begun.wait()
            await conversation.close()
            assert not conversation.state.open_actions
            await anyio.wait_all_tasks_blocked()
            assert not left.is_set()
            holder.let_go.set()
            await left.wait()


async def test_cancelling_from_outside_records_the_end_before_it_waits_for_a_tool_that_does_not_stop() -> None:
    holder = Holder()
    store = MemoryStore()

    async def converse() -> None:
        async with talk([call("hold")], holder.tool, store=store, id="a") as conversation:
            await conversation.run("go")

    async with anyio.create_task_group() as tasks:

        async def let_go_when_recorded() -> None:
            with anyio.CancelScope(shield=True):
                while (await read_log(store, "a")).status is not PAUSED:
                    await anyio.wait_all_tasks_blocked()
                holder.let_go.set()

        tasks.start_soon(converse)
        await holder.begun.wait()
        tasks.start_soon(let_go_when_recorded)
        await anyio.wait_all_tasks_blocked()
        tasks.cancel_scope.cancel()
    assert holder.ended.is_set()
