"""Other names by which models call the file editor, and other spellings of its arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from agentcore.tools import Aliases, Arguments

_OTHER_NAMES: Final = {
    "file_path": "path",
    "filepath": "path",
    "filename": "path",
    "file": "path",
    "content": "file_text",
    "contents": "file_text",
    "old_string": "old_str",
    "new_string": "new_str",
    "old_text": "old_str",
    "new_text": "new_str",
    "insert_text": "new_str",
    "line": "insert_line",
    "lines": "view_range",
}
_OTHER_COMMANDS: Final = {
    "read": "view",
    "open": "view",
    "write": "create",
    "replace": "str_replace",
    "undo": "undo_edit",
}


def normalize(arguments: Arguments) -> Arguments:
    """Rename the arguments, and infer a missing command."""
    normalized: Arguments = {}
    for name, value in arguments.items():
        meant = _OTHER_NAMES.get(name, name)
        normalized[name if meant in arguments or meant in normalized else meant] = value
    command = normalized.get("command")
    if isinstance(command, str):
        normalized["command"] = _OTHER_COMMANDS.get(command, command)
    elif command is None:
        normalized["command"] = _inferred(normalized)
    if (
        normalized["command"] == "insert"
        and normalized.get("new_str") is None
        and isinstance(normalized.get("file_text"), str)
    ):
        normalized["new_str"] = normalized.pop("file_text")
    return normalized


def _inferred(arguments: Arguments) -> str:
    """Infer the command of a call from its other arguments."""
    given = {name for name, value in arguments.items() if value is not None}
    if "old_str" in given:
        return "str_replace"
    if "insert_line" in given:
        return "insert"
    return "create" if "file_text" in given else "view"


def _as(command: str) -> tuple[str, Callable[[Arguments], Arguments]]:
    return (command, lambda arguments: {**arguments, "command": command})


ALIASES: Final[Aliases] = (
    "str_replace_editor",
    "str_replace_based_edit_tool",
    "edit",
    "edit_file",
    "file_edit",
    "editor",
    _as("str_replace"),
    _as("view"),
    _as("create"),
    _as("insert"),
    ("view_file", lambda arguments: {**arguments, "command": "view"}),
    ("read_file", lambda arguments: {**arguments, "command": "view"}),
    ("create_file", lambda arguments: {**arguments, "command": "create"}),
)
