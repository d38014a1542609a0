"""Commands whose callers are cancelled the way asyncio cancels: each is whole, whoever waits for it.

The stores here take their time, so that a caller is gone before its command is decided on.
"""

from __future__ import annotations

import asyncio  # noqa: TID251  its own cancellation, which goes through anyio's shields, is what is tested
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agentcore import (
    Agent,
    AlwaysConfirm,
    Conversation,
    ConversationStatus,
    Limits,
    MemoryStore,
    NeverConfirm,
    PauseEvent,
    RunResult,
    ToolContext,
)
from agentcore.errors import ConversationClosed, NothingPending
from agentcore.record import Record, StoredLog, read_log
from agentcore.testing import ScriptedLLM, call, calls, say
from agentcore.tools import tool


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


ran: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


@tool(resources=())
async def danger(n: int) -> str:
    """Do something."""
    ran.append(n)
    return f"done {n}"


class GatedStore(MemoryStore):
    """Its writes wait while the gate is closed."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = anyio.Event()
        self.gate.set()
        self.waiting = anyio.Event()

    def close_gate(self) -> None:
        self.gate = anyio.Event()
        self.waiting = anyio.Event()

    async def create(self, conversation_id: str, *, format_version: int) -> Any:
        return _GatedLog(await super().create(conversation_id, format_version=format_version), self)


class _GatedLog:
    def __init__(self, log: StoredLog, store: GatedStore) -> None:
        self._log = log
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def append(self, records: Sequence[Record]) -> None:
        self._store.waiting.set()
        await self._store.gate.wait()
        await self._log.append(records)


async def give_up(store: GatedStore, command: Callable[[], Awaitable[object]]) -> None:
    """Begin a command, cancel its caller as asyncio does while the store writes, then let the store go on."""
    store.close_gate()
    caller = asyncio.ensure_future(command())
    with anyio.fail_after(5):
        await store.waiting.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    store.gate.set()


async def until(holds: Callable[[], bool]) -> None:
    with anyio.fail_after(5):
        while not holds():
            await checkpoint()


async def test_an_approval_whose_caller_was_cancelled_is_carried_out_and_a_run_that_joins_has_its_result(
    tmp_path: Path,
) -> None:
    store = GatedStore()
    agent = Agent(llm=ScriptedLLM([call("danger", n=1), say("end")]), tools=[danger])
    async with Conversation(agent, tmp_path, store=store, id="a", confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        store.close_gate()
        joined: list[RunResult] = []

        async def join() -> None:
            joined.append(await conversation.run())

        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                approving = asyncio.ensure_future(conversation.approve())
                await store.waiting.wait()
                tasks.start_soon(join)
                await anyio.wait_all_tasks_blocked()
                approving.cancel()
                await anyio.wait_all_tasks_blocked()
                store.gate.set()
        assert joined[0].status is ConversationStatus.FINISHED
        assert ran == [1]


async def test_a_policy_whose_caller_was_cancelled_is_in_force(tmp_path: Path) -> None:
    store = GatedStore()
    agent = Agent(llm=ScriptedLLM([call("danger", n=1), say("end")]), tools=[danger])
    async with Conversation(agent, tmp_path, store=store, id="a", confirm=NeverConfirm()) as conversation:
        await give_up(store, lambda: conversation.set_policy(AlwaysConfirm()))
        assert (await conversation.run("go")).status is ConversationStatus.WAITING_FOR_CONFIRMATION
        assert conversation.state.policy == {"name": "always_confirm"}
    assert not ran


async def test_limits_whose_caller_was_cancelled_hold_the_run_under_way(tmp_path: Path) -> None:
    begun = anyio.Event()

    @tool(resources=())
    async def wait() -> str:
        """Wait."""
        begun.set()
        await anyio.sleep_forever()
        return "never"

    store = GatedStore()
    agent = Agent(llm=ScriptedLLM([call("wait"), say("end")]), tools=[wait])
    results: list[RunResult] = []
    async with Conversation(agent, tmp_path, store=store, id="a") as conversation:

        async def run() -> None:
            results.append(await conversation.run("go"))

        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run)
                await begun.wait()
                await give_up(store, lambda: conversation.set_limits(Limits(run_seconds=0.01)))
        assert results[0].error is not None
        assert results[0].error.code == "run_seconds"


async def test_a_message_whose_sender_was_cancelled_is_sent(tmp_path: Path) -> None:
    store = GatedStore()
    async with Conversation(Agent(llm=ScriptedLLM([])), tmp_path, store=store, id="a") as conversation:
        await give_up(store, lambda: conversation.send("hello"))
        await until(lambda: conversation.state.last_user_seq > 0)


async def test_limits_that_are_none_are_refused_before_anything_is_recorded(tmp_path: Path) -> None:
    async with Conversation(Agent(llm=ScriptedLLM([])), tmp_path) as conversation:
        head = conversation.state.head
        with pytest.raises(TypeError, match="limits are Limits"):
            await conversation.set_limits({"run_seconds": 3})  # type: ignore[arg-type]
        assert conversation.state.head == head


async def test_a_yes_while_it_is_paused_lets_the_work_go_on(tmp_path: Path) -> None:
    agent = Agent(llm=ScriptedLLM([call("danger", n=1), say("end")]), tools=[danger])
    async with Conversation(agent, tmp_path, confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        await conversation.interrupt()
        assert conversation.state.status is ConversationStatus.PAUSED
        await conversation.approve()
        assert (await conversation.run()).text == "end"
    assert ran == [1]


async def test_a_no_while_it_is_paused_is_an_answer_and_nothing_else(tmp_path: Path) -> None:
    agent = Agent(llm=ScriptedLLM([call("danger", n=1), say("end")]), tools=[danger])
    async with Conversation(agent, tmp_path, confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        await conversation.interrupt()
        await conversation.reject("no")
        assert conversation.state.status is ConversationStatus.PAUSED
        assert not conversation.state.open_actions
    assert not ran


async def test_a_paused_run_that_only_waits_for_a_person_says_so_at_once(tmp_path: Path) -> None:
    agent = Agent(llm=ScriptedLLM([call("danger", n=1), say("end")]), tools=[danger])
    async with Conversation(agent, tmp_path, confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        await conversation.interrupt()
        assert (await conversation.run()).status is ConversationStatus.WAITING_FOR_CONFIRMATION
        assert conversation.state.run.steps == 1


@pytest.mark.parametrize("order", range(6))
async def test_no_and_two_yeses_at_once_leave_no_approved_action_that_nobody_runs(tmp_path: Path, order: int) -> None:
    agent = Agent(llm=ScriptedLLM([calls(call("danger", n=1), call("danger", n=2)), say("end")]), tools=[danger])
    async with Conversation(agent, tmp_path, confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        x, y = (action.id for action in conversation.state.pending)

        async def decide(what: str) -> None:
            with suppress(NothingPending):
                await (conversation.reject("no", y) if what == "no" else conversation.approve(x))

        whats = ["no", "yes", "yes too"]
        whats = [whats.pop(order % 3), *(whats if order < 3 else whats[::-1])]
        async with anyio.create_task_group() as tasks:
            for what in whats:
                tasks.start_soon(decide, what)
        assert (await conversation.run()).text == "end"
        assert not conversation.state.open_actions
    assert ran == [1]


@pytest.mark.parametrize("order", range(6))
async def test_a_closed_log_never_says_that_the_agent_works_and_a_yes_outlives_the_close(
    tmp_path: Path, order: int
) -> None:
    store = MemoryStore()

    def agent() -> Agent:
        return Agent(llm=ScriptedLLM([calls(call("danger", n=1), call("danger", n=2)), say("end")]), tools=[danger])

    async with Conversation(agent(), tmp_path, store=store, id="a", confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        x, y = (action.id for action in conversation.state.pending)
        acknowledged: list[str] = []

        async def do(what: str) -> None:
            with suppress(ConversationClosed):
                if what == "no":
                    await conversation.reject("no", y)
                elif what == "yes":
                    await conversation.approve(x)
                else:
                    await conversation.close()
                acknowledged.append(what)

        deeds = ["no", "yes", "close"]
        deeds = [deeds.pop(order % 3), *(deeds if order < 3 else deeds[::-1])]
        async with anyio.create_task_group() as tasks:
            for deed in deeds:
                tasks.start_soon(do, deed)
    state = await read_log(store, "a")
    assert not state.is_working
    assert all(action.runs_next for action in state.open_actions.values() if not action.waits)
    llm = ScriptedLLM(lambda _: say("end"))
    async with Conversation(Agent(llm=llm, tools=[danger]), tmp_path, store=store, id="a") as conversation:
        for _ in range(2):
            if (await conversation.run("go on")).pending:
                await conversation.reject("enough")
    assert ran == ([1] if "yes" in acknowledged else []), "an acknowledged yes is carried out, once"


async def test_several_pauses_are_one(tmp_path: Path) -> None:
    begun, go_on = anyio.Event(), anyio.Event()

    @tool(resources=())
    async def wait() -> str:
        """Wait."""
        begun.set()
        await go_on.wait()
        return "done"

    agent = Agent(llm=ScriptedLLM([call("wait"), say("end")]), tools=[wait])
    async with Conversation(agent, tmp_path) as conversation:
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(conversation.run, "go")
                await begun.wait()
                for _ in range(3):
                    await conversation.pause()
                go_on.set()
        assert conversation.state.status is ConversationStatus.PAUSED
        assert sum(isinstance(event, PauseEvent) for event in conversation.state.events) == 1


async def test_a_tool_that_sends_while_it_cleans_up_does_not_hold_up_the_interrupt(tmp_path: Path) -> None:
    begun = anyio.Event()

    @tool(resources=())
    async def tidy(ctx: ToolContext) -> str:
        """Tidy up when stopped."""
        try:
            begun.set()
            await anyio.sleep_forever()
        finally:
            with anyio.CancelScope(shield=True):
                await ctx.send("I tidied up.")
        return "never"

    agent = Agent(llm=ScriptedLLM([call("tidy"), say("end")]), tools=[tidy])
    async with Conversation(agent, tmp_path) as conversation:
        with anyio.fail_after(5):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(conversation.run, "go")
                await begun.wait()
                await conversation.interrupt()
        assert conversation.state.status is ConversationStatus.PAUSED
        assert "I tidied up." in [getattr(event, "text", "") for event in conversation.state.events]
        assert not conversation.state.open_actions


async def test_a_run_of_one_call_is_two_writes(tmp_path: Path) -> None:
    writes: list[int] = []

    class CountingStore(GatedStore):
        async def create(self, conversation_id: str, *, format_version: int) -> Any:
            log = await super().create(conversation_id, format_version=format_version)
            append = log.append

            async def counted(records: Sequence[Record]) -> None:
                writes.append(len(records))
                await append(records)

            log.append = counted
            return log

    async with Conversation(
        Agent(llm=ScriptedLLM([say("x")])), tmp_path, store=CountingStore(), id="a"
    ) as conversation:
        opening = len(writes)
        await conversation.run("go")
        assert writes[opening:] == [3, 3], "message, status and prompt; reply, usage and that it finished"


async def test_a_fork_whose_caller_was_cancelled_is_whole_or_was_never_begun(tmp_path: Path) -> None:
    store = MemoryStore()
    async with Conversation(Agent(llm=ScriptedLLM([say("x")])), tmp_path, store=store, id="a") as conversation:
        await conversation.run("go")
        for turns in range(12):
            forking = asyncio.ensure_future(conversation.fork(id=f"fork{turns}"))
            for _ in range(turns):
                await checkpoint()
            forking.cancel()
            await asyncio.wait([forking])
    for info in await store.list():
        assert (await read_log(store, info.conversation_id)).head > 0


@pytest.mark.parametrize("raised", [ExceptionGroup("mine", [OSError(1), KeyError(2)])], ids=["group"])
async def test_a_group_that_the_program_raised_leaves_as_it_is(tmp_path: Path, raised: Exception) -> None:
    with pytest.RaisesGroup(OSError, KeyError) as caught:
        async with Conversation(Agent(llm=ScriptedLLM([])), tmp_path):
            raise raised
    assert caught.value is raised


@tool(resources=())
async def hang() -> str:
    """Never end."""
    await anyio.sleep_forever()
    return ""


@pytest.mark.parametrize("first", [True, False])
async def test_an_interrupt_reaches_a_run_that_is_not_decided_on_yet(tmp_path: Path, first: bool) -> None:
    store = GatedStore()
    agent = Agent(llm=ScriptedLLM([*([] if first else [say("one")]), call("hang")]), tools=[hang])
    async with Conversation(agent, tmp_path, store=store, id="a") as conversation:
        if not first:
            await conversation.run("go")
        store.close_gate()
        with anyio.fail_after(5):
            running = asyncio.ensure_future(conversation.run("go on"))
            await store.waiting.wait()
            interrupting = asyncio.ensure_future(conversation.interrupt("stop"))
            await anyio.wait_all_tasks_blocked()
            store.gate.set()
            await interrupting
            assert (await running).status is ConversationStatus.PAUSED
        assert conversation.state.status_detail == "stop"
