"""A change as a unified diff, made from the lines around it: it costs the same in a file of any size."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator
from typing import Final

from agentcore_tools.files.text import Change

__all__ = ["unified_diff"]

_CONTEXT: Final = 3
# Comparing so many lines with each other takes long; they are shown as removed and added.
_MOST_LINES: Final = 2_000
_LONGEST: Final = 30_000
_RANGES: Final = re.compile(r"^@@ -(\d+)(\S*) \+(\d+)(\S*) @@")


def unified_diff(old: str, change: Change, path: str, *, created: bool = False, removed: bool = False) -> str:
    """Show a change of a text whose lines end in line feeds."""
    start, end = _line_start(old, change.start), _line_end(old, change.end)
    for _ in range(_CONTEXT):
        start, end = _line_start(old, start - 1), _line_end(old, end + 1)
    before = _lines(old[start:end])
    after = _lines(old[start : change.start] + change.new + old[change.end : end])
    head = [f"--- {'/dev/null' if created else path}\n", f"+++ {'/dev/null' if removed else path}\n"]
    return _cut([*head, *_hunks(before, after, old.count("\n", 0, start))])


def _hunks(before: list[str], after: list[str], above: int) -> Iterator[str]:
    if max(len(before), len(after)) > _MOST_LINES:
        yield f"@@ -{above + bool(before)},{len(before)} +{above + bool(after)},{len(after)} @@\n"
        yield from (f"-{line}" for line in before)
        yield from (f"+{line}" for line in after)
        return
    for line in list(difflib.unified_diff(before, after, n=_CONTEXT))[2:]:
        if (ranges := _RANGES.match(line)) is None:
            yield line
        else:
            first, length, second, new_length = ranges.groups()
            yield f"@@ -{int(first) + above}{length} +{int(second) + above}{new_length} @@\n"


def _cut(lines: Iterable[str]) -> str:
    pieces: list[str] = []
    room = _LONGEST
    for line in lines:
        piece = line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
        room -= len(piece)
        if room < 0:
            pieces.append("\\ The diff goes on.\n")
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
