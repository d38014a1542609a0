"""Words as they come, wrapped at the width of the terminal without cutting a word."""

from __future__ import annotations

import re
from collections.abc import Callable

from rich.cells import cell_len

__all__ = ["Flow"]

_PIECE = re.compile(r"\n|[^\S\n]+|\S+")
_LONG_WORD = 40


class Flow:
    """Writes text that comes in pieces.

    Args:
        write: Is given what can be shown.
        width: The columns there are, or None where nothing has to be wrapped.
    """

    def __init__(self, write: Callable[[str], None], width: int | None) -> None:
        self._write = write
        self._width = width
        self._column = 0
        self._gap = ""
        self._word = ""

    @property
    def mid_line(self) -> bool:
        """Whether the cursor stands behind something."""
        return self._column > 0

    def feed(self, text: str) -> None:
        """Write the next piece; a word that may go on is held back."""
        ready: list[str] = []
        for piece in _PIECE.findall(text):
            if piece == "\n":
                self._end_word(ready)
                ready.append("\n")
                self._column, self._gap = 0, ""
            elif piece.isspace():
                self._end_word(ready)
                self._gap += piece.replace("\t", "    ")
            else:
                self._word += piece
                if len(self._word) > _LONG_WORD:
                    self._end_word(ready)
        if ready:
            self._write("".join(ready))

    def finish(self) -> None:
        """Write what was held back, and end the line."""
        ready: list[str] = []
        self._end_word(ready)
        self._gap = ""
        if self._column:
            ready.append("\n")
            self._column = 0
        if ready:
            self._write("".join(ready))

    def _end_word(self, ready: list[str]) -> None:
        if not self._word:
            return
        size = cell_len(self._gap) + cell_len(self._word)
        if self._width is not None and self._column and self._column + size > self._width:
            ready.append("\n")
            self._column, self._gap = 0, ""
            size = cell_len(self._word)
        ready.append(self._gap + self._word)
        self._column += size
        self._gap = self._word = ""
