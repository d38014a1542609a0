"""The part of a conversation's state that follows the active branch: what the model is shown, which actions are open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self

from agentcore.events import (
    ActionApproved,
    ActionAssessed,
    ActionEvent,
    ActionStarted,
    AgentErrorEvent,
    AnswerEvent,
    Condensation,
    CondensationSummaryEvent,
    ContextAdded,
    Event,
    MessageEvent,
    ObservationEvent,
    QuestionAnswered,
    QuestionAsked,
    SystemPromptEvent,
    UsageEvent,
    UserRejectObservation,
)
from agentcore.record.ledger import OpenAction

ShownEvent = (
    SystemPromptEvent
    | ContextAdded
    | MessageEvent
    | ActionEvent
    | CondensationSummaryEvent
    | ObservationEvent
    | UserRejectObservation
    | AgentErrorEvent
    | Condensation
)
"""The events that make up the model's view. A condensation stands where its summary does."""


class Branch:
    """Folds the events of one branch, in order."""

    __slots__ = (
        "answer",
        "data",
        "finished_by",
        "has_message",
        "last_cut",
        "last_step",
        "last_user_seq",
        "masked",
        "open_actions",
        "prompt",
        "questions",
        "shown",
    )

    def __init__(self) -> None:
        self.shown: list[ShownEvent] = []
        """The events that the model is shown now, in order. What was forgotten is not among them."""
        self.masked: set[str] = set()
        """The ids of answers whose content is left out."""
        self.open_actions: dict[str, OpenAction] = {}
        self.questions: dict[str, QuestionAsked] = {}
        """The questions of open actions that wait for an answer, by id, in order."""
        self.prompt: SystemPromptEvent | None = None
        self.has_message = False
        self.last_user_seq = 0
        self.last_step: UsageEvent | None = None
        """The usage of the newest step: what its request saw, and how large it was."""
        self.last_cut: Condensation | None = None
        self.finished_by: str | None = None
        """The action of the newest reply that ends the run, once it succeeded."""
        self.answer: MessageEvent | ObservationEvent | None = None
        """The agent's last words."""
        self.data: dict[str, ObservationEvent] = {}
        """The newest observation of each tool, whatever the model is shown of it."""

    def fold(self, event: Event) -> None:
        """Take the next event of the branch in."""
        fold = self._FOLDS.get(type(event))
        if fold is not None:
            fold(self, event)

    def values(self) -> dict[str, Any]:
        """Return its parts as plain, frozen values, for comparing two states."""
        return {
            "shown": list(self.shown),
            "masked": set(self.masked),
            "last_cut": self.last_cut,
            "last_step": self.last_step,
            "data": dict(self.data),
            "open": {
                key: (a.event, a.assessment, a.approval, a.started, a.question, a.resumption)
                for key, a in self.open_actions.items()
            },
            "questions": list(self.questions.values()),
            "prompt": self.prompt,
            "last_user_seq": self.last_user_seq,
        }

    def _show(self, event: ShownEvent) -> None:
        self.shown.append(event)

    def _fold_message(self, event: MessageEvent) -> None:
        self.shown.append(event)
        self.has_message = True
        if event.source == "user":
            self.last_user_seq = event.seq
        elif event.source == "agent":
            self.finished_by = None
            self.answer = event

    def _fold_prompt(self, event: SystemPromptEvent) -> None:
        self.shown.append(event)
        self.prompt = event

    def _fold_action(self, event: ActionEvent) -> None:
        self.shown.append(event)
        self.open_actions[event.id] = OpenAction(event)
        self.finished_by = None

    def _fold_assessed(self, event: ActionAssessed) -> None:
        if (action := self.open_actions.get(event.cause or "")) is not None:
            action.assessment = event

    def _fold_approved(self, event: ActionApproved) -> None:
        if (action := self.open_actions.get(event.cause or "")) is not None:
            action.approval = event

    def _fold_started(self, event: ActionStarted) -> None:
        if (action := self.open_actions.get(event.cause or "")) is not None:
            action.started = True

    def _fold_question(self, event: QuestionAsked) -> None:
        if (action := self.open_actions.get(event.cause or "")) is None:
            return
        if not event.live:
            if action.started is not event.resumes or action.question is not None:
                return
            action.question = event
            action.started, action.resumption = False, None
        self.questions[event.id] = event

    def _fold_question_end(self, event: QuestionAnswered) -> None:
        question = self.questions.pop(event.question, None)
        action = None if question is None else self.open_actions.get(question.cause or "")
        if question is not None and action is not None and action.question is question:
            action.question = None
            action.resumption = (question, event) if question.resumes else None

    def _fold_answer(self, event: AnswerEvent) -> None:
        self.shown.append(event)
        # A log with two answers to one action is read as its first one: never raise on odd history.
        self.open_actions.pop(event.cause or "", None)
        for question in [each for each in self.questions.values() if each.cause == event.cause]:
            del self.questions[question.id]
        if isinstance(event, ObservationEvent):
            self.data[event.tool_name] = event
            if event.finished:
                self.finished_by = event.cause
                self.answer = event

    def _fold_usage(self, event: UsageEvent) -> None:
        if event.view_seq is not None:
            self.last_step = event

    def _fold_condensation(self, event: Condensation) -> None:
        """Drop what is forgotten. A log with an illegal cut is read so that what is left can be sent: by whole replies."""
        self.last_cut = event
        forgotten = set(event.forgotten)
        forgotten |= self._rest_of_replies(forgotten)
        kept: list[ShownEvent] = []
        place: int | None = None
        for shown in self.shown:
            if shown.id in forgotten:
                place = len(kept) if place is None else place
            elif not isinstance(shown, SystemPromptEvent) or shown is self.prompt:
                kept.append(shown)
        if event.summary is not None:
            kept.insert(len(kept) if place is None else place, event)
        self.shown = kept
        self.masked = {each.id for each in kept if each.id in self.masked or each.id in event.masked}

    def _rest_of_replies(self, forgotten: set[str]) -> set[str]:
        """Return the ids of the replies and answers that are forgotten in part: providers refuse a call without its answer."""
        reply_of: dict[str, str] = {}
        for event in self.shown:
            if isinstance(event, ActionEvent):
                reply_of[event.id] = event.reply_id
            elif isinstance(event, ObservationEvent | UserRejectObservation | AgentErrorEvent):
                reply_of[event.id] = reply_of.get(event.cause or "", "")
        broken = {reply_of[event_id] for event_id in forgotten if event_id in reply_of}
        return {event_id for event_id, reply_id in reply_of.items() if reply_id in broken}

    # By class and not by a match: a long log is folded in half the time.
    _FOLDS: ClassVar[Mapping[type[Event], Callable[[Self, Any], None]]] = {
        MessageEvent: _fold_message,
        ActionEvent: _fold_action,
        ActionAssessed: _fold_assessed,
        ActionStarted: _fold_started,
        ActionApproved: _fold_approved,
        QuestionAsked: _fold_question,
        QuestionAnswered: _fold_question_end,
        ObservationEvent: _fold_answer,
        UserRejectObservation: _fold_answer,
        AgentErrorEvent: _fold_answer,
        UsageEvent: _fold_usage,
        SystemPromptEvent: _fold_prompt,
        ContextAdded: _show,
        CondensationSummaryEvent: _show,
        Condensation: _fold_condensation,
    }
