"""The part of the contract of conversations that is about runs: begun, joined, stopped, limited, failed."""

from __future__ import annotations

import asyncio  # noqa: TID251 its own way to limit a time cancels differently from anyio's
from typing import Any

import anyio
from anyio.lowlevel import checkpoint, current_token
from pydantic import BaseModel

from agentcore.errors import AuthenticationError, ConversationClosed, RunError
from agentcore.events import (
    ActionStarted,
    AgentErrorEvent,
    ConversationErrorEvent,
    ConversationStatus,
    MessageEvent,
    ObservationEvent,
)
from agentcore.messages import Message
from agentcore.testing.conversation_place import (
    ERROR,
    FINISHED,
    IDLE,
    PAUSED,
    ConversationPlace,
    actions_of,
    agent_of,
    events_of,
    opened,
    raised,
    running,
    until,
    until_has,
)
from agentcore.testing.script import Gate, Request, ScriptedReply, call, calls, say
from agentcore.tools import ToolContext, tool
from agentcore.usage import Limits, Usage


class City(BaseModel):
    """The type of an output."""

    name: str
    people: int


@tool(resources=())
async def hang() -> str:
    """Never end."""
    await anyio.sleep_forever()
    return "never"


class RunsContract:
    """The contract of runs; a part of `ConversationContract`."""

    async def test_a_run_ends_with_the_words_of_the_model(self, place: ConversationPlace) -> None:
        async with opened(place, [say("Hello!")]) as conversation:
            assert (conversation.state.status, conversation.state.head > 0) == (IDLE, True)
            result = await conversation.run("Hi")
            assert (result.status, result.text, result.steps, result.error) == (FINISHED, "Hello!", 1, None)
            assert result.usage.requests == 1
            assert (conversation.state.status, conversation.state.answer) == (FINISHED, "Hello!")
            assert result.last_seq == conversation.state.head
            texts = [event.message.text for event in events_of(conversation, MessageEvent)]
            assert texts == ["Hi", "Hello!"]

    async def test_a_message_may_be_more_than_text(self, place: ConversationPlace) -> None:
        seen: list[str] = []

        def answer(request: Request) -> ScriptedReply:
            seen.append(request.last.text)
            return say("yes")

        async with opened(place, answer) as conversation:
            result = await conversation.run(Message.user("Look at\nthis: \N{SNOWMAN}"))
            assert result.text == "yes"
        assert seen == ["Look at\nthis: \N{SNOWMAN}"]

    async def test_calls_are_run_and_the_model_reads_their_answers(self, place: ConversationPlace) -> None:
        read: list[str] = []

        @tool
        async def add(left: int, right: int) -> dict[str, int]:
            """Add."""
            await checkpoint()
            return {"sum": left + right}

        def last(request: Request) -> ScriptedReply:
            read.extend(request.answers)
            return say("done")

        async with opened(place, [call("add", left=1, right=2), last], add) as conversation:
            result = await conversation.run("add")
            assert (result.status, result.text, result.steps) == (FINISHED, "done", 2)
            (action,) = actions_of(conversation)
            assert (action.tool_name, action.arguments) == ("add", {"left": 1, "right": 2})
            (answer,) = events_of(conversation, ObservationEvent)
            assert (answer.cause, answer.text, answer.is_error) == (action.id, '{"sum":3}', False)
        assert read == ['{"sum":3}']

    async def test_a_tool_has_its_context_and_the_programs_own_value(self, place: ConversationPlace) -> None:
        deps = object()
        seen: list[Any] = []

        @tool
        async def use(ctx: ToolContext) -> str:
            """Use what there is."""
            await ctx.workspace.write("made.txt", b"by a tool")
            seen.extend((ctx.deps, ctx.conversation_id, ctx.action_id, ctx.call_id, ctx.tool_name))
            return (await ctx.workspace.run("cat made.txt")).stdout

        async with opened(place, [call("use"), say("done")], use, deps=deps) as conversation:
            assert (await conversation.run("go")).status is FINISHED
            (action,) = actions_of(conversation)
            (answer,) = events_of(conversation, ObservationEvent)
            assert (answer.cause, answer.text) == (action.id, "by a tool")
            assert await conversation.workspace.read("made.txt") == b"by a tool"
        assert seen[0] is deps
        assert seen[1:] == [conversation.id, action.id, action.call_id, "use"]

    async def test_calls_of_one_reply_run_at_once(self, place: ConversationPlace) -> None:
        met = anyio.Event()
        here: list[int] = []

        @tool(resources=())
        async def meet(number: int) -> int:
            """Wait for the other one."""
            here.append(number)
            if len(here) == 2:
                met.set()
            await met.wait()
            return number

        script = [calls(call("meet", number=1), call("meet", number=2)), say("met")]
        async with opened(place, script, meet) as conversation:
            assert (await conversation.run("go")).text == "met"
            assert [event.text for event in events_of(conversation, ObservationEvent)] in (["1", "2"], ["2", "1"])

    async def test_a_tool_that_raises_is_an_answer_that_the_model_reads(self, place: ConversationPlace) -> None:
        read: list[str] = []

        @tool
        async def fail() -> str:
            """Fail."""
            await checkpoint()
            raise KeyError("no such city")

        def last(request: Request) -> ScriptedReply:
            read.extend(request.answers)
            return say("I see")

        async with opened(place, [call("fail"), last], fail) as conversation:
            assert (await conversation.run("go")).text == "I see"
            (answer,) = events_of(conversation, AgentErrorEvent)
            assert (answer.outcome, answer.code) == ("failed", "KeyError")
        assert "KeyError: 'no such city'" in read[0]

    async def test_a_typed_output_is_a_value_of_its_type(self, place: ConversationPlace) -> None:
        script = [call("finish", message="It is Rome.", result={"name": "Rome", "people": 3})]
        async with opened(place, agent_of(place, script, output=City)) as conversation:
            result = await conversation.run("Which city?")
            assert (result.text, result.output) == ("It is Rome.", City(name="Rome", people=3))
            assert (await conversation.run()).output == City(name="Rome", people=3)

    async def test_a_failing_model_is_an_error_with_the_result_and_the_next_run_goes_on(
        self, place: ConversationPlace
    ) -> None:
        async with opened(place, [AuthenticationError("no such key"), say("now it works")]) as conversation:
            failed = await raised(RunError, conversation.run("Hi"))
            assert (failed.result.status, failed.result.error.code) == (ERROR, "AuthenticationError")
            assert isinstance(failed.error, AuthenticationError)
            assert "no such key" in str(failed)
            assert conversation.state.status is ERROR
            assert events_of(conversation, ConversationErrorEvent)
            assert (await conversation.run()).text == "now it works"

    async def test_a_limit_ends_the_run_and_is_named(self, place: ConversationPlace) -> None:
        @tool(resources=())
        async def ping() -> str:
            """Ping."""
            await checkpoint()
            return "pong"

        script = [call("ping"), call("ping"), say("done")]
        async with opened(place, script, ping, limits=Limits(steps=1)) as conversation:
            result = await conversation.run("go")
            assert (result.status, result.error and result.error.code) == (ERROR, "steps")
            assert result.steps == 1
            await conversation.set_limits(Limits(steps=5))
            assert conversation.state.limits == Limits(steps=5)
            assert (await conversation.run()).text == "done"

    async def test_tokens_count_over_all_runs(self, place: ConversationPlace) -> None:
        usage = Usage(input_tokens=600, output_tokens=50)
        script = [say("one", usage=usage), say("two", usage=usage)]
        async with opened(place, script, limits=Limits(tokens=1_000)) as conversation:
            assert (await conversation.run("1")).text == "one"
            await conversation.run("2")
            result = await conversation.run("3")
            assert (result.status, result.error and result.error.code) == (ERROR, "tokens")
            assert conversation.state.usage.total_tokens == 1_300

    async def test_a_second_run_joins_the_first_and_its_text_is_read(self, place: ConversationPlace) -> None:
        gate = Gate()
        async with opened(place, [gate.hold(say("first")), say("both read")]) as conversation:
            async with running(conversation, "one") as one:
                await gate.arrived()
                async with running(conversation, "two") as two:
                    await until(conversation, lambda: len(events_of(conversation, MessageEvent)) == 2)
                    gate.open()
            assert one.result.text == two.result.text == "both read"
            assert one.result.first_seq == two.result.first_seq

    async def test_a_message_starts_nothing_and_is_read_by_the_next_run(self, place: ConversationPlace) -> None:
        async with opened(place, lambda request: say(f"read {request.last.text}")) as conversation:
            seq = await conversation.send("this")
            assert conversation.state.head >= seq
            event = conversation.state.events[seq - 1]
            assert isinstance(event, MessageEvent)
            assert (event.message.text, conversation.state.status) == ("this", IDLE)
            assert (await conversation.run()).text == "read this"

    async def test_a_pause_lets_the_step_end_and_the_next_run_goes_on(self, place: ConversationPlace) -> None:
        gate = Gate()

        @tool(resources=())
        async def ping() -> str:
            """Ping."""
            await checkpoint()
            return "pong"

        async with opened(place, [gate.hold(call("ping")), say("done")], ping) as conversation:
            async with running(conversation) as begun:
                await gate.arrived()
                await conversation.pause()
                gate.open()
            assert (begun.result.status, begun.result.steps) == (PAUSED, 1)
            assert events_of(conversation, ObservationEvent)
            assert (await conversation.run()).text == "done"

    async def test_an_interrupt_stops_at_once_and_answers_what_runs(self, place: ConversationPlace) -> None:
        async with opened(place, [call("hang"), say("again")], hang) as conversation:
            async with running(conversation) as begun:
                await until_has(conversation, ActionStarted)
                await conversation.interrupt("enough")
                assert not conversation.state.open_actions
                assert conversation.state.status is PAUSED
            assert begun.result.status is PAUSED
            (answer,) = events_of(conversation, AgentErrorEvent)
            assert answer.outcome == "interrupted"
            assert (await conversation.run()).text == "again"

    async def test_one_call_can_be_interrupted_and_the_others_go_on(self, place: ConversationPlace) -> None:
        let = anyio.Event()

        @tool(resources=())
        async def wait() -> str:
            """Wait."""
            await let.wait()
            return "waited"

        async with opened(place, [calls(call("hang"), call("wait")), say("done")], hang, wait) as conversation:
            async with running(conversation) as begun:
                await until(conversation, lambda: len(events_of(conversation, ActionStarted)) == 2)
                hanging = next(action for action in actions_of(conversation) if action.tool_name == "hang")
                assert await conversation.interrupt_call(hanging.id)
                answer = await until_has(conversation, AgentErrorEvent)
                assert (answer.cause, answer.outcome) == (hanging.id, "interrupted")
                let.set()
            assert begun.result.text == "done"
            assert not await conversation.interrupt_call(hanging.id)
            assert [event.text for event in events_of(conversation, ObservationEvent)] == ["waited"]

    async def test_a_cancelled_run_interrupts_the_work_and_passes_the_cancellation_on(
        self, place: ConversationPlace
    ) -> None:
        async with opened(place, [call("hang"), say("again")], hang) as conversation:
            async with running(conversation) as begun:
                await until_has(conversation, ActionStarted)
                begun.cancel()
            assert begun.cancelled
            assert begun.outcome is None
            await until(conversation, lambda: conversation.state.status is PAUSED)
            assert not conversation.state.open_actions
            assert (await conversation.run()).text == "again"

    async def test_of_two_who_wait_one_may_leave_and_the_work_goes_on(self, place: ConversationPlace) -> None:
        gate = Gate()
        async with opened(place, [gate.hold(say("first")), say("done")]) as conversation:
            async with running(conversation, "one") as one:
                await gate.arrived()
                async with running(conversation, "two") as two:
                    await until(conversation, lambda: len(events_of(conversation, MessageEvent)) == 2)
                    two.cancel()
                assert two.cancelled
                gate.open()
            assert one.result.text == "done"

    async def test_a_run_that_is_started_goes_on_without_anybody_who_waits(self, place: ConversationPlace) -> None:
        gate = Gate()
        async with opened(place, [gate.hold(say("first")), say("done")]) as conversation:
            seq = await conversation.start("go")
            assert seq == conversation.state.run.seq
            await gate.arrived()
            async with running(conversation, "more") as joined:
                await until(conversation, lambda: len(events_of(conversation, MessageEvent)) == 2)
                joined.cancel()
            assert joined.cancelled
            assert conversation.state.status is ConversationStatus.RUNNING
            gate.open()
            await until(conversation, lambda: conversation.state.status is FINISHED)
            assert conversation.state.answer == "done"

    async def test_a_time_limit_of_the_caller_interrupts(self, place: ConversationPlace) -> None:
        async with opened(place, [call("hang")], hang) as conversation:
            if hasattr(current_token().native_token, "is_closed"):
                await raised(asyncio.TimeoutError, asyncio.wait_for(conversation.run("go"), 0.2))
            else:
                with anyio.move_on_after(0.2) as scope:
                    await conversation.run("go")
                assert scope.cancelled_caught
            await until(conversation, lambda: conversation.state.status is PAUSED)

    async def test_a_closed_conversation_refuses_and_stays_readable(self, place: ConversationPlace) -> None:
        async with opened(place, [say("Hello!")]) as conversation:
            await conversation.run("Hi")
            await conversation.close()
            await conversation.close()
            closed = await raised(ConversationClosed, conversation.send("more"))
            assert conversation.id in str(closed)
            await raised(ConversationClosed, conversation.run())
            assert conversation.state.answer == "Hello!"
            assert [event.seq async for event in conversation.events()] == list(range(1, conversation.state.head + 1))

    async def test_a_run_that_is_under_way_at_the_close_returns_paused(self, place: ConversationPlace) -> None:
        async with opened(place, [call("hang")], hang) as conversation, running(conversation) as begun:
            await until_has(conversation, ActionStarted)
            await conversation.close()
        assert begun.result.status is PAUSED
        assert begun.result.error is not None
        assert begun.result.error.code == "closed"
