"""The state of a conversation, as a fold over its log: there is no second record that could disagree.

Two parts: what the whole log says (usage, limits, policy, title ...: a rewind refunds nothing and loosens nothing), and
what the active branch says (what the model is shown, which actions are open).
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from copy import copy
from datetime import datetime
from types import MappingProxyType
from typing import Any, ClassVar, Final, Self

from pydantic import JsonValue

from agentcore.commands import Receipt
from agentcore.events import (
    ActionEvent,
    AgentConfigured,
    CheckpointsSet,
    CommandedEvent,
    Condensation,
    ConversationErrorEvent,
    ConversationStateUpdateEvent,
    ConversationStatus,
    Event,
    Forked,
    HeadMoved,
    InterruptEvent,
    LimitsSet,
    MessageEvent,
    ObservationEvent,
    PauseEvent,
    PolicySet,
    QuestionAnswered,
    QuestionAsked,
    SecretsRegistered,
    StatusChanged,
    SystemPromptEvent,
    TagsSet,
    TitleSet,
    UnknownEvent,
    UsageEvent,
    WorkspaceCheckpointed,
    WorkspaceOpened,
    WorkspaceRestored,
)
from agentcore.record.branch import Branch, ShownEvent
from agentcore.record.checkpoints import Checkpoints
from agentcore.record.ledger import OpenAction, Receipts, RunTally, Tally, events_of_branch, next_status, pause_code
from agentcore.usage import Limits, Usage

ASKING: Final = "asking"
"""The code of the status "waiting for confirmation" while the program's callback is asked: the run goes on."""

_TALLIES: Final = ("_usage", "_usage_by_model", "_receipts", "run", "checkpoints")


