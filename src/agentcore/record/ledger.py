"""The accounts inside a conversation's state: open actions, receipts of commands, and the tally of the newest run."""

from __future__ import annotations

from dataclasses import dataclass

from pydantic import JsonValue

from agentcore.commands import Receipt
from agentcore.events import ActionApproved, ActionAssessed, ActionEvent, CommandedEvent, UserRejectObservation
from agentcore.risk import SecurityRisk
from agentcore.usage import Usage


@dataclass(slots=True)
class OpenAction:
    """An action without an answer."""

    event: ActionEvent
    assessment: ActionAssessed | None = None
    approval: ActionApproved | None = None
    started: bool = False

    @property
    def waits(self) -> bool:
        """True if it waits for a person's yes or no."""
        asked = self.assessment is not None and self.assessment.verdict == "ask"
        return asked and self.approval is None and not self.started

    @property
    def runs_next(self) -> bool:
        """True if it was approved, and the next turn starts it."""
        return self.approval is not None and not self.started

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
        if isinstance(event, ActionApproved | UserRejectObservation) and event.cause is not None:
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
