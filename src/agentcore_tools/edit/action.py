"""What is asked when text in a file is replaced."""

from __future__ import annotations

from pydantic import Field

from agentcore.tools import Action

__all__ = ["EditAction"]


class EditAction(Action):
    """Text to replace, and what comes in its place."""

    file_path: str
    """The file. A relative path starts in the workspace's folder."""
    old_string: str
    """The text to replace, exactly as it is in the file, with enough around it to be the only one. Empty: make the file."""
    new_string: str
    """What comes in its place; empty: nothing does."""
    expected_replacements: int = Field(default=1, ge=1)
    """How often the text occurs; all of them are replaced."""
