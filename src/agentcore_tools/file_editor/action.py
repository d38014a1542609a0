"""What a file editor is asked to do."""

from __future__ import annotations

from typing import Literal

from agentcore.tools import Action

__all__ = ["FileEditorAction"]


class FileEditorAction(Action):
    """A look at a file or a folder, or a change to a file."""

    command: Literal["view", "create", "str_replace", "insert", "undo_edit"]
    """What to do."""
    path: str
    """The file, or for view also a folder. A relative path starts in the workspace's folder."""
    file_text: str | None = None
    """For create: the whole content."""
    old_str: str | None = None
    """For str_replace: the text to replace, exactly as it is in the file, with enough around it to occur only once."""
    new_str: str | None = None
    """For str_replace: what comes in its place (left out: nothing does). For insert: the lines to insert."""
    insert_line: int | None = None
    """For insert: the number of the line after which to insert; 0 is the beginning."""
    view_range: list[int] | None = None
    """For view: the numbers of the first and the last line to show; -1 as the last is the end."""
