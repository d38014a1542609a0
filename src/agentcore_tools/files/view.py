"""Showing files and folders to a model: text with line numbers, pictures and PDF documents."""

from __future__ import annotations

import posixpath
from base64 import b64encode
from collections.abc import Sequence
from typing import Final

from agentcore.errors import PathError, ToolError
from agentcore.messages import DocumentBlock, ImageBlock
from agentcore.tools import OUTPUT_LIMIT, Medium, ToolContext
from agentcore.workspace import Entry, Workspace
from agentcore_tools.files.text import Change, Text

_LIMIT: Final = OUTPUT_LIMIT - 2_000
_AROUND: Final = 4
_MOST_ENTRIES: Final = 1_000


def view(lines: Sequence[str], view_range: Sequence[int] | None, path: str) -> str:
    """Show lines with their numbers: all, or those of a range."""
    if view_range is None:
        return numbered(lines, 1) if lines else f"[{path} is empty.]"
    if len(view_range) != 2:
        raise ToolError(f"view_range is the first and the last line, as in [1, 50], not {list(view_range)}.")
    first, last = view_range
    if last == -1:
        last = len(lines)
    if not 1 <= first <= len(lines) or last < first:
        raise ToolError(
            f"{path!r} has {len(lines)} lines, so view_range is from 1 to {len(lines)}, the first line before the last "
            f"(-1 for the end), not {list(view_range)}."
        )
    return numbered(lines[first - 1 : last], first)


def shown_change(text: Text, change: Change) -> str:
    """Show the place in a text where a change was made, and some lines around it."""
    lines = text.lines
    first = min(text.normal.count("\n", 0, change.start) + 1, max(len(lines), 1))
    last = first + change.new.removesuffix("\n").count("\n")
    start = max(first - _AROUND, 1)
    return numbered(lines[start - 1 : last + _AROUND], start)


def changed_text(text: Text, path: str, change: Change, places: int = 1) -> str:
    """Return the answer to a change: what the lines are now, of several places at the first one."""
    times = "" if places == 1 else f" in {places} places"
    if not text.normal:
        return f"Changed {path}{times}. It is empty now."
    where = "The lines are now" if places == 1 else "The lines at the first one are now"
    return f"Changed {path}{times}. {where}:\n{text.note}{shown_change(text, change)}"


def numbered(lines: Sequence[str], first: int) -> str:
    """Show lines with their numbers; of very many the first and the last ones, in whole lines."""
    rows = [f"{number:6d}\t{line}" for number, line in enumerate(lines, first)]
    # A single line is shown whatever its length; what is too much of it the conversation cuts.
    if len(rows) == 1 or sum(map(len, rows)) + len(rows) <= _LIMIT:
        return "\n".join(rows)
    head = fitting(rows, _LIMIT // 2)
    tail = fitting(rows[head:][::-1], _LIMIT // 2)
    missing = (first + head, first + len(rows) - tail - 1)
    notice = f"[Lines {missing[0]} to {missing[1]} are omitted; view_range shows them.]"
    return "\n".join([*rows[:head], notice, *rows[len(rows) - tail :]])


def fitting(rows: Sequence[str], room: int) -> int:
    """Return the number of rows, from the first on, that fit in so many characters with their line ends."""
    for count, row in enumerate(rows):
        room -= len(row) + 1
        if room < 0:
            return count
    return len(rows)


async def shown_folder(workspace: Workspace, path: str) -> str:
    """List what is in a folder and in the folders in it; what is hidden is counted."""
    rows: list[str] = []
    hidden = 0
    for entry in await workspace.list(path):
        if entry.name.startswith("."):
            hidden += 1
            continue
        rows.append(_row("", entry))
        if entry.kind == "dir":
            below, below_hidden = await _inside(workspace, f"{path}/{entry.name}", entry.name)
            rows += below
            hidden += below_hidden
        if len(rows) > _MOST_ENTRIES:
            break
    notes: list[str] = []
    if len(rows) > _MOST_ENTRIES:
        del rows[_MOST_ENTRIES:]
        notes.append(f"[There is more: this is cut after {_MOST_ENTRIES} entries. View a folder in it.]")
    if hidden:
        notes.append(f"[{hidden} hidden {'entry is' if hidden == 1 else 'entries are'} not shown.]")
    return "\n".join([f"{path}/", *rows, *notes]) if rows or notes else f"[{path} is empty.]"


async def _inside(workspace: Workspace, path: str, name: str) -> tuple[list[str], int]:
    try:
        entries = await workspace.list(path)
    except PathError as error:
        return [f"{name}/ [{error.reason}]"], 0
    shown = [entry for entry in entries if not entry.name.startswith(".")]
    return [_row(f"{name}/", entry) for entry in shown], len(entries) - len(shown)


def _row(folder: str, entry: Entry) -> str:
    return folder + entry.name + {"dir": "/", "link": "@"}.get(entry.kind, "")


_PICTURES: Final = (
    (b"\x89PNG\r\n\x1a\n", "image/png"),
    (b"\xff\xd8\xff", "image/jpeg"),
    (b"GIF87a", "image/gif"),
    (b"GIF89a", "image/gif"),
)
_PDF: Final = "application/pdf"
# What Anthropic takes of a picture as base64 text; others take more.
_LARGEST_PICTURE: Final = 5 * 1024 * 1024 * 3 // 4


def medium_of(data: bytes) -> str | None:
    """Return the media type of a picture or a PDF; None for anything else."""
    if data.startswith(b"RIFF") and data[8:12] == b"WEBP":
        return "image/webp"
    if data.startswith(b"%PDF-"):
        return _PDF
    return next((media_type for beginning, media_type in _PICTURES if data.startswith(beginning)), None)


async def shown_medium(
    data: bytes, media_type: str, path: str, ctx: ToolContext
) -> tuple[str, ImageBlock | DocumentBlock]:
    """Make what a model is shown of a picture or a PDF: a line of text, and the block.

    Raises:
        ToolError: the model can't look at such, or it is too large. Sending it would break the conversation.
    """
    medium: Medium = "pdf" if media_type == _PDF else "image"
    if await ctx.model_accepts(medium) is False:
        what, advice = ("a PDF", "pdftotext") if medium == "pdf" else ("a picture", "file, identify or exiftool")
        raise ToolError(
            f"{path!r} is {what} ({media_type}, {len(data):,} bytes), which you cannot look at. "
            f"Find out about it with commands, such as {advice}."
        )
    if medium == "image" and len(data) > _LARGEST_PICTURE:
        raise ToolError(
            f"{path!r} is a picture of {len(data):,} bytes, and at most {_LARGEST_PICTURE:,} can be shown. "
            "Make a smaller copy (with `convert -resize`, say) and view that."
        )
    text, encoded = f"{path} ({media_type}, {len(data):,} bytes):", b64encode(data).decode()
    if medium == "pdf":
        return text, DocumentBlock(data=encoded, media_type=media_type, name=posixpath.basename(path))
    return text, ImageBlock(data=encoded, media_type=media_type)
