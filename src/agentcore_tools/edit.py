"""Replacing text in a file as a tool, for models that prefer small tools to one file editor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from pydantic import Field

from agentcore.display import DiffBlock, DisplayBlock, code_span
from agentcore.errors import ToolError
from agentcore.tools import Action, Tool, ToolContext
from agentcore_tools._calls import FILE_NAMES, TextAnswer, file_diff, heading, others, replaced
from agentcore_tools.files.change import replacing_all, unified_diff
from agentcore_tools.files.files import Files, decode_text, file_tool, worked
from agentcore_tools.files.view import changed_text


class EditAction(Action):
    """Text to replace, and what comes in its place."""

    file_path: str
    """The file. A relative path starts in the workspace's folder."""
    old_string: str
    """The text to replace, exactly as it is in the file, with enough around it to be the only one. Empty: make the file."""
    new_string: str
    """The new text; empty: the old text is removed."""
    expected_replacements: int = Field(default=1, ge=1)
    """How often the text occurs; all of them are replaced."""
    replace_all: bool = False
    """Replace every occurrence, however many there are."""


class EditObservation(TextAnswer):
    """A file was changed, or made."""

    path: str
    """The absolute path."""
    diff: str
    """The change as a unified diff. A long one is cut."""
    replacements: int
    outcome: Literal["created", "changed"]


_DESCRIPTION: Final = """\
Replace text in a file. old_string has to be in the file exactly so, space and indentation included, and as often as \
expected_replacements says. With an empty old_string a new file is made. Encoding, line ends and permissions stay as they \
are. Write line ends as plain line feeds."""
_OTHER_NAMES: Final = dict.fromkeys(FILE_NAMES, "file_path") | {
    "old_str": "old_string",
    "new_str": "new_string",
    "old_text": "old_string",
    "new_text": "new_string",
    "allow_multiple": "replace_all",
}


def edit_tool(
    extra_roots: Sequence[str] = (), confine_to: Sequence[str] | None = None
) -> Tool[EditAction, EditObservation]:
    """Make the tool with which an agent replaces text in a file.

    Args:
        extra_roots: Folders outside of the workspace's in which it may do so, too; "/" is everything.
        confine_to: The only files that it may change, as paths in the workspace.
    """
    return file_tool(
        _edit,
        EditAction,
        name="edit",
        title="Edit a file",
        description=_DESCRIPTION,
        extra_roots=extra_roots,
        confine_to=confine_to,
        path="file_path",
        aliases=("replace", "edit_file", "str_replace"),
        other_names=_OTHER_NAMES,
        display_call=_show_call,
        display_answer=lambda _action, observation: file_diff(observation.path, observation.diff),
    )


def _show_call(action: EditAction) -> Sequence[DisplayBlock]:
    head = heading(code_span(action.file_path), others(action, "file_path", "old_string", "new_string"))
    return (*head, DiffBlock(path=action.file_path, diff=replaced(action.old_string, action.new_string)))


async def _edit(files: Files, action: EditAction, _ctx: ToolContext) -> EditObservation:
    path = await files.to_write(action.file_path)
    if not action.old_string:
        if await files.workspace.stat(path) is not None:
            raise ToolError(
                f"{path!r} exists already: an empty old_string is for a new file. Give the text to replace, "
                "or write the whole file with write_file."
            )
        diff = await files.create(path, action.new_string)
        return EditObservation(text=f"Created {path}.", path=path, diff=diff, replacements=0, outcome="created")
    before = await files.to_change(path)
    expected = None if action.replace_all else action.expected_replacements

    def edited() -> tuple[bytes, str, str, int]:
        old = decode_text(before, path)
        changes = replacing_all(old, action.old_string, action.new_string, expected, path)
        new = files.replaced(old, changes, path)
        diff = unified_diff(old.normal, changes, path)
        # The first one starts in the new text where it starts in the old one.
        return new.encode(), diff, changed_text(new, path, changes[0], len(changes)), len(changes)

    after, diff, text, count = await worked(before, edited)
    await files.put(path, before, after)
    return EditObservation(text=text, path=path, diff=diff, replacements=count, outcome="changed")
