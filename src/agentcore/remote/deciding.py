"""The program's `confirm=` and `on_question=` callbacks, where the conversation is held by a server.

Above: the remote link, which runs this beside the log that it follows. The server asks nobody: that an action or a question
waits stands in the state, and what the callbacks answer is sent as the command that a person's answer would be.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple, final

import anyio

from agentcore import commands
from agentcore._threads import Threads
from agentcore.assessment import SecurityRisk
from agentcore.conversation import Answered, Declined, OnQuestion
from agentcore.conversation.answering import check_in_thread
from agentcore.conversation.guards import mark_running_in
from agentcore.conversation.link import Link
from agentcore.errors import ConversationClosed, NothingPending
from agentcore.events import ActionEvent, ConversationStatus, QuestionAsked
from agentcore.security import Confirm, Reject, rated, read_answer

_DECIDING: Final = Threads("deciding", math.inf)
"""Each waits for a person, so that a bound would have one conversation wait for the person of another."""


class _Waiting(NamedTuple):
    """Something that a callback is to be asked about."""

    id: str
    """The id of the action, or of the question."""
    ask: Callable[[], Awaitable[commands.Command]]
    """Calls the callback, and returns the command for its answer."""


@final
class Deciding:
    """Calls the callbacks about what waits while a run goes on: one action after another, and beside them one live question."""

    def __init__(
        self,
        link: Link,
        *,
        confirm: Confirm | None = None,
        on_question: OnQuestion | None = None,
        on_error: Callable[[Exception], Awaitable[object]],
    ) -> None:
        """Take the link of the conversation and its callbacks.

        Args:
            link: It carries the decisions.
            confirm: Asked about actions that wait.
            on_question: Asked the questions.
            on_error: Called with what a callback raised, or with the error of an answer that does not fit. It is to end the run:
                the same action or question is not asked about again before the next one.
        """
        self._link = link
        self._confirm = confirm
        self._on_question = on_question
        self._on_error = on_error
        self._failed: tuple[int, set[str]] = (0, set())
        """The ids that failed, in the run that began at this seq."""

    async def run(self) -> None:
        """Decide until the conversation is closed."""
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._follow, self._next_at_rest)
            tasks.start_soon(self._follow, self._next_live)

    async def _follow(self, find: Callable[[], _Waiting | None]) -> None:
        while not self._link.head_signal.closed:
            waiting = find()
            if waiting is None:
                await self._link.head_signal.wait()
            else:
                await self._decide(waiting, find)

    def _next_at_rest(self) -> _Waiting | None:
        """Return the first action that the run waits for, if one of the callbacks is for it."""
        state = self._link.state
        if not state.is_asking:
            return None
        for event in state.pending:
            action = state.open_actions[event.id]
            # An action may ask several questions, one after another.
            if self._has_failed(event.id if action.question is None else action.question.id):
                continue
            if action.question is not None and self._on_question is not None:
                return _Waiting(action.question.id, partial(self._ask_question, action.question))
            if action.question is None and self._confirm is not None:
                return _Waiting(event.id, partial(self._ask_confirm, event, action.risk))
        return None

    def _next_live(self) -> _Waiting | None:
        """Return the first question that a running call waits for."""
        state = self._link.state
        if self._on_question is None or state.status is not ConversationStatus.RUNNING:
            return None
        for question in state.questions:
            if question.live and not self._has_failed(question.id):
                return _Waiting(question.id, partial(self._ask_question, question))
        return None

    async def _decide(self, waiting: _Waiting, find: Callable[[], _Waiting | None]) -> None:
        """Ask about one, and send the answer; stop asking where it was decided on elsewhere, or the run stopped."""
        failure: Exception | None = None
        async with anyio.create_task_group() as tasks:

            async def withdraw() -> None:
                while (found := find()) is not None and found.id == waiting.id and not self._link.head_signal.closed:
                    await self._link.head_signal.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(withdraw)
            try:
                # A decision that is on its way when another one comes first is not waited for: one of the two counts.
                with suppress(NothingPending, ConversationClosed):
                    await self._link.execute(await waiting.ask())
            except Exception as error:  # a callback is anybody's code
                failure = error
            tasks.cancel_scope.cancel()
        if failure is not None:
            self._fail(waiting.id)
            await self._on_error(failure)

    async def _ask_confirm(self, event: ActionEvent, risk: SecurityRisk) -> commands.Command:
        assert self._confirm is not None
        with mark_running_in(self._link.state.conversation_id):
            answer = read_answer(await _DECIDING.call(self._confirm, rated(event, risk)), event)
        if isinstance(answer, Reject):
            return commands.Reject(ids=(event.id,), reason=answer.reason, by=answer.by)
        return commands.Approve(ids=(event.id,), arguments=answer.arguments, by=answer.by)

    async def _ask_question(self, question: QuestionAsked) -> commands.Command:
        assert self._on_question is not None
        with mark_running_in(self._link.state.conversation_id):
            answer = await _DECIDING.call(self._on_question, question)
        if answer is None:
            answer = Declined()
        if isinstance(answer, Declined):
            return commands.Decline(question=question.id, reason=answer.reason, by=answer.by)
        value, by = (answer.value, answer.by) if isinstance(answer, Answered) else (answer, None)
        return commands.Answer(question=question.id, value=await check_in_thread(question, value), by=by)

    def _has_failed(self, key: str) -> bool:
        run, keys = self._failed
        return run == self._link.state.run.seq and key in keys

    def _fail(self, key: str) -> None:
        run = self._link.state.run.seq
        keys = self._failed[1] if self._failed[0] == run else set[str]()
        self._failed = (run, {*keys, key})
