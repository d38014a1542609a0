"""Pausing, interrupting, cancelling, closing: what runs is stopped, what is open is answered, the log says so."""

from __future__ import annotations

import threading
from pathlib import Path

import anyio
import pytest

from agentcore import (
    ActionStarted,
    Agent,
    AgentErrorEvent,
    Conversation,
    ConversationStatus,
    Event,
    Host,
    InterruptEvent,
    MemoryStore,
    RunResult,
    SystemPromptEvent,
    ToolContext,
)
from agentcore.conversation import EventCursor
from agentcore.errors import ConversationClosed, ModelConnectionError, RunError
from agentcore.testing import Gate, ScriptedLLM, call, calls, hang, say, truncated
from agentcore.tools import tool


@tool(resources=())
async def sleeper() -> str:
    """Sleep for ever."""
    await anyio.sleep_forever()
    return "never"


async def wait_for(conversation: Conversation, kind: type[Event]) -> None:
    async for event in conversation.events():
        if isinstance(event, kind):
            return


async def test_interrupt_stops_the_calls_and_answers_them(tmp_path: Path) -> None:
    llm = ScriptedLLM([calls(call("sleeper"), call("sleeper")), say("after")])
    results: list[RunResult] = []
    async with Conversation(Agent(llm=llm, tools=[sleeper]), tmp_path) as conversation:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:

                async def run() -> None:
                    results.append(await conversation.run("go"))

                tasks.start_soon(run)
                await wait_for(conversation, ActionStarted)
                await conversation.interrupt("enough")
                assert conversation.state.status is ConversationStatus.PAUSED
                assert not conversation.state.open_actions
        assert results[0].status is ConversationStatus.PAUSED
        outcomes = [e.outcome for e in conversation.state.events if isinstance(e, AgentErrorEvent)]
        assert outcomes == ["interrupted", "interrupted"]
        (interrupt,) = [e for e in conversation.state.events if isinstance(e, InterruptEvent)]
        assert interrupt.reason == "enough"
        assert (await conversation.run()).text == "after"


async def test_interrupt_during_a_model_call_keeps_what_it_had_said(tmp_path: Path) -> None:
    gate = Gate()
    llm = ScriptedLLM([gate.hold(say("Once upon a time there was"), after=2), say("after")])
    async with Conversation(Agent(llm=llm), tmp_path) as conversation:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(conversation.run, "tell")
                await gate.arrived()
                await conversation.interrupt()
        (interrupt,) = [e for e in conversation.state.events if isinstance(e, InterruptEvent)]
        assert interrupt.partial_text
        assert "Once upon a time there was".startswith(interrupt.partial_text)
        assert (await conversation.run()).text == "after"


async def test_pause_lets_the_step_end(tmp_path: Path) -> None:
    @tool(resources=())
    async def work() -> str:
        """Work."""
        await conversation.pause()
        assert conversation.state.status is ConversationStatus.RUNNING
        return "worked"

    llm = ScriptedLLM([call("work"), say("after")])
    async with Conversation(Agent(llm=llm, tools=[work]), tmp_path) as conversation:
        result = await conversation.run("go")
        assert result.status is ConversationStatus.PAUSED
        assert result.steps == 1
        assert not conversation.state.open_actions
        assert (await conversation.run()).text == "after"


async def test_pausing_an_idle_conversation_pauses_it(tmp_path: Path) -> None:
    async with Conversation(Agent(llm=ScriptedLLM([say("x")])), tmp_path) as conversation:
        await conversation.pause()
        assert conversation.state.status is ConversationStatus.PAUSED
        assert (await conversation.run("go")).status is ConversationStatus.FINISHED


async def test_interrupting_what_does_not_work_changes_nothing(tmp_path: Path) -> None:
    async with Conversation(Agent(llm=ScriptedLLM([])), tmp_path) as conversation:
        head = conversation.state.head
        await conversation.interrupt()
        assert conversation.state.head == head


async def test_cancelling_the_last_caller_interrupts_the_work(tmp_path: Path) -> None:
    llm = ScriptedLLM([call("sleeper"), say("after")])
    async with Conversation(Agent(llm=llm, tools=[sleeper]), tmp_path) as conversation:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(conversation.run, "go")
                await wait_for(conversation, ActionStarted)
                tasks.cancel_scope.cancel()
        assert conversation.state.status is ConversationStatus.PAUSED
        assert not conversation.state.open_actions


