"""Commands whose callers are cancelled the way asyncio cancels: each is whole, whoever waits for it.

The stores here take their time, so that a caller is gone before its command is decided on.
"""

from __future__ import annotations

import asyncio  # noqa: TID251  its own cancellation, which goes through anyio's shields, is what is tested
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from itertools import permutations

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agentcore import (
    Agent,
    AgentConfigured,
    AlwaysConfirm,
    Conversation,
    Limits,
    MemoryStore,
    NeverConfirm,
    PauseEvent,
    ToolContext,
)
from agentcore.errors import ConversationClosed, NothingPending
from agentcore.record import Record, read_log
from agentcore.testing import ScriptedLLM, call, calls, say
from agentcore.tools import tool
from talks import (
    BOUND,
    FINISHED,
    PAUSED,
    WAITING,
    HookedStore,
    at_once,
    change,
    events_of,
    hang,
    look,
    ping,
    ran,
    running,
    scripted,
    talk,
    until,
)


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


class GatedStore(HookedStore):
    """Its writes wait while the gate is closed."""

    def __init__(self) -> None:
        super().__init__(self._wait)
        self.gate = anyio.Event()
        self.gate.set()
        self.waiting = anyio.Event()

    def close_gate(self) -> None:
        self.gate = anyio.Event()
        self.waiting = anyio.Event()

    async def _wait(self, records: Sequence[Record]) -> None:
        self.waiting.set()
        await self.gate.wait()


async def give_up(store: GatedStore, command: Callable[[], Awaitable[object]]) -> None:
    """Begin a command, cancel its caller as asyncio does while the store writes, then let the store go on."""
    store.close_gate()
    caller = asyncio.ensure_future(command())
    with anyio.fail_after(BOUND):
        await store.waiting.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    store.gate.set()


