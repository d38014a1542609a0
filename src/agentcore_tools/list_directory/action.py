"""What is asked when a folder is listed."""

from __future__ import annotations

from agentcore.tools import Action

__all__ = ["ListDirectoryAction"]


class ListDirectoryAction(Action):
    """A folder."""

    dir_path: str
    """The folder. A relative path starts in the workspace's folder."""
    recursive: bool = False
    """Whether to list what is in the folders in it, too, down to the last."""
