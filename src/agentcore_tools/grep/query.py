"""A search in files, whatever program does it: the pattern, the limits, and the lines that were found."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Final, NamedTuple

# An escape, a class, a count behind something that can be counted, or another brace.
_PARTS: Final = re.compile(
    r"\\(?:[xuUpP]\{[^}]*\}|b\{(?:start|end)(?:-half)?\}|.)|\[\^?\]?(?:\\.|[^\]\\])*\]"
    r"|(?<=[^(|])\{\s*(?P<least>\d*)\s*(?P<comma>,?)\s*(?P<most>\d*)\s*\}|\{",
    re.DOTALL,
)
_SAME: Final = {r"\A": "^", r"\z": "$", r"\<": r"\b", r"\>": r"\b"}
_ESCAPE: Final = re.compile(r"\\.", re.DOTALL)
_SPECIAL: Final = frozenset("\\.+*?()|[]{}^$#&-~")
_SPECIAL_IN_CLASSES: Final = frozenset("\\[]^-&~")

LONGEST: Final = 50_000
"""How much of a line is passed on: far more than is shown, so that a secret in what is shown is complete and can be masked."""


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
    longest: int = LONGEST


class ProgramMissing(Exception):
    """The workspace has no such program, or one that is too old."""


def fix_pattern(pattern: str) -> str:
    r"""Fix what ripgrep refuses or never finds although the meaning is clear.

    That is a brace that cannot be a count, as in `func main() {`; a backslash that is not needed, as in `\/`; `\<` and `\>`, the
    ends of a word in other programs; and `\A` and `\z`: as lines are searched one by one, the ends of the text are those of a line.
    """
    return _PARTS.sub(_fix_part, pattern)


def _fix_part(found: re.Match[str]) -> str:
    part = found[0]
    if part[0] == "[":
        return _ESCAPE.sub(lambda escape: _unescaped(escape[0], _SPECIAL_IN_CLASSES), part)
    if part[0] != "{":
        return _unescaped(_SAME.get(part, part), _SPECIAL)
    if not (found["least"] or found["most"]):
        return "\\" + part
    # Older versions have no way to leave the lower bound out.
    return f"{{{found['least'] or '0'}{found['comma']}{found['most']}}}"


def _unescaped(part: str, special: Collection[str]) -> str:
    """Return what an escape stands for, if that is one character that needs none."""
    plain = len(part) == 2 and part[0] == "\\" and part[1] not in special
    return part[1] if plain and not (part[1].isascii() and part[1].isalnum()) else part
