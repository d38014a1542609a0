"""Text of any length in bounded memory: its beginning and its end."""

from __future__ import annotations

from collections import deque
from typing import Final, final

__all__ = ["KEPT_CHARACTERS", "Kept"]

KEPT_CHARACTERS: Final = 2_000_000
"""How much of a command's output is kept until it is told: half of it from the beginning, half from the end."""


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
        """Take the next piece."""
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
        """Give what is kept, with a line in brackets for what is not, and start anew."""
        head, tail = "".join(self._head), "".join(self._tail)
        if self._omitted:
            start = "" if head.endswith("\n") else "\n"
            head += f"{start}[{self._omitted:,} characters ({self._omitted_lines:,} line ends) were not kept]\n"
        self._clear()
        return head + tail
