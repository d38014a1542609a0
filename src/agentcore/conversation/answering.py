"""Having questions answered: by the program's callback, or by whoever calls `answer` while a call waits."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Final

import anyio
from pydantic import JsonValue

from agentcore import commands
from agentcore._threads import Threads
from agentcore.conversation.core import Core
from agentcore.conversation.exceptions import open_group
from agentcore.conversation.guards import mark_running_in
from agentcore.conversation.journal import Attachment
from agentcore.conversation.questions import Answered, Declined, LiveQuestion, OnQuestion, withdraw
from agentcore.conversation.turn import Turn
from agentcore.errors import ConversationClosed, NothingPending, QuestionDeclined, StoreError
from agentcore.events import QuestionAnswered, QuestionAsked
from agentcore.record import ConversationState
from agentcore.tools import check_answer

_ANSWERING: Final = Threads("answering", math.inf)
"""Each waits for a person, so that a bound would have one conversation wait for the person of another."""

_NOBODY: Final = "There is nobody to ask now. Go on without the answer, and say what you assumed."


class CallbackFailed(Exception):
    """The program's callback raised, or its answer does not fit: the run fails with that."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


async def check_in_thread(question: QuestionAsked, value: object) -> JsonValue:
    """Check an answer, as `check_answer`; a schema may take a while, and what checks it is imported first.

    Raises:
        AnswerRefused: It does not fit the question.
    """
    if question.answer_schema is None:
        return check_answer(question, value)
    return await anyio.to_thread.run_sync(check_answer, question, value)


async def answer_by_callback(core: Core, on_question: OnQuestion, question: QuestionAsked) -> commands.Command:
    """Ask the program's callback, and return the command that says what it answered.

    Raises:
        AnswerRefused: The answer does not fit the question.
    """
    with mark_running_in(core.state.conversation_id):
        answer = await _ANSWERING.call(on_question, question)
    if answer is None:
        answer = Declined()
    if isinstance(answer, Declined):
        return commands.Decline(question=question.id, reason=answer.reason, by=answer.by)
    value, by = (answer.value, answer.by) if isinstance(answer, Answered) else (answer, None)
    return commands.Answer(question=question.id, value=await check_in_thread(question, value), by=by)


async def ask_live(core: Core, turn: Turn | None, asked: QuestionAsked) -> JsonValue:
    """Ask a question of a running call, and wait for the answer; the clock of the run stands meanwhile.

    Raises:
        QuestionDeclined: There will be no answer.
        CallbackFailed: The program's callback raised.
    """
    if turn is None or turn.timer is None or not core.attended:
        nobody = QuestionAnswered(cause=asked.cause, question=asked.id, outcome="declined", reason=_NOBODY)
        await core.journal.write(asked, nobody)
        raise QuestionDeclined(_NOBODY)
    live = core.live_questions.add(asked)
    call = core.calls.running(asked.cause or "")
    try:
        await core.journal.write(asked)
        turn.timer.pause()
        if call is not None:
            call.pause()
        try:
            await _wait(core, live)
        finally:
            turn.timer.resume()
            if call is not None:
                call.resume()
    finally:
        core.live_questions.forget(live)
        if live.outcome == "withdrawn":
            with suppress(StoreError, ConversationClosed):  # the core reports these to those who wait
                await core.journal.write_composed(lambda state: _withdraw_one(state, asked.id))  # noqa: ASYNC102 shielded there
    if live.outcome == "answered":
        return live.value
    why = live.value if isinstance(live.value, str) else "the call has ended."
    raise QuestionDeclined(f"The question was not answered: {why}")


def _withdraw_one(state: ConversationState, question_id: str) -> list[QuestionAnswered]:
    return [each for each in withdraw(state, None, "The call that asked ended.") if each.question == question_id]


async def _wait(core: Core, live: LiveQuestion) -> None:
    """Wait until the question has an answer, from the callback where there is one, or from elsewhere."""
    question = next((each for each in core.state.questions if each.id == live.event.id), None)
    if question is None:  # the call was answered meanwhile: it did not stop when it was asked to
        return
    on_question, failed = core.on_question, None
    if on_question is None:
        await live.done.wait()
        return
    async with open_group() as tasks:

        async def stop_asking() -> None:
            await live.done.wait()
            tasks.cancel_scope.cancel()

        tasks.start_soon(stop_asking)
        async with core.live_questions.one_at_a_time:
            try:
                command = await answer_by_callback(core, on_question, question)
            except Exception as error:
                failed = error
            else:
                with suppress(NothingPending):  # another answer came first
                    await core.journal.receipt_of(core.journal.hand_over(command, Attachment()))
        tasks.cancel_scope.cancel()
    if failed is not None and not live.done.is_set():
        raise CallbackFailed(failed)
