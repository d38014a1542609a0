"""Pausing, interrupting, cancelling, closing: what runs is stopped, what is open is answered, the log says so."""

from __future__ import annotations

import asyncio  # noqa: TID251  cancelling twice goes through anyio's shields
import threading

import anyio
import pytest

from agentcore import ActionStarted, AgentErrorEvent, Host, InterruptEvent, MemoryStore, SystemPromptEvent, ToolContext
from agentcore.errors import ConversationClosed, ModelConnectionError, RunError
from agentcore.testing import Gate, call, calls, say, truncated
from agentcore.testing import hang as hanging
from agentcore.tools import tool
from talks import ERROR, PAUSED, RUNNING, error_of, events_of, hang, running, scripted, talk, until


async def test_interrupt_stops_the_calls_and_answers_them() -> None:
    async with talk([calls(call("hang"), call("hang")), say("after")], hang) as conversation:
        async with running(conversation) as run:
            await until(conversation, ActionStarted)
            await conversation.interrupt("enough")
            assert conversation.state.status is PAUSED
            assert not conversation.state.open_actions
        assert run.result.status is PAUSED
        assert [e.outcome for e in events_of(conversation, AgentErrorEvent)] == ["interrupted", "interrupted"]
        assert [e.reason for e in events_of(conversation, InterruptEvent)] == ["enough"]
        assert (await conversation.run()).text == "after"


async def test_interrupt_during_a_model_call_keeps_what_it_had_said() -> None:
    gate = Gate()
    held = gate.hold(say("Once upon a time there was"), after=2)
    async with talk([held, say("after")]) as conversation:
        async with running(conversation):
            await gate.arrived()
            await conversation.interrupt()
        (interrupt,) = events_of(conversation, InterruptEvent)
        assert interrupt.partial_text
        assert "Once upon a time there was".startswith(interrupt.partial_text)
        assert (await conversation.run()).text == "after"


async def test_pause_lets_the_step_end() -> None:
    @tool(resources=())
    async def work() -> str:
        """Work."""
        await conversation.pause()
        assert conversation.state.status is RUNNING
        return "worked"

    async with talk([call("work"), say("after")], work) as conversation:
        result = await conversation.run("go")
        assert (result.status, result.steps) == (PAUSED, 1)
        assert not conversation.state.open_actions
        assert (await conversation.run()).text == "after"


async def test_cancelling_the_last_caller_interrupts_the_work() -> None:
    async with talk([call("hang")], hang) as conversation:
        async with running(conversation) as run:
            await until(conversation, ActionStarted)
            run.cancel()
        assert conversation.state.status is PAUSED
        assert not conversation.state.open_actions


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("between", range(4))
async def test_the_last_caller_that_is_cancelled_twice_interrupts_the_run(between: int) -> None:
    async with talk([call("hang")], hang) as conversation:
        caller = asyncio.ensure_future(conversation.run("go"))
        await until(lambda: conversation.state.open_actions)
        caller.cancel()
        for _ in range(between):
            await asyncio.sleep(0)
        caller.cancel()
        await until(lambda: conversation.state.status is PAUSED)


async def test_cancelling_one_of_two_callers_leaves_the_other_its_result() -> None:
    gate = Gate()
    async with talk([gate.hold(say("done"))]) as conversation:
        async with running(conversation) as run:
            await gate.arrived()
            with anyio.move_on_after(0):
                await conversation.run()
            gate.open()
    assert run.result.text == "done"


async def test_a_synchronous_tool_is_asked_to_stop_and_left_behind_and_the_log_says_so() -> None:
    started, release, asked = threading.Event(), threading.Event(), threading.Event()

    @tool(resources=())
    def stubborn(ctx: ToolContext) -> str:
        """Hold a thread."""
        started.set()
        release.wait(30)
        if ctx.cancel_requested:
            asked.set()
        return "late"

    try:
        async with talk([call("stubborn"), say("after")], stubborn) as conversation:
            async with running(conversation):
                await anyio.to_thread.run_sync(started.wait)
                await conversation.interrupt()
            assert "thread" in error_of(conversation).error
    finally:
        release.set()
    assert await anyio.to_thread.run_sync(asked.wait, 10)


async def test_a_tool_may_interrupt_its_own_turn() -> None:
    @tool(resources=())
    async def stop(ctx: ToolContext) -> str:
        """Stop."""
        await ctx.interrupt()
        await anyio.sleep_forever()
        return "never"

    async with talk([call("stop")], stop) as conversation:
        assert (await conversation.run("go")).status is PAUSED


async def test_closing_while_a_run_is_in_flight_ends_that_run_as_paused_and_closed() -> None:
    async with Host() as host:
        conversation = await host.open(scripted([call("hang")], hang), store=MemoryStore())
        async with running(conversation) as run:
            await until(conversation, ActionStarted)
            await conversation.close()
        assert (run.result.status, run.result.error and run.result.error.code) == (PAUSED, "closed")
        with pytest.raises(ConversationClosed):
            await conversation.send("too late")
        assert conversation.state.head > 0
        await conversation.close()


async def test_an_error_in_the_body_leaves_as_itself_and_the_run_is_settled() -> None:
    store = MemoryStore()
    agent = scripted([hanging])
    with pytest.raises(ZeroDivisionError):
        async with talk(agent, store=store, id="one") as conversation:
            async for event in conversation.run_stream("go"):
                if isinstance(event, SystemPromptEvent):
                    raise ZeroDivisionError
    async with talk(agent, store=store, id="one") as conversation:
        assert conversation.state.status is PAUSED


async def test_a_stream_that_breaks_ends_the_run_with_the_models_error() -> None:
    broken = truncated(say("half of it"), error=ModelConnectionError("gone"))
    async with talk([broken, say("after")]) as conversation:
        with pytest.raises(RunError, match="gone"):
            await conversation.run("go")
        assert conversation.state.status is ERROR
        assert (await conversation.run()).text == "after"
