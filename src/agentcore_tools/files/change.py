"""Finding the place of a change in a text, and showing the change as a unified diff."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from agentcore.errors import ToolError
from agentcore_tools.files.lookalikes import difference, fold
from agentcore_tools.files.masks import mask_hint
from agentcore_tools.files.text import Change, Text, with_line_feeds

_PLACES_SHOWN: Final = 20


def replacing(text: Text, old: str, new: str, path: str, *, every: bool = False) -> list[Change]:
    """Find the one place, or every place, of some text that is to be replaced, for arguments `old_str` and `new_str`."""
    old, new, places = _found(text, old, new, path, "str")
    if every:
        return [Change(place, place + len(old), new) for place in places]
    if len(places) == 1:
        # One that begins in the first one is as likely meant.
        places += _places(text.normal, old, places[0] + 1)
    if len(places) > 1:
        raise ToolError(
            f"old_str occurs {_times(text, places, path)}, so nothing was changed. Give more of the text around the one that is "
            "meant, or replace_all=true."
        )
    return [Change(places[0], places[0] + len(old), new)]


def replacing_all(text: Text, old: str, new: str, expected: int | None, path: str) -> list[Change]:
    """Find all places of some text, as many as expected (None: any), for arguments `old_string` and `new_string`."""
    old, new, places = _found(text, old, new, path, "string")
    if expected is not None and len(places) != expected:
        raise ToolError(
            f"old_string occurs {_times(text, places, path)}, and {expected} were expected: nothing was changed. Give more of the "
            "text around the one that is meant, or replace_all=true for all of them."
        )
    return [Change(place, place + len(old), new) for place in places]


def inserting(text: Text, line: int, new: str, path: str) -> Change:
    """Find the place after a line."""
    lines = text.lines
    if not 0 <= line <= len(lines):
        raise ToolError(
            f"{path!r} has {len(lines)} lines, so insert_line is from 0 (the beginning) to {len(lines)} (the end), not {line}."
        )
    place = sum(len(each) + 1 for each in lines[:line])
    new = with_line_feeds(new).removesuffix("\n")
    if place > len(text.normal):
        # The last line has no end, and the new last line gets none.
        return Change(len(text.normal), len(text.normal), "\n" + new)
    return Change(place, place, new + "\n")


def between(old: str, new: str) -> Change:
    """Find the one change that makes a text of another."""
    start = _same_beginning(old, new)
    end = _same_beginning(old[start:][::-1], new[start:][::-1])
    return Change(start, len(old) - end, new[start : len(new) - end])


def _found(text: Text, old: str, new: str, path: str, word: str) -> tuple[str, str, list[int]]:
    """Return the old text, the new text and the places, at least one. `word` ends the names of the tool's arguments."""
    old, new = with_line_feeds(old), with_line_feeds(new)
    if not old:
        raise ToolError(f"old_{word} is empty. Give the text to replace.")
    if old == new:
        raise ToolError(f"old_{word} and new_{word} are the same: nothing would change.")
    places = _places(text.normal, old)
    if not places and text.normal.count(old.strip() or old) == 1:
        # Models add and forget space around what they quote.
        old, new = old.strip(), new.strip()
        places = _places(text.normal, old)
        if old == new:
            raise ToolError(
                f"Without the space around them, old_{word} and new_{word} are the same: nothing would change."
            )
    if not places:
        raise ToolError(
            f"old_{word} does not occur in {path!r}, so nothing was changed. {_near(text, old)} {text.note}".rstrip()
        )
    return old, new, places


def _times(text: Text, places: Sequence[int], path: str) -> str:
    numbers = [str(text.normal.count("\n", 0, place) + 1) for place in places[:_PLACES_SHOWN]]
    more = f" and {len(places) - _PLACES_SHOWN} more" if len(places) > _PLACES_SHOWN else ""
    return f"{len(places)} times in {path!r}, at lines {', '.join(numbers)}{more}"


def _places(text: str, old: str, start: int = 0) -> list[int]:
    places: list[int] = []
    at = text.find(old, start)
    while at >= 0:
        places.append(at)
        at = text.find(old, at + len(old))
    return places


def _near(text: Text, old: str) -> str:
    """Return a hint at a place with similar text, or at the reason why there is none."""
    if hint := mask_hint(old):
        return hint
    folded, sought = fold(text.normal), fold(old)
    if (place := folded.find(sought)) >= 0:
        # Folding keeps the lines.
        line, rows = folded.count("\n", 0, place), sought.count("\n") + 1
        there = "\n".join(text.lines[line : line + rows])
        return f"Line {line + 1} differs only in characters that look alike: {difference(there, old)}. Use those of the file."
    wanted = [" ".join(line.split()) for line in old.split("\n") if line.strip()]
    first = wanted[0] if wanted else ""
    found = [number for number, line in enumerate(text.lines, 1) if first and " ".join(line.split()) == first]
    if not found:
        return "View the file: it may have changed."
    numbers = ", ".join(map(str, found[:_PLACES_SHOWN]))
    return f"The first line matches line {numbers} except for whitespace; compare the following lines."


def _same_beginning(one: str, other: str) -> int:
    """Return the length of the common beginning. It is found by halving, because comparing stretches is fast."""
    known, limit = 0, min(len(one), len(other))
    while known < limit:
        middle = (known + limit + 1) // 2
        if one[known:middle] == other[known:middle]:
            known = middle
        else:
            limit = middle - 1
    return known


CUT: Final = "\\ The diff goes on.\n"
"""The last line of a diff that was cut."""

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
    """Show changes of a text, in order and none over another, with its new path `to` where the file is moved."""
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
    """Group the changes that share context lines, with the beginning and the end of these lines."""
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
    """Return the end of the line at a place, its line feed included."""
    at = text.find("\n", place)
    return len(text) if at < 0 else at + 1


def _lines(text: str) -> list[str]:
    *whole, rest = text.split("\n")
    return [line + "\n" for line in whole] + ([rest] if rest else [])
