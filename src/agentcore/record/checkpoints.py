"""The part of a conversation's state that is about saved files: which there are, and whether some are still to be brought back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agentcore.events import (
    AgentErrorEvent,
    CheckpointTimes,
    Event,
    HeadMoved,
    ObservationEvent,
    UserRejectObservation,
    WorkspaceCheckpointed,
    WorkspaceRestored,
)


class Checkpoints:
    """Folds the events about files, those of all branches: what was saved on one can be gone back to from another."""

    __slots__ = ("due", "last_restored", "saved", "when")

    def __init__(self) -> None:
        self.saved: list[WorkspaceCheckpointed] = []
        self.when: CheckpointTimes = "asked"
        """When files are saved: when somebody asks, or at each settled point too."""
        self.due: HeadMoved | None = None
        """The move for which files are to be brought back before anything else starts."""
        self.last_restored: WorkspaceRestored | None = None

    def note_saved(self, event: WorkspaceCheckpointed) -> None:
        """Take in that files were saved."""
        self.saved.append(event)

    def note_move(self, event: HeadMoved) -> None:
        """Take in that the head moved. What was to be brought back before stays due, unless this names other files."""
        if event.checkpoint is not None:
            self.due = event

    def note_restored(self, event: WorkspaceRestored) -> None:
        """Take in that files were brought back, or could not be."""
        self.last_restored = event
        if self.due is not None and event.cause == self.due.id:
            self.due = None

    def named(self, event_id: str | None) -> WorkspaceCheckpointed | None:
        """Return the checkpoint that an event of this id is."""
        return next((saved for saved in reversed(self.saved) if saved.id == event_id), None)

    def find(self, branch: Sequence[Event]) -> WorkspaceCheckpointed | None:
        """Return the last checkpoint of the files at or before the end of a branch."""
        places = {event.id: place for place, event in enumerate(branch)}
        best: WorkspaceCheckpointed | None = None
        reached = -1
        for saved in self.saved:
            place = places.get(saved.cause or saved.id, -1)
            if place >= max(reached, 0):
                best, reached = saved, place
        return best

    def values(self) -> dict[str, Any]:
        """Return it as plain values, for comparing two."""
        return {name: getattr(self, name) for name in self.__slots__} | {"saved": list(self.saved)}


def last_change(branch: Sequence[Event]) -> Event:
    """Return the event of a branch behind which its files were last changed by the agent, as far as a log can tell."""
    changes = (ObservationEvent, AgentErrorEvent, UserRejectObservation, WorkspaceRestored)
    return next((event for event in reversed(branch) if isinstance(event, changes)), branch[0])
