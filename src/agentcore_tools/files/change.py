"""Finding the place of a change in a text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from agentcore.errors import ToolError
from agentcore_tools.files.text import Change, Text, with_line_feeds

__all__ = ["between", "inserting", "replacing", "replacing_all"]

_PLACES_SHOWN: Final = 20


def replacing(text: Text, old: str, new: str, path: str) -> Change:
    """Find the one place of some text that is to be replaced.

    Raises:
        ToolError: there is none, or more than one, or nothing would change.
    """
    old, new, places = _found(text, old, new, path, "str")
    if len(places) == 1:
        # One that begins in the first one is as likely meant.
        places += _places(text.normal, old, places[0] + 1)
    if len(places) > 1:
        raise ToolError(
            f"old_str occurs {len(places)} times in {path!r}, at lines {_numbers(text, places)}, so nothing was changed. "
            "Give more of the text around the one that is meant."
        )
    return Change(places[0], places[0] + len(old), new)


def replacing_all(text: Text, old: str, new: str, expected: int, path: str) -> list[Change]:
    """Find all places of some text, where there are as many as expected.

    Raises:
        ToolError: there are more or fewer, or nothing would change.
    """
    old, new, places = _found(text, old, new, path, "string")
    if len(places) != expected:
        numbers = _numbers(text, places)
        raise ToolError(
            f"old_string occurs {len(places)} times in {path!r}, at lines {numbers}, and {expected} were expected: nothing was "
            "changed. Give more of the text around the one that is meant, or expected_replacements for all of them."
        )
    return [Change(place, place + len(old), new) for place in places]


def inserting(text: Text, line: int, new: str, path: str) -> Change:
    """Find the place after a line.

    Raises:
        ToolError: there is no such line.
    """
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
    """Give what to replace, by what and where, at one place at least; the arguments end in a word of the tool's own."""
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
        raise ToolError(f"old_{word} does not occur in {path!r}, so nothing was changed. {_near(text, old)}")
    return old, new, places


def _numbers(text: Text, places: Sequence[int]) -> str:
    numbers = [str(text.normal.count("\n", 0, place) + 1) for place in places[:_PLACES_SHOWN]]
    return ", ".join(numbers) + (f" and {len(places) - _PLACES_SHOWN} more" if len(places) > _PLACES_SHOWN else "")


def _places(text: str, old: str, start: int = 0) -> list[int]:
    places: list[int] = []
    at = text.find(old, start)
    while at >= 0:
        places.append(at)
        at = text.find(old, at + len(old))
    return places


def _near(text: Text, old: str) -> str:
    """Say where something like it is."""
    wanted = [" ".join(line.split()) for line in old.split("\n") if line.strip()]
    first = wanted[0] if wanted else ""
    found = [number for number, line in enumerate(text.lines, 1) if first and " ".join(line.split()) == first]
    if not found:
        return "View the file: it may have changed."
    numbers = ", ".join(map(str, found[:_PLACES_SHOWN]))
    return f"Its first line is, but for space, at line {numbers}: compare what follows there, indentation too."


def _same_beginning(one: str, other: str) -> int:
    """Give how many characters at the beginning are the same, by halving: comparing stretches is fast."""
    known, limit = 0, min(len(one), len(other))
    while known < limit:
        middle = (known + limit + 1) // 2
        if one[known:middle] == other[known:middle]:
            known = middle
        else:
            limit = middle - 1
    return known
