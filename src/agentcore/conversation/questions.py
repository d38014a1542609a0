"""Questions of an open conversation: what answers them, and those that running calls wait for.

Above: the core, which ends a live question when its answer is folded; `answering.py`, which asks the program's callback.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias, final

import anyio
from pydantic import JsonValue

from agentcore.events import QuestionAnswered, QuestionAsked, QuestionOutcome
from agentcore.record import ConversationState

NO_ANSWER = "The user did not answer, and gave no reason."


@final
@dataclass(frozen=True, slots=True)
class Declined:
    """No answer: the model reads why."""

    reason: str = NO_ANSWER
    """The reason that the model reads."""
    by: str | None = None
    """The name of the person."""


@final
@dataclass(frozen=True, slots=True)
class Answered:
    """An answer, with the name of the person who gave it."""

    value: JsonValue
    """The answer."""
    by: str | None = None
    """The name of the person."""


OnQuestion: TypeAlias = Callable[
    [QuestionAsked], Awaitable[JsonValue | Answered | Declined] | JsonValue | Answered | Declined
]
"""A function of the program that answers questions; one that is not async is called in a worker thread. None is `Declined()`."""


@final
class LiveQuestion:
    """A question that a running call waits for."""

    def __init__(self, event: QuestionAsked) -> None:
        self.event = event
        self.done = anyio.Event()
        """Set when there is no more to wait for."""
        self.outcome: QuestionOutcome = "withdrawn"
        self.value: JsonValue = None
        """The answer as it was given, which the log has masked; the reason, where it was declined."""


@final
class LiveQuestions:
    """Those of one conversation."""

    def __init__(self) -> None:
        self._open: dict[str, LiveQuestion] = {}
        self.one_at_a_time = anyio.Lock()
        """Held while the program's callback is asked: a person reads one question after another."""

    def add(self, event: QuestionAsked) -> LiveQuestion:
        """Note a question before it is recorded: its answer may come as soon as it is seen."""
        live = self._open[event.id] = LiveQuestion(event)
        return live

    def end(self, question_id: str, outcome: QuestionOutcome, value: JsonValue) -> None:
        """End a question, by its id or by that of its action; nothing where no call waits for it."""
        found = [live for live in self._open.values() if question_id in (live.event.id, live.event.cause)]
        if len(found) == 1:
            (live,) = found
            del self._open[live.event.id]
            live.outcome, live.value = outcome, value
            live.done.set()

    def withdraw(self, action_id: str) -> None:
        """End the questions of a call that is over."""
        for live in [live for live in self._open.values() if live.event.cause == action_id]:
            self.forget(live)

    def forget(self, live: LiveQuestion) -> None:
        """Let go of a question that nobody waits for any more."""
        self._open.pop(live.event.id, None)
        live.done.set()


def withdraw(state: ConversationState, action_id: str | None, reason: str) -> list[QuestionAnswered]:
    """Return the events that withdraw the live questions of an action, or of all."""
    return [
        QuestionAnswered(cause=question.cause, question=question.id, outcome="withdrawn", reason=reason)
        for question in state.questions
        if question.live and action_id in (None, question.cause)
    ]
