"""What is asked when a file is written."""

from __future__ import annotations

from agentcore.tools import Action

__all__ = ["WriteFileAction"]


class WriteFileAction(Action):
    """A file's whole content."""

    file_path: str
    """The file. A relative path starts in the workspace's folder."""
    content: str
    """All of what it is to hold."""