async def test_cancelling_one_of_two_callers_leaves_the_other_its_result(tmp_path: Path) -> None:
    gate = Gate()
    llm = ScriptedLLM([gate.hold(say("done"))])
    results: list[RunResult] = []
    async with Conversation(Agent(llm=llm), tmp_path) as conversation:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:

                async def run() -> None:
                    results.append(await conversation.run("go"))

                tasks.start_soon(run)
                await gate.arrived()
                with anyio.move_on_after(0):
                    await conversation.run()
                gate.open()
    assert [result.text for result in results] == ["done"]


async def test_a_synchronous_tool_is_told_and_left_behind_and_the_log_says_so(tmp_path: Path) -> None:
    started, release, told = threading.Event(), threading.Event(), threading.Event()

    @tool(resources=())
    def stubborn(ctx: ToolContext) -> str:
        """Hold a thread."""
        started.set()
        release.wait(30)
        if ctx.cancel_requested:
            told.set()
        return "late"

    llm = ScriptedLLM([call("stubborn"), say("after")])
    try:
        async with Conversation(Agent(llm=llm, tools=[stubborn]), tmp_path) as conversation:
            with anyio.fail_after(10):
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(conversation.run, "go")
                    await wait_for(conversation, ActionStarted)
                    await anyio.to_thread.run_sync(started.wait)
                    await conversation.interrupt()
            (answer,) = [e for e in conversation.state.events if isinstance(e, AgentErrorEvent)]
            assert "thread" in answer.error
    finally:
        release.set()
    assert await anyio.to_thread.run_sync(told.wait, 10)


async def test_a_tool_may_interrupt_its_own_turn(tmp_path: Path) -> None:
    @tool(resources=())
    async def stop(ctx: ToolContext) -> str:
        """Stop."""
        await ctx.interrupt()
        await anyio.sleep_forever()
        return "never"

    llm = ScriptedLLM([call("stop")])
    async with Conversation(Agent(llm=llm, tools=[stop]), tmp_path) as conversation:
        with anyio.fail_after(10):
            result = await conversation.run("go")
    assert result.status is ConversationStatus.PAUSED


async def test_closing_while_a_run_is_in_flight_ends_that_run_as_paused_and_closed(tmp_path: Path) -> None:
    store = MemoryStore()
    results: list[RunResult] = []
    llm = ScriptedLLM([call("sleeper")])
    with anyio.fail_after(10):
        async with Host() as host:
            conversation = await host.open(Agent(llm=llm, tools=[sleeper]), tmp_path, store=store)
            async with anyio.create_task_group() as tasks:

                async def run() -> None:
                    results.append(await conversation.run("go"))

                tasks.start_soon(run)
                await wait_for(conversation, ActionStarted)
                await conversation.close()
            assert results[0].status is ConversationStatus.PAUSED
            assert results[0].error is not None
            assert results[0].error.code == "closed"
            with pytest.raises(ConversationClosed):
                await conversation.send("too late")
            assert conversation.state.head > 0
            await conversation.close()


async def test_cursors_end_after_the_last_event_when_the_conversation_closes(tmp_path: Path) -> None:
    seen: list[int] = []
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            async with Conversation(Agent(llm=ScriptedLLM([say("hi")])), tmp_path) as conversation:

                async def follow(events: EventCursor) -> None:
                    seen.extend([event.seq async for event in events])

                tasks.start_soon(follow, conversation.events())
                await conversation.run("go")
                head = conversation.state.head
            assert seen == list(range(1, head + 1))


async def test_an_error_in_the_body_leaves_as_itself_and_the_run_is_settled(tmp_path: Path) -> None:
    store = MemoryStore()
    llm = ScriptedLLM([hang, say("after")])
    agent = Agent(llm=llm)

    async def body() -> None:
        async with Conversation(agent, tmp_path, store=store, id="one") as conversation:
            stream = conversation.run_stream("go")
            async for event in stream:
                if isinstance(event, SystemPromptEvent):
                    raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError), anyio.fail_after(10):
        await body()
    async with Conversation(agent, tmp_path, store=store, id="one") as conversation:
        assert conversation.state.status is ConversationStatus.PAUSED


async def test_a_stream_that_breaks_ends_the_run_with_the_models_error(tmp_path: Path) -> None:
    llm = ScriptedLLM([truncated(say("half of it"), error=ModelConnectionError("gone")), say("after")])
    async with Conversation(Agent(llm=llm), tmp_path) as conversation:
        with pytest.raises(RunError, match="gone"):
            await conversation.run("go")
        assert conversation.state.status is ConversationStatus.ERROR
        assert (await conversation.run()).text == "after"
