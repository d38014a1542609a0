"""Questions to a callback of the program."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from agentcore import (
    ActionEvent,
    AlwaysConfirm,
    Limits,
    QuestionAnswered,
    QuestionAsked,
    ask_user,
)
from agentcore.conversation import Answered, Declined
from agentcore.errors import ReentrantCall, RunError
from agentcore.testing import call, calls, say
from asking import ASK, ASK_PORT
from talks import (
    WAITING,
    change,
    core_of,
    events_of,
    ran,
    scripted,
    talk,
)


@pytest.mark.parametrize("is_async", [True, False])
async def test_a_callback_answers_and_the_run_goes_on(is_async: bool) -> None:
    asked: list[QuestionAsked] = []

    def now(question: QuestionAsked) -> Any:
        asked.append(question)
        return Answered(80, by="Ada") if question.answer_schema else "localhost"

    async def later(question: QuestionAsked) -> Any:
        return now(question)

    script = [ASK_PORT, call("ask_user", text="Which host?"), say("thanks")]
    async with talk(script, ask_user, on_question=later if is_async else now) as conversation:
        result = await conversation.run("go")
    assert (result.text, [question.text for question in asked]) == ("thanks", ["Which port?", "Which host?"])
    assert [(e.answer, e.by) for e in events_of(conversation, QuestionAnswered)] == [(80, "Ada"), ("localhost", None)]


@pytest.mark.parametrize(("answer", "reason"), [(None, "did not answer"), (Declined("busy"), "busy")])
async def test_a_callback_may_decline(answer: Any, reason: str) -> None:
    def decline(question: QuestionAsked) -> Any:
        del question
        return answer

    async with talk([ASK, say("ok")], ask_user, on_question=decline) as conversation:
        assert (await conversation.run("go")).text == "ok"
    (ended,) = events_of(conversation, QuestionAnswered)
    assert ended.outcome == "declined"
    assert reason in (ended.reason or "")


async def test_a_callback_that_raises_or_answers_wrongly_fails_the_run_and_the_question_waits() -> None:
    def broken(question: QuestionAsked) -> Any:
        if question.answer_schema is None:
            raise OSError("the terminal is gone")
        return "no port"

    async with talk([ASK], ask_user, on_question=broken) as conversation:
        with pytest.raises(RunError, match="the terminal is gone"):
            await conversation.run("go")
        assert len(conversation.state.questions) == 1
    async with talk([ASK_PORT], ask_user, on_question=broken) as conversation:
        with pytest.raises(RunError, match="'no port' is not of type"):
            await conversation.run("go")


async def test_a_callback_is_withdrawn_when_the_question_is_answered_elsewhere() -> None:
    withdrawn = anyio.Event()
    asked = anyio.Event()

    async def never(question: QuestionAsked) -> None:
        del question
        asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            withdrawn.set()

    async with talk([ASK, say("thanks")], ask_user, on_question=never) as conversation:

        async def elsewhere() -> None:
            await asked.wait()
            assert conversation.state.status is WAITING
            await conversation.answer(conversation.state.questions[0].id, "80")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(elsewhere)
            assert (await conversation.run("go")).text == "thanks"
        assert withdrawn.is_set()


async def test_a_callback_for_questions_decides_on_no_action_and_the_other_way_round() -> None:
    def answer(question: QuestionAsked) -> str:
        del question
        return "80"

    def allow(action: ActionEvent) -> bool:
        del action
        return True

    reply = calls(call("change", name="a"), ASK)
    agent = scripted([reply, say("ok")], ask_user, change)
    async with talk(agent, confirm=AlwaysConfirm(), on_question=answer) as conversation:
        result = await conversation.run("go")
        assert (result.status, [each.tool_name for each in result.pending]) == (WAITING, ["change"])
        assert (await conversation.run()).status is WAITING
    agent = scripted([reply, say("ok")], ask_user, change)
    async with talk(agent, confirm=allow) as conversation:
        result = await conversation.run("go")
        assert ([each.tool_name for each in result.pending], ran) == (["ask_user"], ["a"])
        assert (await conversation.run()).status is WAITING


async def test_a_callback_cannot_wait_for_its_own_run() -> None:
    async def inside(question: QuestionAsked) -> str:
        del question
        await conversation.run()
        return "never"

    async with talk([ASK], ask_user, on_question=inside) as conversation:
        with pytest.raises(RunError) as failed:
            await conversation.run("go")
        assert isinstance(failed.value.error, ReentrantCall)


async def test_waiting_for_a_callback_is_not_working_time() -> None:
    async def slow(question: QuestionAsked) -> str:
        del question
        turn = core_of(conversation).turn
        timer = turn and turn.timer
        assert timer is not None
        assert timer.scope.deadline == float("inf")
        return "80"

    limits = Limits(run_seconds=1000)
    async with talk([ASK, say("thanks")], ask_user, on_question=slow, limits=limits) as conversation:
        assert (await conversation.run("go")).text == "thanks"
