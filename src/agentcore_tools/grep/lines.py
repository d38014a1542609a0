"""What the two ways of searching give: the lines of a file."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple


class Line(NamedTuple):
    number: int
    text: str
    matches: bool


@dataclass(slots=True)
class Lines:
    """Of one file."""

    path: str
    """Relative to where the search started."""
    lines: list[Line] = field(default_factory=list[Line])
    """Those that match, and those around them."""
    matches: int = 0


class Search(NamedTuple):
    """What to search for, in whatever way."""

    pattern: str
    ignore_case: bool
    context: int
    first_only: bool
    """Whether the first line of each file is enough."""
    keep: bool
    """Whether the lines are wanted, or only how many there are."""
    limit: int
    """After how many to stop: lines where they are kept, else files."""
