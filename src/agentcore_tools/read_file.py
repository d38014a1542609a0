"""Reading a file as a tool, for models that prefer small tools to one file editor."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import Field

from agentcore.display import DisplayBlock, ExcerptBlock
from agentcore.errors import ToolError
from agentcore.messages import DocumentBlock, ImageBlock, ResultBlock
from agentcore.tools import OUTPUT_LIMIT, Action, Arguments, Tool, ToolContext
from agentcore_tools._calls import FILE_NAMES, TextAnswer
from agentcore_tools.files.files import Files, decode_text, file_tool, worked
from agentcore_tools.files.view import fitting, medium_of, shown_medium


class ReadFileAction(Action):
    """A look at a file."""

    path: str
    """The file. A relative path starts in the workspace's folder."""
    offset: int = Field(default=0, ge=0)
    """How many lines to leave out at the beginning."""
    limit: int | None = Field(default=None, ge=1)
    """How many lines to show; left out: as many as fit."""


class ReadFileObservation(TextAnswer):
    """A file's lines as they are, or a picture or PDF."""

    path: str
    """The absolute path."""
    lines: int = 0
    """How many lines the file has."""
    first: int = 0
    """The number of the first line that is shown, from 1; 0 where none is."""
    last: int = 0
    """The number of the last line that is shown."""
    medium: ImageBlock | DocumentBlock | None = None

    def to_content(self) -> Sequence[str | ResultBlock]:
        return (self.text,) if self.medium is None else (self.text, self.medium)


_DESCRIPTION: Final = """\
Read a text file, or look at a picture (PNG, JPEG, GIF, WebP) or a PDF. Of a long text as many lines are shown as fit, and \
the answer says how to read on (offset, limit)."""
_MOST: Final = OUTPUT_LIMIT - 1_000


def read_file_tool(extra_roots: Sequence[str] = ()) -> Tool[ReadFileAction, ReadFileObservation]:
    """Make the tool with which an agent reads a file.

    Args:
        extra_roots: Folders outside of the workspace's that it may read, too; "/" is everything.
    """
    return file_tool(
        _read,
        ReadFileAction,
        name="read_file",
        title="Read a file",
        description=_DESCRIPTION,
        extra_roots=extra_roots,
        read_only=True,
        aliases=("view_file", "open_file", "cat", ("read", _read_from_one)),
        other_names=dict.fromkeys(FILE_NAMES, "path"),
        display_answer=_show_answer,
    )


def _read_from_one(arguments: Arguments) -> Arguments:
    """Make a call of one whose offset is the number of the first line, and not of the lines before it."""
    offset = int(str(arguments.get("offset") or 0))
    return {**arguments, "offset": max(offset - 1, 0)} if offset else arguments


def _show_answer(_action: ReadFileAction, observation: ReadFileObservation) -> Sequence[DisplayBlock]:
    if not observation.lines:
        return ()  # it is empty, or a picture or a PDF
    return (ExcerptBlock(path=observation.path, first=observation.first),)


async def _read(files: Files, action: ReadFileAction, ctx: ToolContext) -> ReadFileObservation:
    path = await files.to_read(action.path)
    data = await files.look(path)
    if (media_type := medium_of(data)) is not None:
        text, medium = await shown_medium(data, media_type, path, ctx)
        return ReadFileObservation(text=text, path=path, medium=medium)
    decoded = await worked(data, lambda: decode_text(data, path))
    lines = decoded.lines
    if not lines:
        return ReadFileObservation(text=f"[{path} is empty.]", path=path)
    if action.offset >= len(lines):
        raise ToolError(f"{path!r} has {len(lines)} lines, so offset is less than that, not {action.offset}.")
    wanted = lines[action.offset :] if action.limit is None else lines[action.offset : action.offset + action.limit]
    # One line is shown whatever its length; what is too much of it the conversation cuts.
    count = max(fitting(wanted, _MOST), 1)
    text = "\n".join(wanted[:count])
    last = action.offset + count
    if action.offset or last < len(lines):
        more = f" Read on with offset={last}." if last < len(lines) else ""
        text = f"[Lines {action.offset + 1} to {last} of {len(lines)}.{more}]\n{text}"
    text = decoded.note + text
    return ReadFileObservation(text=text, path=path, lines=len(lines), first=action.offset + 1, last=last)
