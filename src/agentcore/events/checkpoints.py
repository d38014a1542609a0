"""The events of a workspace's files: saved, and brought back."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from typing import Literal

from agentcore._value import Verbatim
from agentcore.events.base import EventBase

__all__ = ["CheckpointEvent", "WorkspaceCheckpointed", "WorkspaceRestored"]


class WorkspaceCheckpointed(EventBase):
    """The files of the workspace were saved. `cause` is the event behind which they were so: the newest answer of a call.

    Without a `cause` they were so behind this event and not before: they were saved because others were about to be restored.
    """

    kind: Literal["workspace_checkpointed"] = "workspace_checkpointed"
    checkpoint: Verbatim
    """The name of the checkpoint in its store; the same for the same files."""
    store: Verbatim
    """The private folder of the workspace that the store is in: that of the conversation, or of the one it was forked from."""
    files: int
    """How many files and links it has."""
    left_out: tuple[str, ...] = ()
    """The files that it has not, each with the reason: "video.mp4 (larger than 100 MB)". What is ignored is not among them."""


class WorkspaceRestored(EventBase):
    """The files of the workspace were made those of a checkpoint. `cause` is the `HeadMoved` that asked for it."""

    kind: Literal["workspace_restored"] = "workspace_restored"
    checkpoint: Verbatim
    """The id of the `WorkspaceCheckpointed`."""
    written: int = 0
    """How many files and links were written."""
    removed: int = 0
    """How many were removed, because they came after the checkpoint."""
    error: str | None = None
    """Why that failed, wholly or in part; nothing is tried again then."""


CheckpointEvent = WorkspaceCheckpointed | WorkspaceRestored
"""The events of this file. A new one is added here."""
