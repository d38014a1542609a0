"""Which commands a log knows, and what each of them came to: a command that comes again is not carried out twice."""

from __future__ import annotations

from agentcore.commands import Receipt
from agentcore.events import ActionApproved, CommandedEvent, UserRejectObservation


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
        """Give the receipt of a command, or None where the log does not know it."""
        known = self._known.get(command_id)
        return None if known is None else Receipt(seq=known[0], run=known[1], actions=known[2])

    def values(self) -> dict[str, tuple[int, int, tuple[str, ...]]]:
        """Give them as plain values, for comparing two."""
        return dict(self._known)