class ConversationState:
    """Read it freely, from any task; only the log's owner changes it, by folding the next event."""

    def __init__(self, conversation_id: str) -> None:
        self.conversation_id = conversation_id
        self.status = ConversationStatus.IDLE
        self.status_code: str | None = None
        """Why the status is what it is: "steps", "repeated_action", "recovered", ..."""
        self.status_detail: str | None = None
        self.limits = Limits()
        self.policy: dict[str, JsonValue] | None = None
        self.secret_names: tuple[str, ...] = ()
        self.title: str | None = None
        self.agent: AgentConfigured | None = None
        self.workspace: WorkspaceOpened | None = None
        """Where it works, or worked last."""
        self.checkpoints = Checkpoints()
        """The saved files of the workspace. Of all branches, and never rewound."""
        self.forked_from: Forked | None = None
        self.pause_requested = False
        self.pause_code = "pause"
        """Why the status is what it is once a pause that was asked for takes effect: "pause" or "drained"."""
        self.run = RunTally()
        """The newest run."""
        self.worked_seconds = 0.0
        """Wall time of all finished stretches of work; waiting for a person is not one."""
        self.working_since: datetime | None = None
        self.view_epoch = 0
        """Goes up when `shown` was made anew rather than added to."""
        self.read_only: str | None = None
        """Why this version must not continue the log, if it must not."""
        self._usage = Tally()
        self._usage_by_model: dict[str, Tally] = {}
        self._receipts = Receipts()
        self._tags: dict[str, str] = {}
        self._events: list[Event] = []
        self._moves: list[int] = []
        self._settled: list[bool] = []
        self._group_ends: list[int] = []
        self._branch = Branch()
        self._last_time: datetime | None = None

    @property
    def head(self) -> int:
        """The seq of the newest event, whichever branch it is on."""
        return len(self._events)

    @property
    def events(self) -> Sequence[Event]:
        """The whole log in order, other branches included. Do not change it."""
        return self._events

    @property
    def shown(self) -> Sequence[ShownEvent]:
        """The events of the active branch that the model is shown now: what was forgotten is not there. Do not change it."""
        return self._branch.shown

    @property
    def masked(self) -> AbstractSet[str]:
        """The ids of answers of which the model is shown only that they came."""
        return self._branch.masked

    @property
    def last_step(self) -> UsageEvent | None:
        """The usage of the newest step on the active branch; `view_seq` is what its request saw."""
        return self._branch.last_step

    @property
    def last_cut(self) -> Condensation | None:
        """The newest condensation of the active branch."""
        return self._branch.last_cut

    @property
    def branch_epoch(self) -> int:
        """Goes up with each rewind."""
        return len(self._moves)

    @property
    def has_message(self) -> bool:
        """True if anybody has said something on the active branch."""
        return self._branch.has_message

    def last_data(self, tool_name: str) -> Mapping[str, JsonValue] | None:
        """Return the data of a tool's newest observation on the active branch, even if the model is no longer shown it."""
        observation = self._branch.data.get(tool_name)
        return None if observation is None else observation.data

    @property
    def open_actions(self) -> Mapping[str, OpenAction]:
        """Actions of the active branch without an answer, by event id, in order."""
        return MappingProxyType(self._branch.open_actions)

    @property
    def pending(self) -> tuple[ActionEvent, ...]:
        """The actions that wait for a person: for a yes or no, or for an answer."""
        return tuple(action.event for action in self._branch.open_actions.values() if action.waits)

    @property
    def questions(self) -> tuple[QuestionAsked, ...]:
        """The questions that wait for an answer, in order: of actions in `pending`, and live ones of calls that run."""
        return tuple(self._branch.questions.values())

    @property
    def has_approved(self) -> bool:
        """True if an action was approved that has still to start, or one has still to be resumed with the end of its question."""
        return any(action.runs_next for action in self._branch.open_actions.values())

    @property
    def prompt(self) -> SystemPromptEvent | None:
        """The system prompt in force on the active branch."""
        return self._branch.prompt

    @property
    def last_user_seq(self) -> int:
        """The seq of the newest message by a person on the active branch; 0 where there is none."""
        return self._branch.last_user_seq

    @property
    def view_seq(self) -> int:
        """The head that the request of the newest reply saw; 0 before the first one. What came after it is new to the model."""
        return (self._branch.last_step and self._branch.last_step.view_seq) or 0

    @property
    def seen_by_finish(self) -> int | None:
        """The head that the newest reply's request saw, where a call of it that ends the run succeeded; else None."""
        step = self._branch.last_step
        return (0 if step is None else step.view_seq) if self._branch.finished_by is not None else None

    @property
    def finished_by(self) -> str | None:
        """The id of the action by which the newest reply ended the run; None where it did not."""
        return self._branch.finished_by

    @property
    def is_working(self) -> bool:
        """True if a run goes on: the agent works, or the program's callback is being asked."""
        return self.status is ConversationStatus.RUNNING or self.is_asking

    @property
    def is_asking(self) -> bool:
        """True if the run waits for the program's callback."""
        return self.status is ConversationStatus.WAITING_FOR_CONFIRMATION and self.status_code == ASKING

    def receipt(self, command_id: str) -> Receipt | None:
        """Return the receipt of a command, or None where the log does not know it."""
        return self._receipts.get(command_id)

    @property
    def usage(self) -> Usage:
        """The usage over all runs, branches and side questions."""
        return self._usage.total

    @property
    def usage_by_model(self) -> Mapping[str, Usage]:
        """The usage of each model."""
        return {model: tally.total for model, tally in self._usage_by_model.items()}

    @property
    def tags(self) -> Mapping[str, str]:
        """The conversation's tags."""
        return MappingProxyType(self._tags)

    @property
    def answer(self) -> str | None:
        """The agent's last words on the active branch: what it finished with, or its last message."""
        event = self._branch.answer
        if isinstance(event, ObservationEvent):
            return str(event.data.get("message") or event.text)
        return None if event is None else event.text

    def group_of(self, seq: int) -> int:
        """Return the seq of the last event of the group that an event was written in.

        Raises:
            ValueError: There is no event of that seq, or its group is not complete.
        """
        place = bisect_left(self._group_ends, seq)
        if seq < 1 or place == len(self._group_ends):
            raise ValueError(f"seq={seq}: it is the seq of an event of a complete group, from 1 to {self.head}.")
        return self._group_ends[place]

    def is_settled(self, seq: int) -> bool:
        """Return whether the conversation can return to this point: a group's end with every action answered."""
        return seq == 0 or (0 < seq <= len(self._settled) and self._settled[seq - 1])

    def nearest_settled(self, seq: int) -> int:
        """Return the settled point nearest to `seq`, the earlier one of two."""
        return min((point for point in range(self.head + 1) if self.is_settled(point)), key=lambda p: (abs(p - seq), p))

    def branch_events(self, head: int | None = None) -> list[Event]:
        """Return the events of the branch that ends at `head` (by default the active one), in order."""
        return list(events_of_branch(self._events, self._moves, self.head if head is None else head))

    def apply(self, event: Event, *, group_ends: bool = True) -> None:
        """Fold the next event in. For the log's owner alone."""
        assert event.seq == len(self._events) + 1, (event.seq, len(self._events))
        self._events.append(event)
        fold = self._FOLDS.get(type(event))
        if fold is not None:
            fold(self, event)
        self._branch.fold(event)
        if isinstance(event, CommandedEvent) and event.command is not None:
            self._receipts.note(event, event.command, self.run.seq)
        if group_ends:
            self._group_ends.append(event.seq)
        self._settled.append(group_ends and not self._branch.open_actions)
        self._last_time = event.timestamp

    def snapshot(self) -> dict[str, Any]:
        """Return the whole state as plain, frozen values, for comparing two states."""
        return {
            **{name: copy(value) for name, value in vars(self).items() if name not in ("_branch", *_TALLIES)},
            "usage": self.usage,
            "usage_by_model": self.usage_by_model,
            "run": self.run.values(),
            "receipts": self._receipts.values(),
            "checkpoints": self.checkpoints.values(),
            **self._branch.values(),
            "seen_by_finish": self.seen_by_finish,
        }

    def _fold_message(self, event: MessageEvent) -> None:
        if event.source == "user":
            # A message ends no question to the program's callback.
            if (status := next_status(self.status, "send")) is not self.status:
                self._set_status(event, status)
        elif event.source == "agent":
            self.run.text = event.text or self.run.text

    def _fold_observation(self, event: ObservationEvent) -> None:
        if event.finished:
            self.run.text = str(event.data.get("message") or event.text)

    def _fold_usage(self, event: UsageEvent) -> None:
        self._usage.add(event.usage)
        if (of_model := self._usage_by_model.get(event.model)) is None:
            of_model = self._usage_by_model[event.model] = Tally()
        of_model.add(event.usage)
        self.run.add(event.usage, is_step=event.purpose == "step")

    def _fold_agent(self, event: AgentConfigured) -> None:
        self.agent = event

    def _fold_workspace(self, event: WorkspaceOpened) -> None:
        self.workspace = event

    def _fold_saved(self, event: WorkspaceCheckpointed) -> None:
        self.checkpoints.note_saved(event)

    def _fold_restored(self, event: WorkspaceRestored) -> None:
        self.checkpoints.note_restored(event)

    def _fold_unknown(self, event: UnknownEvent) -> None:
        if event.critical:
            self.read_only = f"it holds an event of kind {event.kind!r}, which this version does not know"

    def _fold_question(self, event: QuestionAsked) -> None:
        # Waiting for a person is not work.
        if event.live and event.cause in self._branch.open_actions:
            self._stop_work(event.timestamp)

    def _fold_question_end(self, event: QuestionAnswered) -> None:
        others = [each for each in self._branch.questions.values() if each.live and each.id != event.question]
        if self.status is ConversationStatus.RUNNING and self.working_since is None and not others:
            self.working_since = event.timestamp

    def _fold_pause(self, event: PauseEvent) -> None:
        if self.is_working:
            self.pause_requested = True
            self.pause_code = pause_code(event, "pause")
        self._set_status(event, next_status(self.status, "pause"))

    def _fold_interrupt(self, event: InterruptEvent) -> None:
        if (status := next_status(self.status, "interrupt")) is not self.status:
            self._set_status(event, status, pause_code(event, "interrupt"), event.reason)

    def _fold_error(self, event: ConversationErrorEvent) -> None:
        self._set_status(event, ConversationStatus.ERROR, event.code, event.detail)

    def _fold_move(self, event: HeadMoved) -> None:
        self._set_status(event, ConversationStatus.IDLE)
        self._moves.append(event.seq)
        self.checkpoints.note_move(event)
        self._branch = Branch()
        for earlier in events_of_branch(self._events, self._moves, event.to):
            self._branch.fold(earlier)
        self.view_epoch += 1

    def _fold_condensation(self, event: Condensation) -> None:  # noqa: ARG002 the branch reads it
        self.view_epoch += 1

    def _fold_fact(self, event: ConversationStateUpdateEvent) -> None:
        match event.update:
            case StatusChanged() as change:
                if change.status is ConversationStatus.RUNNING and change.code == "run":
                    self.run = RunTally(event.seq)
                self._set_status(event, change.status, change.code, change.detail)
            case LimitsSet() as change:
                self.limits = change.limits
            case PolicySet() as change:
                self.policy = change.policy
            case SecretsRegistered() as change:
                self.secret_names = tuple(dict.fromkeys((*self.secret_names, *change.names)))
            case TitleSet() as change:
                self.title = change.title
            case TagsSet() as change:
                self._tags = dict(change.tags)
            case CheckpointsSet() as change:
                self.checkpoints.when = change.when
            case Forked() as change:
                self.forked_from = change
            case _:
                pass

    def _set_status(
        self, event: Event, status: ConversationStatus, code: str | None = None, detail: str | None = None
    ) -> None:
        if status is self.status and code is None and not self.is_asking:
            return
        if status is ConversationStatus.RUNNING:
            if self.working_since is None:
                self.working_since = event.timestamp
        else:
            # What a crash cut off lasted until its last event, not until the log was opened again.
            self._stop_work(self._last_time if code == "recovered" and self._last_time is not None else event.timestamp)
        self.status = status
        self.status_code = code
        self.status_detail = detail
        if not self.is_working or code == "run":
            self.pause_requested = False

    def _stop_work(self, end: datetime) -> None:
        if self.working_since is not None:
            self.worked_seconds += max(0.0, (end - self.working_since).total_seconds())
            self.working_since = None

    _FOLDS: ClassVar[Mapping[type[Event], Callable[[Self, Any], None]]] = {
        MessageEvent: _fold_message,
        ObservationEvent: _fold_observation,
        UsageEvent: _fold_usage,
        ConversationStateUpdateEvent: _fold_fact,
        AgentConfigured: _fold_agent,
        WorkspaceOpened: _fold_workspace,
        WorkspaceCheckpointed: _fold_saved,
        WorkspaceRestored: _fold_restored,
        QuestionAsked: _fold_question,
        QuestionAnswered: _fold_question_end,
        PauseEvent: _fold_pause,
        InterruptEvent: _fold_interrupt,
        ConversationErrorEvent: _fold_error,
        HeadMoved: _fold_move,
        Condensation: _fold_condensation,
        UnknownEvent: _fold_unknown,
    }
    """The folds over the whole log, by the event's class; the other classes concern one branch only."""
