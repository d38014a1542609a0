"""Questions at rest: the call of `ask_user` waits, and the answer is its observation."""

from __future__ import annotations

from collections.abc import Sequence
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
    UserRejectObservation,
    ask_user,
)
from agentcore.commands import Answer, Decline, Receipt
from agentcore.conversation import Declined
from agentcore.errors import AnswerRefused, NothingPending, RewindRefused
from agentcore.record import Record
from agentcore.testing import ScriptedLLM, ScriptLine, call, calls, say
from asking import ASK, ASK_PORT, PORT
from talks import (
    FINISHED,
    IDLE,
    PAUSED,
    WAITING,
    HookedStore,
    answers_of,
    at_once,
    change,
    core_of,
    events_of,
    ran,
    scripted,
    talk,
)


async def test_a_question_waits_and_its_answer_is_the_observation() -> None:
    llm = ScriptedLLM([ASK, say("thanks")])
    async with talk(llm, ask_user) as conversation:
        result = await conversation.run("go")
        assert (result.status, [action.tool_name for action in result.pending]) == (WAITING, ["ask_user"])
        (question,) = result.questions
        assert (question.text, question.cause, question.live) == ("Which port?", result.pending[0].id, False)
        assert conversation.state.questions == (question,)
        assert (await conversation.run("any news?")).status is WAITING, "a message answers nothing"
        await conversation.answer(result.pending[0].id, "8080", by="Ada")
        final = await conversation.run()
    assert (final.text, final.steps, final.questions) == ("thanks", 2, ())
    (ended,) = events_of(conversation, QuestionAnswered)
    assert (ended.answer, ended.outcome, ended.by, ended.question) == ("8080", "answered", "Ada", question.id)
    (observation,) = events_of(conversation, ObservationEvent)
    assert (observation.text, observation.data, observation.cause) == ("8080", {"answer": "8080"}, question.cause)
    assert "8080" in str(llm.requests[1].messages[-2])


async def test_answering_goes_on_by_itself_and_the_question_has_the_group_of_its_reply() -> None:
    async with talk([ASK, say("thanks")], ask_user) as conversation:
        await conversation.run("go")
        (question,) = conversation.state.questions
        assert not conversation.state.is_settled(question.seq)
        await conversation.answer(question.id, "8080")
        while conversation.state.status is not FINISHED:
            await anyio.lowlevel.checkpoint()


async def test_a_declined_question_is_answered_with_the_reason_and_leaves_the_conversation_idle() -> None:
    llm = ScriptedLLM([ASK, say("understood")])
    async with talk(llm, ask_user) as conversation:
        (action,) = (await conversation.run("go")).pending
        await conversation.decline(action.id, "ask Bob", by="Ada")
        assert conversation.state.status is IDLE
        assert (await conversation.run()).text == "understood"
    (answer,) = events_of(conversation, UserRejectObservation)
    assert (answer.reason, answer.by) == ("ask Bob", "Ada")
    assert [(e.outcome, e.reason) for e in events_of(conversation, QuestionAnswered)] == [("declined", "ask Bob")]
    assert shown_to(llm) == "The question was not answered: ask Bob"


@pytest.mark.parametrize("how", ["decline", "reject", "callback"])
async def test_the_model_reads_that_its_question_was_not_answered_however_it_was_declined(how: str) -> None:
    llm = ScriptedLLM([ASK, say("understood")])

    def on_question(question: QuestionAsked) -> Declined:
        assert question.text == "Which port?"
        return Declined("not now")

    async with talk(llm, ask_user, on_question=on_question if how == "callback" else None) as conversation:
        pending = (await conversation.run("go")).pending
        if how == "decline":
            await conversation.decline(pending[0].id, "not now")
        elif how == "reject":
            await conversation.reject("not now")
        await conversation.run()
    assert shown_to(llm) == "The question was not answered: not now"


def shown_to(llm: ScriptedLLM) -> str:
    """Return the answer that the second request ends with."""
    (answer,) = llm.requests[1].answers
    return answer


async def test_calls_before_the_question_run_and_those_after_it_do_not() -> None:
    reply = calls(call("change", name="a"), ASK, call("change", name="b"), call("finish", message="done"))
    async with talk([reply, say("thanks")], ask_user, change) as conversation:
        (action,) = (await conversation.run("go")).pending
        assert ran == ["a"]
        assert [error.code for error in events_of(conversation, AgentErrorEvent)] == ["after_question"] * 2
        await conversation.answer(action.id, "yes")
        assert (await conversation.run()).text == "thanks"
    assert ran == ["a"]


