"""A change as a unified diff, made from the lines around it: it costs the same in a file of any size."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from agentcore_tools.files.text import Change

__all__ = ["CUT", "unified_diff"]

CUT: Final = "\\ The diff goes on.\n"
"""What stands below a diff that is not shown whole."""

_CONTEXT: Final = 3
# Comparing so many lines with each other takes long; they are shown as removed and added.
_MOST_LINES: Final = 2_000
_LONGEST: Final = 30_000
_RANGES: Final = re.compile(r"^@@ -(\d+)(\S*) \+(\d+)(\S*) @@")


def unified_diff(
    old: str,
    changes: Sequence[Change],
    path: str,
    *,
    to: str | None = None,
    created: bool = False,
    removed: bool = False,
) -> str:
    """Show changes of a text whose lines end in line feeds.

    Args:
        old: The text.
        changes: In order, and none over another.
        path: The file.
        to: Its new path, where it is moved.
        created: Whether there was no such file.
        removed: Whether there is none after it.
    """
    head = [f"--- {'/dev/null' if created else path}\n", f"+++ {'/dev/null' if removed else to or path}\n"]
    return _cut(chain(head, _all_hunks(old, changes)))


def _all_hunks(old: str, changes: Sequence[Change]) -> Iterator[str]:
    moved = 0
    for start, end, group in _groups(old, changes):
        before = _lines(old[start:end])
        after = _lines(_replaced(old, start, end, group))
        above = old.count("\n", 0, start)
        yield from _hunks(before, after, above, above + moved)
        moved += len(after) - len(before)


def _groups(old: str, changes: Sequence[Change]) -> Iterator[tuple[int, int, list[Change]]]:
    """Give the changes that share lines around them together, with where these lines begin and end."""
    group: list[Change] = []
    first = last = 0
    for change in changes:
        start, end = _line_start(old, change.start), _line_end(old, change.end)
        for _ in range(_CONTEXT):
            start, end = _line_start(old, start - 1), _line_end(old, end + 1)
        if group and start > last:
            yield first, last, group
            group = []
        first = first if group else start
        group.append(change)
        last = end
    if group:
        yield first, last, group


def _replaced(old: str, start: int, end: int, changes: Sequence[Change]) -> str:
    pieces: list[str] = []
    for change in changes:
        pieces += [old[start : change.start], change.new]
        start = change.end
    return "".join([*pieces, old[start:end]])


def _hunks(before: list[str], after: list[str], above: int, new_above: int) -> Iterator[str]:
    if max(len(before), len(after)) > _MOST_LINES:
        yield f"@@ -{above + bool(before)},{len(before)} +{new_above + bool(after)},{len(after)} @@\n"
        yield from (f"-{line}" for line in before)
        yield from (f"+{line}" for line in after)
        return
    for line in list(difflib.unified_diff(before, after, n=_CONTEXT))[2:]:
        if (ranges := _RANGES.match(line)) is None:
            yield line
        else:
            first, length, second, new_length = ranges.groups()
            yield f"@@ -{int(first) + above}{length} +{int(second) + new_above}{new_length} @@\n"


def _cut(lines: Iterable[str]) -> str:
    pieces: list[str] = []
    room = _LONGEST
    for line in lines:
        piece = line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        room -= len(piece)
        if room < 0:
            pieces.append(CUT)
            break
        pieces.append(piece)
    return "".join(pieces)


def _line_start(text: str, place: int) -> int:
    return text.rfind("\n", 0, max(place, 0)) + 1


def _line_end(text: str, place: int) -> int:
    """Give the end of the line that holds the place, its line feed included."""
    at = text.find("\n", place)
    return len(text) if at < 0 else at + 1


def _lines(text: str) -> list[str]:
    *whole, rest = text.split("\n")
    return [line + "\n" for line in whole] + ([rest] if rest else [])
