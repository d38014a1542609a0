"""The parts of a conversation's state: open actions, receipts, the tally of the newest run, its branch and its statuses."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from pydantic import JsonValue

from agentcore.assessment import SecurityRisk
from agentcore.commands import Receipt
from agentcore.events import (
    DRAINED,
    ActionApproved,
    ActionAssessed,
    ActionEvent,
    CommandedEvent,
    ConversationStatus,
    Event,
    HeadMoved,
    InterruptEvent,
    PauseEvent,
    QuestionAnswered,
    QuestionAsked,
    UserRejectObservation,
)
from agentcore.usage import Usage


@dataclass(slots=True)
class OpenAction:
    """An action without an answer."""

    event: ActionEvent
    assessment: ActionAssessed | None = None
    approval: ActionApproved | None = None
    started: bool = False
    question: QuestionAsked | None = None
    """The question at rest that it waits on: it consists of it and never starts, or it had started and is resumed with the answer."""
    resumption: tuple[QuestionAsked, QuestionAnswered] | None = None
    """The newest question that it had started and asked, and the end of that: with these it is resumed."""

    @property
    def waits(self) -> bool:
        """True if it waits for a person: for a yes or no, or for the answer to its question."""
        if self.question is not None:
            return not self.started
        if self.resumption is not None:
            return False
        asked = self.assessment is not None and self.assessment.verdict == "ask"
        return asked and self.approval is None and not self.started

    @property
    def runs_next(self) -> bool:
        """True if it was approved, or its question has ended, and the next turn starts or resumes it."""
        decided = self.approval is not None or self.resumption is not None
        return decided and self.question is None and not self.started

    @property
    def risk(self) -> SecurityRisk:
        """How much harm it could do, as far as it was assessed."""
        return (self.assessment.risk if self.assessment is not None else None) or SecurityRisk.UNKNOWN

    @property
    def arguments(self) -> dict[str, JsonValue]:
        """The arguments it starts with: a person's or else a check's, where one of them changed them."""
        for changed in (self.approval, self.assessment):
            if changed is not None and changed.arguments is not None:
                return changed.arguments
        return self.event.arguments

    @property
    def typed_masks(self) -> tuple[str, ...]:
        """The masks in the arguments that stand for no value: the model, or a check, wrote them."""
        assessed = self.assessment
        return self.event.typed_masks if assessed is None or assessed.arguments is None else assessed.typed_masks


class Receipts:
    """Receipts by the id of the command, of the whole log: a rewind forgets none."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: dict[str, tuple[int, int, tuple[str, ...]]] = {}

    def __contains__(self, command_id: object) -> bool:
        return command_id in self._known

    def note(self, event: CommandedEvent, command_id: str, run: int) -> None:
        """Take in an event that a command wrote; `run` is the newest run now that it is folded."""
        seq, _, actions = self._known.get(command_id, (event.seq, run, ()))
        decides = isinstance(event, ActionApproved | UserRejectObservation | QuestionAnswered)
        if decides and event.cause is not None and event.cause not in actions:
            actions = (*actions, event.cause)
        self._known[command_id] = (seq, run, actions)

    def get(self, command_id: str) -> Receipt | None:
        """Return the receipt of a command, or None where the log does not know it."""
        known = self._known.get(command_id)
        return None if known is None else Receipt(seq=known[0], run=known[1], actions=known[2])

    def values(self) -> dict[str, tuple[int, int, tuple[str, ...]]]:
        """Return them as plain values, for comparing two."""
        return dict(self._known)


class Tally:
    """A sum of usages."""

    __slots__ = ("_new", "_total")

    def __init__(self) -> None:
        self._total = Usage()
        self._new: list[Usage] = []

    def add(self, usage: Usage) -> None:
        """Count one more."""
        self._new.append(usage)

    @property
    def total(self) -> Usage:
        """All of them together."""
        if self._new:
            self._total = Usage.sum([self._total, *self._new])
            self._new = []
        return self._total


class RunTally:
    """The usage and text of the newest run so far, over all branches."""

    __slots__ = ("_usage", "seq", "steps", "text")

    def __init__(self, seq: int = 0) -> None:
        self.seq = seq
        """The seq at which it began; 0 before the first run."""
        self.steps = 0
        """Its model calls."""
        self.text: str | None = None
        """The agent's last words in it."""
        self._usage = Tally()

    @property
    def usage(self) -> Usage:
        """The usage, side questions included."""
        return self._usage.total

    def add(self, usage: Usage, *, is_step: bool) -> None:
        """Count a model call."""
        self._usage.add(usage)
        self.steps += is_step

    def values(self) -> tuple[int, int, str | None, Usage]:
        """Return it as plain values, for comparing two."""
        return self.seq, self.steps, self.text, self.usage


def branch_ranges(events: Sequence[Event], moves: Sequence[int], head: int) -> list[tuple[int, int]]:
    """Return the inclusive ranges of seqs on the branch that ends at `head`, in order.

    Args:
        events: The log.
        moves: The seqs of all `HeadMoved` events in it, ascending.
        head: The last seq of the branch; 0 for an empty one.
    """
    ranges: list[tuple[int, int]] = []
    end = min(head, len(events))
    while end > 0:
        index = bisect_right(moves, end)
        if index == 0:
            ranges.append((1, end))
            break
        move = moves[index - 1]
        ranges.append((move, end))
        event = events[move - 1]
        assert isinstance(event, HeadMoved)
        end = min(event.to, move - 1)  # a move that leads forward makes no sense, but must not lead round in a circle
    ranges.reverse()
    return ranges


def events_of_branch(events: Sequence[Event], moves: Sequence[int], head: int) -> Iterator[Event]:
    """Go through the events of the branch that ends at `head`, in order."""
    for first, last in branch_ranges(events, moves, head):
        for seq in range(first, last + 1):
            yield events[seq - 1]


Trigger = Literal["send", "run", "pause", "interrupt", "approve", "reopen"]

_IDLE = ConversationStatus.IDLE
_RUNNING = ConversationStatus.RUNNING
_PAUSED = ConversationStatus.PAUSED
_WAITING = ConversationStatus.WAITING_FOR_CONFIRMATION
_FINISHED = ConversationStatus.FINISHED
_STUCK = ConversationStatus.STUCK
_ERROR = ConversationStatus.ERROR

TRANSITIONS: Mapping[tuple[ConversationStatus, Trigger], ConversationStatus] = MappingProxyType(
    {
        (_IDLE, "run"): _RUNNING,
        (_IDLE, "pause"): _PAUSED,
        (_RUNNING, "interrupt"): _PAUSED,
        (_RUNNING, "reopen"): _PAUSED,
        (_PAUSED, "run"): _RUNNING,
        (_WAITING, "interrupt"): _PAUSED,
        (_WAITING, "approve"): _RUNNING,
        (_FINISHED, "send"): _IDLE,
        (_STUCK, "send"): _IDLE,
        (_ERROR, "send"): _IDLE,
        (_STUCK, "run"): _RUNNING,
        (_ERROR, "run"): _RUNNING,
    }
)
"""Where each trigger leads; what is not listed changes nothing.

A pause while running takes effect at the end of the step, and a rejection that leaves nothing waiting makes the
conversation idle: both are written as status changes of their own.
"""


def next_status(status: ConversationStatus, trigger: Trigger) -> ConversationStatus:
    """Return the status that the trigger leads to."""
    return TRANSITIONS.get((status, trigger), status)


def pause_code(event: PauseEvent | InterruptEvent, code: str) -> str:
    """Return the code of the status that an event leads to: "drained" where its process ended in order."""
    return DRAINED if event.by == DRAINED else code
