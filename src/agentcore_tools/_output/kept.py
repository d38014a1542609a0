"""Text of any length in bounded memory: its beginning and its end."""

from __future__ import annotations

import re
from collections import deque
from typing import Final, NamedTuple, final

__all__ = ["KEPT_CHARACTERS", "Gap", "Kept", "find_gap", "said"]

KEPT_CHARACTERS: Final = 256 * 1024
"""How much of an output is kept until it is told: half of it from the beginning, half from the end."""

# Where something was left out, in text that can hold no NUL, so that nothing else looks like it.
_GAP: Final = re.compile("\0([0-9]+):([0-9]+)\0")


@final
class Kept:
    """Collects pieces. What is left out is left out by whole pieces, so that lines that were added whole stay whole."""

    def __init__(self, limit: int = KEPT_CHARACTERS) -> None:
        self._half = limit // 2
        self._clear()

    def _clear(self) -> None:
        self._head: list[str] = []
        self._head_room = self._half
        self._tail: deque[str] = deque()
        self._tail_size = 0
        self._omitted = 0
        self._omitted_lines = 0

    def add(self, piece: str) -> None:
        """Take the next piece, without NUL characters."""
        if self._head_room > 0:
            self._head.append(piece)
            self._head_room -= len(piece)
            return
        self._tail.append(piece)
        self._tail_size += len(piece)
        while self._tail_size - len(self._tail[0]) >= self._half:
            left_out = self._tail.popleft()
            self._tail_size -= len(left_out)
            self._omitted += len(left_out)
            self._omitted_lines += left_out.count("\n")

    def take(self) -> str:
        """Give what is kept, with a gap for what is not (see `find_gap` and `said`), and start anew."""
        head, tail = "".join(self._head), "".join(self._tail)
        gap = f"\0{self._omitted}:{self._omitted_lines}\0" if self._omitted else ""
        self._clear()
        return head + gap + tail


class Gap(NamedTuple):
    """What was left out of a text, and where."""

    start: int
    """Where the text before it ends."""
    end: int
    """Where the text behind it begins."""
    characters: int
    lines: int
    """How many line ends are among the characters."""


def find_gap(text: str) -> Gap | None:
    """Find what was left out of a text; of several gaps, with what is between them."""
    found = list(_GAP.finditer(text))
    if not found:
        return None
    start, end = found[0].start(), found[-1].end()
    between = _GAP.sub("", text[start:end])
    return Gap(
        start,
        end,
        sum(int(gap[1]) for gap in found) + len(between),
        sum(int(gap[2]) for gap in found) + between.count("\n"),
    )


def said(text: str) -> str:
    """Put a line in brackets in the place of each gap."""
    return _GAP.sub(
        lambda gap: (
            ("" if text[: gap.start()].endswith("\n") else "\n")
            + f"[{int(gap[1]):,} characters ({int(gap[2]):,} line ends) were not kept]\n"
        ),
        text,
    )
