"""Calls that had begun and ask: the question waits at rest, and the call is resumed with the answer."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import anyio
import pytest
from pydantic import JsonValue

from agentcore import (
    ActionApproved,
    AgentErrorEvent,
    AlwaysConfirm,
    FileStore,
    MemoryStore,
    ObservationEvent,
    QuestionAnswered,
    QuestionAsked,
    ToolContext,
    UserRejectObservation,
)
from agentcore.commands import Answer
from agentcore.conversation import Declined
from agentcore.errors import AnswerRefused, NothingPending, RewindRefused
from agentcore.events import ActionStarted
from agentcore.testing import ScriptedLLM, call, calls, say
from agentcore.tools import InputRequired, Resumption, ToolAnnotations, raw_tool, tool
from deploying import DEPLOY, SURE, WHERE, deploying
from talks import (
    FINISHED,
    IDLE,
    PAUSED,
    RUNNING,
    WAITING,
    answers_of,
    change,
    core_of,
    error_of,
    events_of,
    hang,
    ran,
    running,
    scripted,
    talk,
    until,
)


async def test_a_call_that_asks_waits_at_rest_and_is_resumed_with_the_note_and_the_answer() -> None:
    llm = ScriptedLLM([DEPLOY, say("done")])
    async with talk(llm, deploying()) as conversation:
        result = await conversation.run("go")
        (question,), (action,) = result.questions, result.pending
        assert (result.status, question.text, question.options) == (WAITING, "Where to?", ("staging", "production"))
        assert (question.cause, question.live, question.resumes, question.source) == (
            action.id,
            False,
            True,
            "environment",
        )
        assert not conversation.state.open_actions[action.id].started
        assert (await conversation.run("any news?")).status is WAITING, "a message answers nothing"
        with pytest.raises(AnswerRefused):
            await conversation.answer(action.id, "nowhere")
        await conversation.answer(action.id, "staging", by="Ada")
        final = await conversation.run()
    assert (final.text, final.questions) == ("done", ())
    assert ran == [
        (action.id, "2.0"),
        (action.id, "2.0", Resumption(note={"asked": 1, "own": None}, answer="staging")),
    ]
    (answer,) = answers_of(conversation)
    assert isinstance(answer, ObservationEvent)
    assert answer.text == "deployed to staging"
    (ended,) = events_of(conversation, QuestionAnswered)
    assert (ended.answer, ended.outcome, ended.by, ended.question) == ("staging", "answered", "Ada", question.id)
    assert len(events_of(conversation, ActionStarted)) == 2
    assert len(llm.requests) == 2, "the model is not asked before the call is answered"


async def test_answering_goes_on_by_itself() -> None:
    async with talk([DEPLOY, say("done")], deploying()) as conversation:
        await conversation.run("go")
        (question,) = conversation.state.questions
        assert not conversation.state.is_settled(question.seq)
        await conversation.answer(question.id, "staging")
        await until(lambda: conversation.state.status is FINISHED)


@pytest.mark.parametrize("how", ["decline", "reject", "callback"])
async def test_a_call_whose_question_is_declined_is_resumed_with_the_reason(how: str) -> None:
    def decline(question: QuestionAsked) -> Declined:
        assert question.resumes
        return Declined("too late")

    callback = decline if how == "callback" else None
    async with talk([DEPLOY, say("then not")], deploying(), on_question=callback) as conversation:
        pending = (await conversation.run("go")).pending
        if how == "decline":
            await conversation.decline(pending[0].id, "too late")
        elif how == "reject":
            await conversation.reject("too late", [pending[0].id])
        if how != "callback":
            assert conversation.state.status is RUNNING
        assert (await conversation.run()).text == "then not"
    assert ran[1][2] == Resumption(note={"asked": 1, "own": None}, declined="too late")
    assert not events_of(conversation, UserRejectObservation)
    assert [answer.text for answer in events_of(conversation, ObservationEvent)] == ["kept: too late"]


@pytest.mark.parametrize("by_callback", [True, False])
async def test_a_resumed_call_may_ask_again(by_callback: bool) -> None:
    asked: list[str] = []

    def on_question(question: QuestionAsked) -> JsonValue:
        asked.append(question.text)
        return "staging" if question.options else True

    asks = deploying(questions=(WHERE, SURE))
    async with talk([DEPLOY, say("done")], asks, on_question=on_question if by_callback else None) as conversation:
        result = await conversation.run("go")
        while result.questions:
            await conversation.answer(result.pending[0].id, on_question(result.questions[0]))
            result = await conversation.run()
    assert (result.text, asked) == ("done", ["Where to?", "Sure?"])
    assert [each[2].answer for each in ran[1:]] == ["staging", True]
    assert len(events_of(conversation, ActionStarted)) == 3
    assert len(answers_of(conversation)) == 1


async def test_a_tool_that_cannot_be_resumed_fails_with_its_question() -> None:
    async with talk([DEPLOY, say("sorry")], deploying(resumes=False)) as conversation:
        assert (await conversation.run("go")).text == "sorry"
    error = error_of(conversation)
    assert (error.outcome, error.code) == ("failed", "ToolError")
    assert "has no `resume`" in error.error
    assert "Where to?" in error.error
    assert not events_of(conversation, QuestionAsked)


async def test_the_other_calls_of_the_reply_run_and_one_that_ends_the_run_waits_for_the_question() -> None:
    reply = calls(DEPLOY, call("change", name="a"), call("finish", message="all done"))
    async with talk([reply], deploying(), change) as conversation:
        result = await conversation.run("go")
        assert (result.status, [action.tool_name for action in result.pending]) == (WAITING, ["deploy"])
        assert "a" in ran
        await conversation.answer(result.pending[0].id, "staging")
        final = await conversation.run()
    assert (final.status, final.text) == (FINISHED, "all done")
    assert len(answers_of(conversation)) == 3


async def test_two_calls_that_ask_are_resumed_each_with_its_own_answer() -> None:
    reply = calls(DEPLOY, call("deploy", version="3.0"))
    async with talk([reply, say("done")], deploying()) as conversation:
        first, second = (await conversation.run("go")).pending
        await conversation.answer(second.id, "production")
        result = await conversation.run()
        assert (result.status, result.pending) == (WAITING, (first,))
        await conversation.answer(first.id, "staging")
        assert (await conversation.run()).text == "done"
    assert [(each[1], each[2].answer) for each in ran if len(each) == 3] == [("3.0", "production"), ("2.0", "staging")]


async def test_an_approved_call_that_asks_is_not_approved_again_and_keeps_its_changed_arguments() -> None:
    async with talk([DEPLOY, say("done")], deploying(), confirm=AlwaysConfirm()) as conversation:
        (action,) = (await conversation.run("go")).pending
        await conversation.approve(action.id, {"version": "2.1"})
        result = await conversation.run()
        assert (result.status, [each.text for each in result.questions]) == (WAITING, ["Where to?"])
        with pytest.raises(NothingPending, match=r"answer\(id, value\)"):
            await conversation.approve()
        await conversation.answer(action.id, "staging")
        assert (await conversation.run()).text == "done"
    assert [each[1] for each in ran] == ["2.1", "2.1"]
    assert len(events_of(conversation, ActionApproved)) == 1


async def test_rejecting_all_that_waits_rejects_calls_and_resumes_those_that_asked() -> None:
    reply = calls(DEPLOY, call("change", name="a"))

    async with talk([reply, say("done")], deploying(), change, confirm=AlwaysConfirm()) as conversation:
        deploy, _ = (await conversation.run("go")).pending
        await conversation.approve(deploy.id)
        assert [each.tool_name for each in (await conversation.run()).pending] == ["deploy", "change"]
        await conversation.reject("not today")
        assert (await conversation.run()).text == "done"
    assert ran[-1][2].declined == "not today"
    assert [type(answer).__name__ for answer in answers_of(conversation)] == [
        "UserRejectObservation",
        "ObservationEvent",
    ]


@pytest.mark.parametrize("stored", [True, False])
async def test_a_call_is_resumed_after_closing_and_opening_again(stored: bool) -> None:
    store = FileStore("logs") if stored else MemoryStore()
    agent = scripted([DEPLOY, say("done")], deploying(note=["state", 1, None]))
    async with talk(agent, store=store, id="q") as conversation:
        await conversation.run("go")
    async with talk(agent, store=store, id="q") as conversation:
        assert conversation.state.status is WAITING
        (question,) = (await conversation.run()).questions
        await conversation.answer(question.id, "staging")
        assert (await conversation.run()).text == "done"
    assert ran[1][2].note == {"asked": 1, "own": ["state", 1, None]}
    assert len(answers_of(conversation)) == 1


async def test_an_answer_before_closing_is_carried_out_by_the_next_run() -> None:
    store = MemoryStore()
    agent = scripted([DEPLOY, say("done")], deploying())
    async with talk(agent, store=store, id="q") as conversation:
        (question,) = (await conversation.run("go")).questions
        core = core_of(conversation)
        core.journal.hand_over(Answer(question=question.id, value="staging"))
        core.life.stop.set()
    async with talk(agent, store=store, id="q") as conversation:
        assert (conversation.state.status, conversation.state.has_approved) == (PAUSED, True)
        assert (await conversation.run()).text == "done"
    assert [len(each) for each in ran] == [2, 3]
    assert len(answers_of(conversation)) == 1


async def test_an_interrupt_pauses_and_the_question_still_waits() -> None:
    async with talk([DEPLOY, say("done")], deploying()) as conversation:
        (action,) = (await conversation.run("go")).pending
        await conversation.interrupt()
        assert (conversation.state.status, conversation.state.pending) == (PAUSED, (action,))
        assert (await conversation.run()).status is WAITING
        await conversation.interrupt()
        await conversation.answer(action.id, "staging")
        assert (await conversation.run()).text == "done"


async def test_a_rewind_takes_the_call_back_and_a_fork_needs_a_settled_point() -> None:
    async with talk([DEPLOY, say("done")], deploying()) as conversation:
        await conversation.send("go")
        before = conversation.state.head
        await conversation.run()
        with pytest.raises(RewindRefused, match="nearest"):
            await conversation.fork()
        await conversation.rewind(before)
        assert (conversation.state.status, conversation.state.pending, conversation.state.questions) == (IDLE, (), ())
        assert (await conversation.run()).text == "done"
    assert [len(each) for each in ran] == [2], "it is not resumed"


@pytest.mark.parametrize("how", ["interrupt", "cancel"])
async def test_a_resumed_call_that_is_stopped_is_interrupted(how: str) -> None:
    async def ask(_: dict[str, JsonValue], ctx: ToolContext) -> str:
        raise InputRequired(WHERE)

    async def resume(_: dict[str, JsonValue], resumption: Resumption, ctx: ToolContext) -> str:
        assert resumption.note is None
        await anyio.sleep_forever()
        return "never"

    asks = raw_tool("deploy", "Deploy.", {"type": "object"}, ask, resume=resume)
    async with talk([call("deploy"), say("so be it")], asks) as conversation:
        (action,) = (await conversation.run("go")).pending
        await conversation.answer(action.id, "staging")
        async with running(conversation, None):
            await until(lambda: len(events_of(conversation, ActionStarted)) == 2)
            if how == "cancel":
                await conversation.interrupt_call(action.id)
            else:
                await conversation.interrupt()
    assert error_of(conversation).outcome == "interrupted"


async def test_a_call_that_was_answered_while_others_ran_and_is_interrupted_before_it_is_resumed_had_begun() -> None:
    async with talk([calls(DEPLOY, call("hang")), say("so be it")], deploying(), hang) as conversation:
        async with running(conversation):
            asked = await until(conversation, QuestionAsked)
            await conversation.answer(asked.id, "staging")
            await conversation.interrupt()
        assert (conversation.state.status, dict(conversation.state.open_actions)) == (PAUSED, {})
    (error,) = [event for event in events_of(conversation, AgentErrorEvent) if event.cause == asked.cause]
    assert error.outcome == "interrupted"
    assert "before it started" not in error.error
    assert [len(each) for each in ran] == [2]


async def test_a_call_that_was_answered_while_others_ran_is_resumed_after_them() -> None:
    opened = anyio.Event()

    @tool(resources=())
    async def wait() -> str:
        """Wait."""
        await opened.wait()
        return "waited"

    async with talk([calls(DEPLOY, call("wait")), say("done")], deploying(), wait) as conversation:
        async with running(conversation) as begun:
            asked = await until(conversation, QuestionAsked)
            await conversation.answer(asked.id, "staging")
            assert [len(each) for each in ran] == [2]
            opened.set()
        assert begun.result.text == "done"
    assert [len(each) for each in ran] == [2, 3]


async def test_the_agent_that_works_by_then_resumes_the_call() -> None:
    asks = deploying()
    async with talk([DEPLOY], asks) as conversation:
        (action,) = (await conversation.run("go")).pending
        await conversation.set_agent(scripted([say("by another model")], asks, change))
        await conversation.answer(action.id, "staging")
        assert (await conversation.run()).text == "by another model"
    assert [each[2].answer for each in ran[1:]] == ["staging"]


@pytest.mark.parametrize(
    ("changed", "outcome", "code", "why"),
    [
        ({"description": "Deploy anything."}, "interrupted", "tool_changed", "before it asked stays done"),
        ({"resume": None}, "failed", "ToolError", "has no `resume` any more"),
    ],
)
async def test_a_call_whose_tool_has_changed_is_answered_with_that(
    changed: dict[str, Any], outcome: str, code: str, why: str
) -> None:
    async with talk([DEPLOY], deploying()) as conversation:
        (action,) = (await conversation.run("go")).pending
        await conversation.set_agent(scripted([say("without it")], replace(deploying(), **changed)))
        await conversation.answer(action.id, "staging")
        assert (await conversation.run()).text == "without it"
    error = error_of(conversation)
    assert (error.outcome, error.code) == (outcome, code)
    assert why in error.error


async def test_a_question_from_a_task_group_of_the_tool_is_asked_too() -> None:
    async def ask(_: dict[str, JsonValue], ctx: ToolContext) -> str:
        async def require() -> None:
            raise InputRequired(WHERE)

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(require)
        return "never"

    async def resume(_: dict[str, JsonValue], resumption: Resumption, ctx: ToolContext) -> str:
        return str(resumption.answer)

    asks = raw_tool("deploy", "Deploy.", {"type": "object"}, ask, resume=resume)
    async with talk([call("deploy"), say("done")], asks) as conversation:
        (action,) = (await conversation.run("go")).pending
        await conversation.answer(action.id, "staging")
        assert (await conversation.run()).text == "done"


async def test_the_same_command_again_has_the_same_receipt_and_resumes_the_call_once() -> None:
    async with talk([DEPLOY, say("done")], deploying()) as conversation:
        (action,) = (await conversation.run("go")).pending
        journal = core_of(conversation).journal
        command = Answer(question=conversation.state.questions[0].id, value="staging")
        receipts = [await journal.receipt_of(journal.hand_over(command)) for _ in range(2)]
        await conversation.run()
    assert receipts[0] == receipts[1]
    assert receipts[0].actions == (action.id,)
    assert [len(each) for each in ran] == [2, 3]


async def test_a_read_only_call_that_is_resumed_may_fail_like_any_other() -> None:
    async def ask(_: dict[str, JsonValue], ctx: ToolContext) -> str:
        raise InputRequired(WHERE)

    async def resume(_: dict[str, JsonValue], resumption: Resumption, ctx: ToolContext) -> str:
        raise LookupError("no such place")

    asks = raw_tool(
        "deploy", "Deploy.", {"type": "object"}, ask, annotations=ToolAnnotations(read_only=True), resume=resume
    )
    async with talk([call("deploy"), say("done")], asks) as conversation:
        (action,) = (await conversation.run("go")).pending
        await conversation.answer(action.id, "staging")
        assert (await conversation.run()).text == "done"
    (error,) = events_of(conversation, AgentErrorEvent)
    assert (error.code, error.cause) == ("LookupError", action.id)