async def test_questions_in_a_row_are_all_asked_and_answered_one_by_one() -> None:
    reply = calls(ASK, call("ask_user", text="Which host?"))
    async with talk([reply, say("thanks")], ask_user) as conversation:
        first, second = (await conversation.run("go")).pending
        await conversation.answer(second.id, "localhost")
        result = await conversation.run()
        assert (result.status, result.pending) == (WAITING, (first,))
        await conversation.decline(first.id)
        assert conversation.state.status is IDLE
        assert (await conversation.run()).text == "thanks"


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ({"text": " "}, "empty"),
        ({"text": "x" * 4_001}, "4,000"),
        ({"text": "?", "answer_schema": {"type": "strin"}}, "valid JSON Schema"),
        ({"text": "?", "answer_schema": {"$ref": "#/nowhere"}}, "nowhere"),
        ({"text": "?", "answer_schema": {"description": "x" * 10_000}}, "too large"),
        ({"text": "?", "options": ["a", "a"]}, "the same"),
        ({"text": "?", "options": [str(n) for n in range(51)]}, "50"),
        ({"text": "?", "options": ["x" * 501]}, "500"),
        ({"text": "?", "options": ["a"], "answer_schema": {"type": "integer"}}, "'a'"),
    ],
)
async def test_a_broken_question_is_an_answer_for_the_model(arguments: dict[str, Any], why: str) -> None:
    async with talk([call("ask_user", **arguments), say("sorry")], ask_user) as conversation:
        assert (await conversation.run("go")).text == "sorry"
        assert not events_of(conversation, QuestionAsked)
    (error,) = events_of(conversation, AgentErrorEvent)
    assert error.code == "bad_arguments"
    assert why in error.error
    assert "Value error" not in error.error
    assert "The whole" not in error.error


@pytest.mark.parametrize(
    ("question", "wrong", "why", "right"),
    [
        ({}, 7, "text, not 7", "seven"),
        ({}, " ", "empty", "seven"),
        ({}, "x" * 30_001, "30,000", "seven"),
        ({"options": ["a", "b"]}, "c", "'a', 'b'", "b"),
        ({"answer_schema": PORT}, "80", "not of type 'integer'", 80),
        ({"answer_schema": PORT}, 0, "less than the minimum", 80),
        ({"answer_schema": {"type": "array"}}, {1, 2}, "JSON", [1, 2]),
        ({"answer_schema": {"type": "number"}}, float("nan"), "JSON", 1.5),
        ({"answer_schema": {"type": "object", "required": ["a"]}}, {}, "'a' is a required", {"a": [None]}),
    ],
)
async def test_an_answer_that_does_not_fit_is_refused_by_name_and_nothing_is_lost(
    question: dict[str, Any], wrong: object, why: str, right: Any
) -> None:
    async with talk([call("ask_user", text="?", **question), say("thanks")], ask_user) as conversation:
        (action,) = (await conversation.run("go")).pending
        head = conversation.state.head
        with pytest.raises(AnswerRefused, match=why):
            await conversation.answer(action.id, wrong)
        assert (conversation.state.head, conversation.state.status) == (head, WAITING)
        await conversation.answer(action.id, right)
        assert (await conversation.run()).text == "thanks"
    assert events_of(conversation, ObservationEvent)[0].data == {"answer": right}


async def test_a_schema_that_breaks_where_the_answer_meets_it_can_only_be_declined() -> None:
    broken: dict[str, JsonValue] = {"properties": {"a": {"$ref": "#/nowhere"}}}
    async with talk([call("ask_user", text="?", answer_schema=broken), say("ok")], ask_user) as conversation:
        (action,) = (await conversation.run("go")).pending
        with pytest.raises(AnswerRefused, match=r"nowhere.* Decline"):
            await conversation.answer(action.id, {"a": 1})
        await conversation.decline(action.id)
        assert (await conversation.run()).text == "ok"


async def test_approving_passes_over_questions_and_rejecting_declines_them() -> None:
    reply = calls(call("change", name="a"), ASK)
    async with talk([reply, say("ok")], ask_user, change, confirm=AlwaysConfirm()) as conversation:
        _, question = (await conversation.run("go")).pending
        with pytest.raises(NothingPending, match=r"answer\(id, value\)"):
            await conversation.approve(question.id)
        await conversation.approve()
        result = await conversation.run()
        assert (ran, result.pending) == (["a"], (question,))
        with pytest.raises(NothingPending, match=r"answer\(id, value\)"):
            await conversation.approve()
        await conversation.reject("not now")
        assert conversation.state.status is IDLE
    assert [each.outcome for each in events_of(conversation, QuestionAnswered)] == ["declined"]
    assert len(events_of(conversation, ActionApproved)) == 1


async def test_what_does_not_wait_cannot_be_answered_and_what_does_is_named() -> None:
    async with talk([ASK, say("thanks")], ask_user) as conversation:
        (action,) = (await conversation.run("go")).pending
        with pytest.raises(NothingPending, match=rf"Waiting: {action.id} \(Which port\?\)\.$"):
            await conversation.answer("ev_nothing", "x")
        with pytest.raises(TypeError, match="id of a question"):
            await conversation.answer(7, "x")  # type: ignore[arg-type]
        await conversation.answer(action.id, "x")
        await conversation.run()
        with pytest.raises(NothingPending, match=r"No question .* waiting for an answer"):
            await conversation.decline(action.id)


