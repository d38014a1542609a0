"""Finding the places of hunks in a text, and making changes of them."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import Final

from agentcore_tools.apply_patch.grammar import Hunk
from agentcore_tools.files.lookalikes import fold
from agentcore_tools.files.masks import mask_hint
from agentcore_tools.files.text import Change, Text
from agentcore_tools.files.view import numbered

_SHOWN: Final = 12
_MOST_COMPARED: Final = 20_000


class Misfit(Exception):
    """A hunk has no place. Its text says so to a model."""


def _without_spaces(line: str) -> str:
    return "".join(line.split())


def _folded(line: str) -> str:
    return _without_spaces(fold(line))


# How lines are compared: as they are, then without what stands behind them, then without any space, then with characters that
# look alike taken for the same.
_WAYS: Final[tuple[Callable[[str], str], ...]] = (str, str.rstrip, _without_spaces, _folded)


class _Target:
    """A text's lines, in each of the ways in which they are compared."""

    def __init__(self, text: Text) -> None:
        self.lines = text.lines
        self._compared: dict[int, list[str]] = {0: self.lines}

    def find(
        self, wanted: Sequence[str], start: int, *, at_end: bool = False, near: int | None = None, heading: str = ""
    ) -> int | None:
        """Return the place of the lines at or after `start`, or None: the first one, or that next to the line `near`.

        Of several places those below the heading come first.
        With `at_end` they must be the last lines.
        """
        for way, compared in enumerate(_WAYS):
            if way not in self._compared:
                self._compared[way] = [compared(line) for line in self.lines]
            lines, sought = self._compared[way], [compared(line) for line in wanted]
            last = len(lines) - len(sought)
            if at_end:
                if last >= start and lines[last:] == sought:
                    return last
            else:
                places = _places(lines, sought, start)
                if heading:
                    places = self._below(heading, list(places), len(sought))
                if near is not None:
                    found = min(places, key=lambda place: abs(place + 1 - near), default=None)
                else:
                    found = next(places, None)
                if found is not None:
                    return found
        return None

    def _below(self, heading: str, places: Sequence[int], count: int) -> Iterator[int]:
        """Return those places that are in what a line begins which begins like the heading; all if none is."""
        if len(places) < 2:
            return iter(places)
        scopes = [
            (at, self._end_of_scope(at)) for at, line in enumerate(self.lines) if line.strip().startswith(heading)
        ]
        within = [place for place in places if any(at < place + count and place < end for at, end in scopes)]
        return iter(within or places)

    def _end_of_scope(self, at: int) -> int:
        """Return the next line that is as far to the left, and begins with a word."""
        depth = _depth(self.lines[at])
        rest = range(at + 1, len(self.lines))
        return next(
            (
                after
                for after in rest
                if _depth(self.lines[after]) <= depth and self.lines[after].lstrip()[:1].isidentifier()
            ),
            len(self.lines),
        )


def _depth(line: str) -> int:
    return len(line) - len(line.lstrip())


def refuse_other(text: Text, lines: Sequence[str]) -> None:
    """Refuse a file to be deleted whose lines are others than the patch says."""
    found = [line.rstrip() for line in text.lines]
    wanted = [line.rstrip() for line in lines]
    if found != wanted:
        at = next((at for at, (one, other) in enumerate(zip(found, wanted, strict=False)) if one != other), None)
        at = min(len(found), len(wanted)) if at is None else at
        raise Misfit(
            f"The patch deletes it, but it is not what the '-' lines say: the first difference is at line {at + 1}. "
            "View the file: it may have changed."
        )


def changes_of(text: Text, hunks: Sequence[Hunk]) -> list[Change]:
    """Return the changes of the hunks, in order. A `Misfit` lists those without a place."""
    target = _Target(text)
    starts = _starts(text)
    changes: list[Change] = []
    problems: list[str] = []
    at = 0
    for number, hunk in enumerate(hunks, 1):
        try:
            place = _place(target, hunk, at)
        except Misfit as problem:
            problems.append(f"- hunk {number} (line {hunk.line} of the patch): {problem}")
            continue
        changes += _changes(text.normal, starts, hunk, place)
        at = place + len(hunk.old)
    if problems:
        raise Misfit("\n".join(problems))
    return changes


def _places(lines: Sequence[str], sought: Sequence[str], start: int) -> Iterator[int]:
    first, count = sought[0], len(sought)
    for place in range(start, len(lines) - count + 1):
        if lines[place] == first and lines[place : place + count] == sought:
            yield place


