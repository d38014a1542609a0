"""The output of one call as it comes: its first lines at once, and of a long one, at the end, its last ones.

Blank lines at its beginning and its end are left out: a key that was pressed leaves some.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence

from agentcore.cli.text import OutputLines

FEW = 8
"""So many lines, or fewer, are not left out: to say so would save next to nothing."""

_FIRST = 30
_LAST = 10
# Up, to a place, to the first place (but to clear the screen, which begins anew), to the screen of its own that an editor has.
_MOVES = re.compile(r"\x1b\[(?:\d*[AF]|\d+;\d+[Hf]|\d+d|\?(?:47|1047|1049)h)|(?<!J)\x1b\[H(?!\x1b\[[0-3]?J)")
_LONGEST_MOVE = 10
# What a terminal says in the place of lines. Whoever prints such a line himself is miscounted, and no more.
_MISSING = re.compile(r"\[(\d[\d,]*) lines came too fast to be shown\]")


class Output:
    """Decides which lines of an output are shown, and when."""

    def __init__(self, *, whole: bool) -> None:
        self._whole = whole
        self._reader = OutputLines()
        self._shown = 0
        self._held: deque[str] = deque(maxlen=_LAST + FEW)
        self.lines = 0
        """How many lines there were so far."""
        self.redrawn = False
        """Whether it moves about on the screen, so that its lines make no sense one after the other."""
        self._lines_shown: list[str] = []
        self._end = ""
        self.lost = False
        """Whether pieces are missing, because they came faster than they were shown."""
        self._newest = ""
        self._begun = False
        self._blank = 0
        """How many blank lines are held back."""

    @property
    def newest(self) -> str:
        """The newest line that says something, also while it is being written."""
        return self._reader.unfinished.strip() or self._newest

    def feed(self, piece: str) -> list[str]:
        """Give the lines to show now. As soon as it moves about on the screen, there are none."""
        if not self.redrawn:
            self.redrawn = _MOVES.search(self._end + piece) is not None
            self._end = piece[-_LONGEST_MOVE:]
        lines = self._reader.feed(piece)
        if self.redrawn:
            self._newest = next((line.strip() for line in reversed(lines) if line.strip()), self._newest)
            return []
        return self._take(lines)

    def left_of(self, answer: Sequence[str]) -> int:
        """Say from which line on an answer, which has the screen as it ended, was not shown yet."""
        return len(self._lines_shown) if list(answer[: len(self._lines_shown)]) == self._lines_shown else 0

    def finish(self) -> tuple[list[str], int, list[str]]:
        """Give the lines to show at the end: those that go on, how many are left out, and the last ones."""
        if self.redrawn:
            return [], 0, []
        more = self._take(self._reader.finish())
        last = list(self._held)
        if self.lines > self._shown + sum(map(_stands_for, last)):
            last = last[-_LAST:]
        return more, self.lines - self._shown - sum(map(_stands_for, last)), last

    def _take(self, lines: list[str]) -> list[str]:
        lines = self._without_blank_ends(lines)
        self.lines += sum(map(_stands_for, lines))
        if lines:
            self._newest = lines[-1].strip()
        room = len(lines) if self._whole else max(0, _FIRST - self._shown)
        now, later = lines[:room], lines[room:]
        self._shown += sum(map(_stands_for, now))
        self._lines_shown += now[: _FIRST - len(self._lines_shown)]
        self._held.extend(later)
        return now

    def _without_blank_ends(self, lines: list[str]) -> list[str]:
        """Hold back blank lines until something follows, and leave out those before anything came."""
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


def _stands_for(line: str) -> int:
    """Say how many lines a line is, or is in the place of."""
    missing = _MISSING.fullmatch(line)
    return 1 if missing is None else int(missing[1].replace(",", ""))
