"""A search in files, whatever program does it: the pattern, the limits, and the lines that were found."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple

_COUNTED: Final = re.compile(r"\{\s*(\d*)\s*(,?)\s*(\d*)\s*\}")
_NAMED: Final = re.compile(r"\\(?:[xuUpP]\{[^}]*\}|b\{(?:start|end)(?:-half)?\})")
_LINE_ENDS: Final = {r"\A": "^", r"\z": "$"}


class Line(NamedTuple):
    """A line that matches, or is near one that does."""

    number: int
    text: str
    matches: bool


@dataclass(slots=True)
class Lines:
    """The lines that were found in one file."""

    path: str
    """Relative to where the search started."""
    lines: list[Line] = field(default_factory=list[Line])
    """Those that match, and those around them."""
    matches: int = 0


class Search(NamedTuple):
    """A search for a pattern, with its limits."""

    pattern: str
    ignore_case: bool
    context: int
    first_only: bool
    """Stop at the first line of each file."""
    keep: bool
    """Return the lines, and not only their number."""
    limit: int
    """The number of lines after which to stop; of files, where lines are not kept."""


def fix_pattern(pattern: str) -> str:
    r"""Fix what ripgrep refuses or never finds although the meaning is clear.

    That is a brace that cannot be a count, as in `func main() {`, and `\A` and `\z`: as lines are searched one by one, the ends
    of the text are the ends of a line.
    """
    fixed, at, in_class = "", 0, False
    while at < len(pattern):
        character = pattern[at]
        if character == "\\":
            end = at + 2
            if (named := _NAMED.match(pattern, at)) is not None:
                end = named.end()
            fixed += _LINE_ENDS.get(pattern[at:end], pattern[at:end])
            at = end
            continue
        if character == "[" and not in_class:
            in_class = True
        elif character == "]":
            in_class = False
        elif character == "{" and not in_class:
            counted = _COUNTED.match(pattern, at)
            if counted is None or not (counted[1] or counted[3]) or not fixed or fixed[-1] in "(|":
                fixed += "\\{"
            else:
                # Older versions have no way to leave the lower bound out.
                fixed += f"{{{counted[1] or '0'}{counted[2]}{counted[3]}}}"
                at = counted.end()
                continue
            at += 1
            continue
        fixed += character
        at += 1
    return fixed
