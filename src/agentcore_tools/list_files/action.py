"""What is asked when a folder is listed."""

from __future__ import annotations

from pydantic import Field

from agentcore.tools import Action

__all__ = ["ListFilesAction"]


class ListFilesAction(Action):
    """A folder, and how deep to look."""

    path: str = "."
    """The folder. A relative path starts in the workspace's folder."""
    depth: int = Field(default=2, ge=1, le=20)
    """How many levels of folders to show."""
    everything: bool = False
    """Whether to show hidden entries, and those that .gitignore leaves out, too."""
