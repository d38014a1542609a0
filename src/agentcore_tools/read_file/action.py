"""What is asked when a file is read."""

from __future__ import annotations

from pydantic import Field

from agentcore.tools import Action

__all__ = ["ReadFileAction"]


class ReadFileAction(Action):
    """A look at a file."""

    path: str
    """The file. A relative path starts in the workspace's folder."""
    offset: int = Field(default=0, ge=0)
    """How many lines to leave out at the beginning."""
    limit: int | None = Field(default=None, ge=1)
    """How many lines to show; left out: as many as fit."""