async def test_an_approval_whose_caller_was_cancelled_is_carried_out_and_a_run_that_joins_has_its_result() -> None:
    store = GatedStore()
    agent = scripted([call("change", name="a"), say("end")], change)
    async with talk(agent, store=store, confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        store.close_gate()
        approving = asyncio.ensure_future(conversation.approve())
        await store.waiting.wait()
        async with running(conversation, None) as joined:
            await anyio.wait_all_tasks_blocked()
            approving.cancel()
            await anyio.wait_all_tasks_blocked()
            store.gate.set()
        assert joined.result.status is FINISHED
        assert ran == ["a"]


async def test_a_policy_whose_caller_was_cancelled_is_in_force() -> None:
    store = GatedStore()
    async with talk([call("change", name="a")], change, store=store, confirm=NeverConfirm()) as conversation:
        await give_up(store, lambda: conversation.set_policy(AlwaysConfirm()))
        assert (await conversation.run("go")).status is WAITING
        assert conversation.state.policy == {"name": "always_confirm"}
    assert not ran


async def test_an_agent_whose_caller_was_cancelled_works_from_the_next_step_on() -> None:
    store = GatedStore()
    async with talk([call("hang")], hang, store=store) as conversation:
        async with running(conversation) as run:
            await until(lambda: conversation.state.open_actions)
            await give_up(store, lambda: conversation.set_agent(scripted([say("done")], hang, ping)))
            await until(lambda: len(events_of(conversation, AgentConfigured)) == 2)
            (action,) = conversation.state.open_actions
            await conversation.interrupt_call(action)
        assert run.result.text == "done"
        late = scripted([say("too late")], hang, look)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(_slowly(store, conversation, late), 0.01)
        store.gate.set()
        assert (await conversation.run("more")).text == "too late"


async def _slowly(store: GatedStore, conversation: Conversation, agent: Agent) -> None:
    store.close_gate()
    await conversation.set_agent(agent)


async def test_limits_whose_caller_was_cancelled_hold_the_run_under_way() -> None:
    store = GatedStore()
    async with talk([call("hang")], hang, store=store) as conversation:
        async with running(conversation) as run:
            await until(lambda: conversation.state.open_actions)
            await give_up(store, lambda: conversation.set_limits(Limits(run_seconds=0.01)))
        assert run.result.error is not None
        assert run.result.error.code == "run_seconds"


async def test_a_message_whose_sender_was_cancelled_is_sent() -> None:
    store = GatedStore()
    async with talk([], store=store) as conversation:
        await give_up(store, lambda: conversation.send("hello"))
        await until(lambda: conversation.state.last_user_seq > 0)


async def test_limits_that_are_none_are_refused_before_anything_is_recorded() -> None:
    async with talk([]) as conversation:
        head = conversation.state.head
        with pytest.raises(TypeError, match="`limits` must be Limits"):
            await conversation.set_limits({"run_seconds": 3})  # type: ignore[arg-type]
        assert conversation.state.head == head


async def test_a_paused_wait_can_be_waited_for_again_and_decided_on() -> None:
    agent = scripted([call("change", name="a"), say("one"), call("change", name="b"), say("two")], change)
    async with talk(agent, confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        await conversation.interrupt()
        assert conversation.state.status is PAUSED
        result = await conversation.run()
        assert (result.status, len(result.pending), conversation.state.run.steps) == (WAITING, 1, 1)
        await conversation.interrupt()
        await conversation.approve()
        assert (await conversation.run()).text == "one"
        await conversation.run("more")
        await conversation.interrupt()
        await conversation.reject("no")
        assert conversation.state.status is PAUSED
        assert not conversation.state.open_actions
    assert ran == ["a"]


@pytest.mark.parametrize("order", list(permutations(["no", "yes", "yes too"])))
async def test_no_and_two_yeses_at_once_leave_no_approved_action_that_nobody_runs(order: tuple[str, ...]) -> None:
    agent = scripted([calls(call("change", name="a"), call("change", name="b")), say("end")], change)
    async with talk(agent, confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        x, y = (action.id for action in conversation.state.pending)

        async def decide(what: str) -> None:
            with suppress(NothingPending):
                await (conversation.reject("no", y) if what == "no" else conversation.approve(x))

        await at_once(*(lambda what=what: decide(what) for what in order))
        assert (await conversation.run()).text == "end"
        assert not conversation.state.open_actions
    assert ran == ["a"]


@pytest.mark.parametrize("order", list(permutations(["no", "yes", "close"])))
async def test_a_closed_log_never_says_that_the_agent_works_and_a_yes_outlives_the_close(
    order: tuple[str, ...],
) -> None:
    store = MemoryStore()
    agent = scripted([calls(call("change", name="a"), call("change", name="b")), say("end")], change)
    async with talk(agent, store=store, id="a", confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        x, y = (action.id for action in conversation.state.pending)
        acknowledged: list[str] = []
        deeds = {
            "no": lambda: conversation.reject("no", y),
            "yes": lambda: conversation.approve(x),
            "close": conversation.close,
        }

        async def do(what: str) -> None:
            with suppress(ConversationClosed):
                await deeds[what]()
                acknowledged.append(what)

        await at_once(*(lambda what=what: do(what) for what in order))
    state = await read_log(store, "a")
    assert not state.is_working
    assert all(action.runs_next for action in state.open_actions.values() if not action.waits)
    async with talk(lambda _: say("end"), change, store=store, id="a") as conversation:
        for _ in range(2):
            if (await conversation.run("go on")).pending:
                await conversation.reject("enough")
    assert ran == (["a"] if "yes" in acknowledged else []), "an acknowledged yes is carried out, once"


async def test_several_pauses_are_one() -> None:
    go_on = anyio.Event()

    @tool(resources=())
    async def wait() -> str:
        """Wait."""
        await go_on.wait()
        return "done"

    async with talk([call("wait"), say("end")], wait) as conversation:
        async with running(conversation):
            await until(lambda: conversation.state.open_actions)
            for _ in range(3):
                await conversation.pause()
            go_on.set()
        assert conversation.state.status is PAUSED
        assert sum(isinstance(event, PauseEvent) for event in conversation.state.events) == 1


async def test_a_tool_that_sends_while_it_cleans_up_does_not_hold_up_the_interrupt() -> None:
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

    async with talk([call("tidy"), say("end")], tidy) as conversation:
        async with running(conversation):
            await begun.wait()
            await conversation.interrupt()
        assert conversation.state.status is PAUSED
        assert "I tidied up." in [getattr(event, "text", "") for event in conversation.state.events]
        assert not conversation.state.open_actions


async def test_a_run_of_one_call_is_two_writes() -> None:
    writes: list[int] = []

    async def count(records: Sequence[Record]) -> None:
        writes.append(len(records))

    async with talk([say("x")], store=HookedStore(count)) as conversation:
        opening = len(writes)
        await conversation.run("go")
        assert writes[opening:] == [3, 3], "message, status and prompt; reply, usage and that it finished"


async def test_a_fork_whose_caller_was_cancelled_is_whole_or_was_never_begun() -> None:
    store = MemoryStore()
    async with talk([say("x")], store=store) as conversation:
        await conversation.run("go")
        for turns in range(12):
            forking = asyncio.ensure_future(conversation.fork(id=f"fork{turns}"))
            for _ in range(turns):
                await checkpoint()
            forking.cancel()
            await asyncio.wait([forking])
    for info in await store.list():
        assert (await read_log(store, info.conversation_id)).head > 0


async def test_a_group_that_the_program_raised_leaves_as_it_is() -> None:
    raised = ExceptionGroup("mine", [OSError(1), KeyError(2)])
    with pytest.RaisesGroup(OSError, KeyError) as caught:
        async with talk([]):
            raise raised
    assert caught.value is raised


@pytest.mark.parametrize("first", [True, False])
async def test_an_interrupt_reaches_a_run_that_is_not_decided_on_yet(first: bool) -> None:
    store = GatedStore()
    async with talk(ScriptedLLM([*([] if first else [say("one")]), call("hang")]), hang, store=store) as conversation:
        if not first:
            await conversation.run("go")
        store.close_gate()
        async with running(conversation, "go on") as run:
            await store.waiting.wait()
            interrupting = asyncio.ensure_future(conversation.interrupt("stop"))
            await anyio.wait_all_tasks_blocked()
            store.gate.set()
            await interrupting
        assert run.result.status is PAUSED
        assert conversation.state.status_detail == "stop"