@pytest.mark.parametrize("stored", [True, False])
async def test_a_question_survives_closing_and_opening_again(stored: bool) -> None:
    store = FileStore("logs") if stored else MemoryStore()
    agent = scripted([ASK_PORT, say("thanks")], ask_user)
    async with talk(agent, store=store, id="q") as conversation:
        await conversation.run("go")
    async with talk(agent, store=store, id="q") as conversation:
        assert conversation.state.status is WAITING
        (question,) = (await conversation.run()).questions
        assert question.answer_schema == PORT
        await conversation.answer(question.id, 80)
        assert (await conversation.run()).text == "thanks"


async def test_two_answers_at_once_are_one_answer() -> None:
    refused: list[Exception] = []
    async with talk([ASK, say("thanks")], ask_user) as conversation:
        (action,) = (await conversation.run("go")).pending

        async def answer(value: str) -> None:
            try:
                await conversation.answer(action.id, value)
            except NothingPending as error:
                refused.append(error)

        await at_once(lambda: answer("1"), lambda: answer("2"))
        await conversation.run()
    assert len(refused) == 1
    assert len(answers_of(conversation)) == len(events_of(conversation, QuestionAnswered)) == 1


async def test_a_caller_that_is_cancelled_has_answered_all_the_same() -> None:
    held, go_on = anyio.Event(), anyio.Event()

    async def hold(records: Sequence[Record]) -> None:
        if any(b"question_answered" in record.body for record in records):
            held.set()
            await go_on.wait()

    async with talk([ASK, say("thanks")], ask_user, store=HookedStore(hold)) as conversation:
        (action,) = (await conversation.run("go")).pending
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(conversation.answer, action.id, "80")
            await held.wait()
            tasks.cancel_scope.cancel()
        go_on.set()
        assert (await conversation.run()).text == "thanks"
    assert len(answers_of(conversation)) == 1


async def test_the_same_command_again_has_the_same_receipt_and_writes_nothing() -> None:
    async with talk([ASK, say("thanks")], ask_user) as conversation:
        (action,) = (await conversation.run("go")).pending
        # As a connection does that sends a command once more.
        journal = core_of(conversation).journal
        command = Answer(question=action.id, value="80", by="Ada")
        receipts = [await journal.receipt_of(journal.hand_over(command)) for _ in range(2)]
        await conversation.run()
        assert await journal.receipt_of(journal.hand_over(command)) == receipts[0]
        with pytest.raises(NothingPending):
            await journal.receipt_of(journal.hand_over(Decline(question=action.id, reason="no")))
    assert receipts[0] == receipts[1]
    assert receipts[0].actions == (action.id,)
    assert isinstance(conversation.state.receipt(command.id), Receipt)
    assert len(answers_of(conversation)) == 1


async def test_secrets_in_a_question_and_in_its_answer_are_masked() -> None:
    token = "tok-12345678"
    script: list[ScriptLine] = [call("ask_user", text=f"Is it {token}?", options=[token, "no"]), say("thanks")]
    llm = ScriptedLLM(script)
    async with talk(llm, ask_user, secrets={"TOKEN": token}) as conversation:
        (question,) = (await conversation.run("go")).questions
        assert question.options == ("<secret:TOKEN>", "no")
        await conversation.answer(question.id, "<secret:TOKEN>")
        await conversation.run()
    async with talk([ASK, say("thanks")], ask_user, secrets={"TOKEN": token}) as other:
        (question,) = (await other.run("go")).questions
        await other.answer(question.id, f"use {token}")
        await other.run()
    for each in (conversation, other):
        assert token not in "".join(event.model_dump_json() for event in each.state.events)
    assert events_of(other, ObservationEvent)[0].text == "use <secret:TOKEN>"


async def test_a_fork_and_a_rewind_need_a_settled_point_and_a_rewind_takes_the_question_back() -> None:
    async with talk([ASK, say("thanks")], ask_user) as conversation:
        await conversation.send("go")
        before = conversation.state.head
        await conversation.run()
        with pytest.raises(RewindRefused, match="nearest"):
            await conversation.fork()
        await conversation.rewind(before)
        assert (conversation.state.status, conversation.state.pending, conversation.state.questions) == (IDLE, (), ())
        assert (await conversation.run()).text == "thanks"


async def test_an_interrupt_pauses_and_the_question_still_waits() -> None:
    async with talk([ASK, say("thanks")], ask_user) as conversation:
        (action,) = (await conversation.run("go")).pending
        await conversation.interrupt()
        assert (conversation.state.status, conversation.state.pending) == (PAUSED, (action,))
        assert (await conversation.run()).status is WAITING
        await conversation.interrupt()
        await conversation.answer(action.id, "80")
        assert (await conversation.run()).text == "thanks"
