"""The output of one call while it streams: the first lines at once, the last lines of a long output at the end.

Blank lines at the beginning and the end are skipped: a key that was pressed leaves some.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence

from agentcore.cli.text import OutputLines

FEW = 8
"""The most lines that are not worth omitting."""

_FIRST = 30
_LAST = 10
# Cursor up, to a position, home (except to clear the screen, which starts again), or to an editor's alternate screen.
_MOVES = re.compile(r"\x1b\[(?:\d*[AF]|\d+;\d+[Hf]|\d+d|\?(?:47|1047|1049)h)|(?<!J)\x1b\[H(?!\x1b\[[0-3]?J)")
_LONGEST_MOVE = 10


class Output:
    """Decides which lines of an output are printed, and when."""

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole
        self._reader = OutputLines()
        self._shown = 0
        self._held: deque[str] = deque(maxlen=_LAST + FEW)
        self.lines = 0
        """The number of lines so far."""
        self.redrawn = False
        """True if the output moves the cursor about, so that its lines make no sense in sequence."""
        self._lines_shown: list[str] = []
        self._end = ""
        self.lost = False
        """True if pieces are missing because they arrived faster than they were printed."""
        self._newest = ""
        self._begun = False
        self._blank = 0
        """The number of blank lines that are held back."""

    @property
    def newest(self) -> str:
        """The newest line that is not blank, finished or not."""
        return self._reader.unfinished.strip() or self._newest

    def feed(self, piece: str) -> list[str]:
        """Return the lines to print now: none once the output moves the cursor about."""
        if not self.redrawn:
            self.redrawn = _MOVES.search(self._end + piece) is not None
            self._end = piece[-_LONGEST_MOVE:]
        lines = self._reader.feed(piece)
        if self.redrawn:
            self._newest = next((line.strip() for line in reversed(lines) if line.strip()), self._newest)
            return []
        return self._take(lines)

    def left_of(self, answer: Sequence[str]) -> int:
        """Return the index of the first line of the final screen that was not printed yet."""
        return len(self._lines_shown) if list(answer[: len(self._lines_shown)]) == self._lines_shown else 0

    def finish(self) -> tuple[list[str], int, list[str]]:
        """Return what to print at the end: lines that continue, the number of omitted lines, and the last lines."""
        if self.redrawn:
            return [], 0, []
        more = self._take(self._reader.finish())
        last = list(self._held)
        if self.lines > self._shown + len(last):
            last = last[-_LAST:]
        return more, self.lines - self._shown - len(last), last

    def _take(self, lines: list[str]) -> list[str]:
        lines = self._without_blank_ends(lines)
        self.lines += len(lines)
        if lines:
            self._newest = lines[-1].strip()
        room = len(lines) if self._whole else max(0, _FIRST - self._shown)
        now, later = lines[:room], lines[room:]
        self._shown += len(now)
        self._lines_shown += now[: _FIRST - len(self._lines_shown)]
        self._held.extend(later)
        return now

    def _without_blank_ends(self, lines: list[str]) -> list[str]:
        """Hold back blank lines until something follows, and drop those at the beginning."""
        ready: list[str] = []
        for line in lines:
            if not line:
                self._blank += 1
                continue
            if self._begun:
                ready += [""] * self._blank
            self._blank, self._begun = 0, True
            ready.append(line)
        return ready
