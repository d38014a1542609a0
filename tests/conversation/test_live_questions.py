"""Live questions: a call that runs asks a person, and waits for the answer."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from agentcore import (
    Agent,
    AgentErrorEvent,
    Limits,
    MemoryStore,
    ObservationEvent,
    QuestionAnswered,
    QuestionAsked,
    ToolContext,
    ask_user,
)
from agentcore.errors import NothingPending, QuestionDeclined, RunError
from agentcore.events import ActionEvent, ActionStarted, ConversationStateUpdateEvent, ConversationStatus, StatusChanged
from agentcore.testing import ScriptedLLM, call, calls, say
from agentcore.tools import AskUserAction, tool
from talks import RUNNING, answers_of, core_of, error_of, events_of, hang, log_of, running, scripted, talk, until


@tool(resources=())
async def port(ctx: ToolContext) -> str:
    """Ask for the port."""
    return f"port {await ctx.question('Which port?', {'type': 'integer'})}"


@tool(resources=())
async def sub_call(ctx: ToolContext) -> str:
    """Call the tool that asks."""
    assert ask_user.execute is not None
    return (await ask_user.execute(AskUserAction(text="Which port?"), ctx)).text


def outcomes(conversation: Any) -> list[str]:
    return [event.outcome for event in events_of(conversation, QuestionAnswered)]


SCRIPT = [call("port"), say("done")]


async def test_a_call_waits_for_the_answer_and_the_run_goes_on() -> None:
    async with talk(SCRIPT, port, attended=True) as conversation:
        async with running(conversation):
            asked = await until(conversation, QuestionAsked)
            assert asked.live
            assert (conversation.state.status, conversation.state.pending) == (RUNNING, ())
            assert conversation.state.questions == (asked,)
            with pytest.raises(NothingPending):
                await conversation.reject("no", asked.cause)
            assert asked.cause is not None
            await conversation.answer(asked.cause, 80, by="Ada")
        assert conversation.state.answer == "done"
    assert events_of(conversation, ObservationEvent)[0].text == "port 80"
    assert outcomes(conversation) == ["answered"]


async def test_the_callback_answers_one_question_after_another() -> None:
    at_once = 0

    async def answer(question: QuestionAsked) -> int:
        nonlocal at_once
        at_once += 1
        assert at_once == 1
        await anyio.lowlevel.checkpoint()
        at_once -= 1
        return len(question.text)

    reply = calls(*[call("port")] * 3)
    async with talk([reply, say("done")], port, on_question=answer) as conversation:
        assert (await conversation.run("go")).text == "done"
    assert outcomes(conversation) == ["answered"] * 3


async def test_parallel_questions_are_answered_by_their_ids_in_any_order() -> None:
    @tool(resources=())
    async def two(ctx: ToolContext) -> str:
        """Ask two things."""
        answers: dict[str, Any] = {}

        async def ask(what: str) -> None:
            answers[what] = await ctx.question(what)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask, "host")
            tasks.start_soon(ask, "port")
        return f"{answers['host']}:{answers['port']}"

    async with talk([call("two"), say("done")], two, attended=True) as conversation, running(conversation):
        await until(lambda: len(conversation.state.questions) == 2)
        by_text = {question.text: question for question in conversation.state.questions}
        with pytest.raises(NothingPending, match=by_text["host"].id):
            await conversation.answer(by_text["host"].cause or "", "which one?")
        await conversation.answer(by_text["port"].id, "80")
        await conversation.answer(by_text["host"].id, "localhost")
    assert events_of(conversation, ObservationEvent)[0].text == "localhost:80"


async def test_a_question_in_a_sub_call_is_live() -> None:
    def answer(question: QuestionAsked) -> str:
        del question
        return "80"

    async with talk([call("sub_call"), say("done")], sub_call, on_question=answer) as conversation:
        assert (await conversation.run("go")).text == "done"
    assert events_of(conversation, QuestionAsked)[0].live


async def test_where_nobody_attends_it_is_declined_at_once() -> None:
    async with talk(SCRIPT, port) as conversation:
        assert (await conversation.run("go")).text == "done"
    assert outcomes(conversation) == ["declined"], conversation.state.events
    assert "nobody to ask" in error_of(conversation).error


async def test_a_declined_question_is_an_error_that_the_tool_may_catch() -> None:
    @tool(resources=())
    async def guess(ctx: ToolContext) -> str:
        """Ask, or guess."""
        try:
            return str(await ctx.question("Which port?"))
        except QuestionDeclined as declined:
            return f"guessed, as {declined}"

    async with talk([call("guess"), say("done")], guess, attended=True) as conversation, running(conversation):
        asked = await until(conversation, QuestionAsked)
        await conversation.decline(asked.id, "find out yourself")
    assert "find out yourself" in events_of(conversation, ObservationEvent)[0].text


async def test_an_interrupt_withdraws_the_question() -> None:
    async with talk(SCRIPT, port, attended=True) as conversation:
        async with running(conversation):
            asked = await until(conversation, QuestionAsked)
            await conversation.interrupt()
        assert conversation.state.questions == ()
        with pytest.raises(NothingPending):
            await conversation.answer(asked.id, 80)
    assert outcomes(conversation) == ["withdrawn"]
    assert error_of(conversation).outcome == "interrupted"


async def test_a_call_that_ends_withdraws_what_it_left_unanswered() -> None:
    @tool(resources=())
    async def impatient(ctx: ToolContext) -> str:
        """Ask, and do not wait for long."""
        with anyio.move_on_after(0.01):
            await ctx.question("Which port?")
        return "gave up"

    async with talk([call("impatient"), say("done")], impatient, attended=True) as conversation:
        assert (await conversation.run("go")).text == "done"
    assert outcomes(conversation) == ["withdrawn"]


async def test_a_broken_question_is_the_tools_own_error() -> None:
    @tool(resources=())
    async def broken(ctx: ToolContext) -> str:
        """Ask nothing."""
        return str(await ctx.question(" "))

    async with talk([call("broken"), say("done")], broken, attended=True) as conversation:
        assert (await conversation.run("go")).text == "done"
    assert not events_of(conversation, QuestionAsked)
    assert "empty" in error_of(conversation).error


async def test_a_callback_that_raises_fails_the_run() -> None:
    def gone(question: QuestionAsked) -> str:
        raise OSError("the terminal is gone")

    async with talk(SCRIPT, port, on_question=gone) as conversation:
        with pytest.raises(RunError, match="the terminal is gone"):
            await conversation.run("go")
        assert conversation.state.questions == ()
    assert outcomes(conversation) == ["withdrawn"]


async def test_no_clock_runs_while_a_person_is_asked() -> None:
    limits = Limits(call_seconds=0.2, run_seconds=0.2)
    async with talk(SCRIPT, port, attended=True, limits=limits) as conversation:
        async with running(conversation) as begun:
            asked = await until(conversation, QuestionAsked)
            core = core_of(conversation)
            turn = core.turn
            assert turn is not None
            timer = turn.timer
            assert timer is not None
            running_call = core.calls.running(asked.cause or "")
            assert running_call is not None
            await until(lambda: timer.scope.deadline == running_call.scope.deadline == float("inf"))
            assert conversation.state.working_since is None
            await conversation.answer(asked.id, 80)
            await until(lambda: asked.cause not in conversation.state.open_actions)
            assert timer.scope.deadline < float("inf")
        assert begun.result.text == "done"


async def test_a_stopped_run_still_counts_the_other_calls_time() -> None:
    reply = calls(call("port"), call("hang"))
    limits = Limits(call_seconds=0.1)
    async with talk([reply, say("done")], port, hang, attended=True, limits=limits) as conversation:
        async with running(conversation):
            asked = await until(conversation, QuestionAsked)
            late = await until(conversation, AgentErrorEvent)
            assert late.code == "call_seconds"
            await conversation.answer(asked.id, 80)
    assert {answer.kind for answer in answers_of(conversation)} == {"agent_error", "observation"}


async def test_after_a_crash_the_call_is_unknown_and_its_question_withdrawn_in_the_same_group() -> None:
    action = ActionEvent(reply_id="r", tool_name="port", call_id="c", arguments={})
    working = ConversationStateUpdateEvent(update=StatusChanged(status=ConversationStatus.RUNNING, code="run"))
    asked = QuestionAsked(cause=action.id, text="Which port?", live=True)
    store: MemoryStore = await log_of(working, action, ActionStarted(cause=action.id), asked)
    agent: Agent = scripted(ScriptedLLM([say("on")]), port)
    async with talk(agent, store=store, id="c", attended=True) as conversation:
        state = conversation.state
        assert (state.questions, state.pending, state.open_actions) == ((), (), {})
        (withdrawn,), unknown = events_of(conversation, QuestionAnswered), error_of(conversation)
        assert (withdrawn.outcome, withdrawn.question, unknown.outcome) == ("withdrawn", asked.id, "unknown")
        assert not state.is_settled(withdrawn.seq)
        assert state.is_settled(unknown.seq + 1), "one group: answer, withdrawal and status"


async def test_a_schema_that_is_none_is_refused_in_a_plain_sentence() -> None:
    refused: list[str] = []

    @tool
    async def asks(ctx: ToolContext) -> str:
        """Ask for something."""
        with pytest.raises(ValueError, match="valid JSON Schema") as error:
            await ctx.question("Which port?", {"type": "boolen"})
        refused.append(str(error.value))
        return "refused"

    async with talk([call("asks"), say("done")], asks, attended=True) as conversation:
        await conversation.run("go")
    (sentence,) = refused
    assert "validation error" not in sentence
    assert "\n" not in sentence
