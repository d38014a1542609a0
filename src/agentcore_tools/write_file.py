"""Writing a whole file as a tool, for models that prefer small tools to one file editor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal

from agentcore.display import DiffBlock, DisplayBlock, code_span
from agentcore.tools import Action, Tool, ToolContext
from agentcore_tools._calls import FILE_NAMES, TextAnswer, added, file_diff, heading
from agentcore_tools.files.change import between, unified_diff
from agentcore_tools.files.files import Files, decode_text, file_tool, worked
from agentcore_tools.files.text import Change, with_line_feeds


class WriteFileAction(Action):
    """A file's whole content."""

    file_path: str
    """The file. A relative path starts in the workspace's folder."""
    content: str
    """All of what it is to hold."""


class WriteFileObservation(TextAnswer):
    """A file was made, or replaced."""

    path: str
    """The absolute path."""
    diff: str
    """The change as a unified diff. A long one is cut."""
    outcome: Literal["created", "changed"]


_DESCRIPTION: Final = """\
Write a whole file: a new one, with the folders above it, or all of one that is there. To change a part of a file, use edit. \
The encoding, the line ends and the permissions of a file that is there stay as they are."""
_OTHER_NAMES: Final = dict.fromkeys(FILE_NAMES, "file_path") | {
    "file_text": "content",
    "contents": "content",
    "text": "content",
}


def write_file_tool(
    extra_roots: Sequence[str] = (), confine_to: Sequence[str] | None = None
) -> Tool[WriteFileAction, WriteFileObservation]:
    """Make the tool with which an agent writes a whole file.

    Args:
        extra_roots: Folders outside of the workspace's in which it may do so, too; "/" is everything.
        confine_to: The only files that it may write, as paths in the workspace.
    """
    return file_tool(
        _write,
        WriteFileAction,
        name="write_file",
        title="Write a file",
        description=_DESCRIPTION,
        extra_roots=extra_roots,
        confine_to=confine_to,
        idempotent=True,
        path="file_path",
        aliases=("create_file", "save_file", "write"),
        other_names=_OTHER_NAMES,
        display_call=_show_call,
        display_answer=lambda _action, observation: file_diff(observation.path, observation.diff),
    )


def _show_call(action: WriteFileAction) -> Sequence[DisplayBlock]:
    return (*heading(code_span(action.file_path)), DiffBlock(path=action.file_path, diff=added(action.content)))


async def _write(files: Files, action: WriteFileAction, _ctx: ToolContext) -> WriteFileObservation:
    path = await files.to_write(action.file_path)
    if await files.workspace.stat(path) is None:
        diff = await files.create(path, action.content)
        return WriteFileObservation(text=f"Created {path}.", path=path, diff=diff, outcome="created")
    before = await files.to_change(path)

    def written() -> tuple[bytes, str, str]:
        old = decode_text(before, path)
        new = files.replaced(old, [Change(0, len(old.normal), with_line_feeds(action.content))], path)
        return new.encode(), unified_diff(old.normal, [between(old.normal, new.normal)], path), new.note

    after, diff, note = await worked(before + action.content.encode(errors="replace"), written)
    await files.put(path, before, after)
    return WriteFileObservation(text=f"Replaced {path}.\n{note}".rstrip(), path=path, diff=diff, outcome="changed")