def _place(target: _Target, hunk: Hunk, at: int) -> int:
    for anchor in hunk.anchors:
        found = target.find([anchor], at)
        if found is None:
            above = target.find([anchor], 0)
            if above is not None:
                raise Misfit(
                    f"the line '@@ {anchor}' is at line {above + 1} of the file, which is above the hunk before this one. "
                    "Give hunks in the order of the file."
                )
            raise Misfit(f"there is no line '@@ {anchor}' in the file.{_nearest(target.lines, [anchor], at)}")
        at = found + 1
    old = hunk.old
    if not old and hunk.near is not None and not hunk.anchors:
        if hunk.near < at:
            raise Misfit(_overlap(hunk.near))
        return min(hunk.near, len(target.lines))
    if not old:
        return at if hunk.anchors and not hunk.at_end else len(target.lines)
    place = target.find(old, at, at_end=True) if hunk.at_end else None
    if place is None:
        place = target.find(old, at, near=hunk.near, heading=hunk.heading)
    if place is not None and hunk.near is not None and not hunk.anchors and not hunk.at_end:
        _refuse_overlap(target, hunk, hunk.near, place, at)
    # A model may repeat the line of the anchor in the hunk.
    if place is None and hunk.anchors:
        place = target.find(old, at - 1)
        place = None if place != at - 1 else place
    if place is None:
        above = target.find(old, 0)
        if above is not None:
            raise Misfit(
                f"its lines are at line {above + 1} of the file, which is above {'its @@ line' if hunk.anchors else 'the hunk before it'}. "
                "Give hunks in the order of the file."
            )
        raise Misfit(f"its lines are not in the file.{_nearest(target.lines, old, at)}")
    return place


def _refuse_overlap(target: _Target, hunk: Hunk, near: int, place: int, at: int) -> None:
    """Refuse a hunk that would go to a place far away because that which it names is taken."""
    named = target.find(hunk.old, 0, near=near, heading=hunk.heading)
    if named is not None and named < at and (hunk.heading or abs(named + 1 - near) < abs(place + 1 - near)):
        raise Misfit(_overlap(named + 1))


def _overlap(line: int) -> str:
    return (
        f"its place is line {line} of the file, where the hunk before it is or which is above that: the hunks overlap, or are not in "
        "the order of the file. Make one hunk of both."
    )


def _changes(normal: str, starts: Sequence[int], hunk: Hunk, line: int) -> Iterator[Change]:
    """Return a change for each stretch of removed or added lines. Lines that stay are never rewritten."""
    for stays, group in groupby(hunk.lines, lambda signed: signed[0] == " "):
        signed = list(group)
        added = [content for sign, content in signed if sign == "+"]
        old = len(signed) - len(added)
        if not stays:
            yield _change(normal, starts, line, old, added)
        line += old


def _change(normal: str, starts: Sequence[int], line: int, removed: int, added: Sequence[str]) -> Change:
    start, end = starts[line], starts[line + removed]
    new = "".join(f"{each}\n" for each in added)
    if start == len(normal) and normal and not normal.endswith("\n") and not removed:
        # Lines behind a last line without an end: that gets one, and the new last line none.
        return Change(start, start, "\n" + new.removesuffix("\n"))
    if end == len(normal) and removed and not normal.endswith("\n"):
        new = new.removesuffix("\n")
        if not added and start:
            # The line before becomes the last one, and has no end then either.
            return Change(start - 1, end, "")
    return Change(start, end, new)


def _starts(text: Text) -> list[int]:
    """Return the beginning of each line, and the end of the text."""
    starts = [0]
    for line in text.lines:
        starts.append(min(starts[-1] + len(line) + 1, len(text.normal)))
    return starts


def _nearest(lines: Sequence[str], wanted: Sequence[str], at: int) -> str:
    """Show the place that is most like what was wanted, or the reason why there is none."""
    if hint := mask_hint("\n".join(wanted)):
        return f" {hint}"
    if not lines:
        return " The file is empty."
    first = next((line for line in wanted if line.strip()), wanted[0])
    near = difflib.get_close_matches(
        first.strip(), {line.strip() for line in lines[:_MOST_COMPARED] if line.strip()}, n=1
    )
    if not near:
        return " No line in it is similar. View the file: it may have changed."
    places = [number for number, line in enumerate(lines) if line.strip() == near[0]]
    sought = [_without_spaces(line) for line in wanted]

    def likeness(place: int) -> tuple[int, bool]:
        found = [_without_spaces(line) for line in lines[place : place + len(wanted)]]
        return sum(1 for one, other in zip(found, sought, strict=False) if one == other), place >= at

    place = max(places, key=likeness)
    shown = lines[place : place + min(len(wanted), _SHOWN)]
    pairs = zip(wanted, shown, strict=False)
    differ = next((pair for pair in pairs if _without_spaces(pair[0]) != _without_spaces(pair[1])), None)
    detail = "" if differ is None else f" The first line that differs is {differ[0]!r}; the file has {differ[1]!r}."
    return f" The nearest to it is:\n{numbered(shown, place + 1)}\n {detail}".rstrip()
