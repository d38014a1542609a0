"""The errors of the engine, with sentences for people.

EngineError                 it refused, or failed
├── EngineUnreachable       it does not answer, or may not be asked
└── NotThere                it has no such container, volume or image
"""

from __future__ import annotations

from typing import Final

from agentcore.errors import WorkspaceError, WorkspaceLost
from agentcore_sandbox.box import LostReason


class EngineError(WorkspaceError):
    """The Docker engine refused something, or failed at it."""

    def __init__(self, message: str, *, status: int = 0) -> None:
        super().__init__(message)
        self.status = status
        """The status of its HTTP response, or 0."""


class EngineUnreachable(EngineError):
    """The Docker engine does not answer, or this user may not ask it."""


class NotThere(EngineError):
    """The Docker engine has no such container, volume or image."""


_LOST: Final[dict[LostReason, str]] = {
    "oom": "it ran out of memory. Pass a larger memory=, or do less at once.",
    "exited": "its container has ended: nobody used it for a while, or something killed its first process, or the engine was restarted.",
    "removed": "its container is gone: it was removed from outside, or it was left without keep=True.",
    "engine": "the Docker engine does not answer. Start it; what ran in the box was ended.",
    "unreachable": "it does not answer any more. Open the workspace again.",
    "fenced": "a later opening of the conversation has taken it over.",
}


def lost(box: str, reason: LostReason) -> WorkspaceLost:
    """Return the error that says what became of a box."""
    return WorkspaceLost(f"The box {box} is lost: {_LOST[reason]}", reason=reason)
