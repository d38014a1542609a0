"""How files and folders are shown to a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agentcore.errors import PathError, ToolError
from agentcore.tools import OUTPUT_LIMIT
from agentcore.workspace import Entry, Workspace
from agentcore_tools.files.text import Change, Text

__all__ = ["around", "numbered", "shown_change", "shown_folder", "view"]

_LIMIT: Final = OUTPUT_LIMIT - 2_000
_AROUND: Final = 4
_MOST_ENTRIES: Final = 1_000


def view(lines: Sequence[str], view_range: Sequence[int] | None, path: str) -> str:
    """Show lines with their numbers: all, or those of a range.

    Raises:
        ToolError: there is no such range.
    """
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


def around(lines: Sequence[str], first: int, last: int) -> str:
    """Show the lines from the first to the last number, and some around them."""
    start, end = max(first - _AROUND, 1), min(last + _AROUND, len(lines))
    return numbered(lines[start - 1 : end], start)


def shown_change(text: Text, change: Change) -> str:
    """Show the place in a text where a change was made."""
    lines = text.lines
    first = min(text.normal.count("\n", 0, change.start) + 1, max(len(lines), 1))
    last = first + change.new.removesuffix("\n").count("\n")
    return around(lines, first, last)


def numbered(lines: Sequence[str], first: int) -> str:
    """Show lines with their numbers; of very many the first and the last ones, in whole lines."""
    rows = [f"{number:6d}\t{line}" for number, line in enumerate(lines, first)]
    # A single line is shown whatever its length; what is too much of it the conversation cuts.
    if len(rows) == 1 or sum(map(len, rows)) + len(rows) <= _LIMIT:
        return "\n".join(rows)
    head = _fitting(rows)
    tail = _fitting(rows[head:][::-1])
    missing = (first + head, first + len(rows) - tail - 1)
    notice = f"[Lines {missing[0]} to {missing[1]} are left out here; view_range shows them.]"
    return "\n".join([*rows[:head], notice, *rows[len(rows) - tail :]])


def _fitting(rows: Sequence[str]) -> int:
    """Say how many rows fit in half of the room."""
    room = _LIMIT // 2
    for count, row in enumerate(rows):
        room -= len(row) + 1
        if room < 0:
            return count
    return len(rows)


async def shown_folder(workspace: Workspace, path: str) -> str:
    """List what is in a folder and in the folders in it; what is hidden is counted.

    Raises:
        PathError: it can't be read.
    """
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
