"""The progress line at the bottom of a terminal: the current wait and how long it has lasted."""

from __future__ import annotations

from collections.abc import Callable

import anyio
from rich.cells import cell_len, set_cell_size
from rich.console import Console

from agentcore.cli.text import duration

_EVERY = 0.25
_QUIET = 0.5
"""Seconds without output before the line appears, so that short waits show none."""
_CLEAR = "\r\x1b[2K"


class Ticker:
    """Draws and erases the line. Draws nothing on a pipe, in a file or on a terminal that cannot erase.

    Call `clear` before printing anything else.
    """

    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        self._console = console
        self._clock = clock
        self._on = console.is_terminal and not console.is_dumb_terminal
        self._drawn = False
        self._what: Callable[[], str] | None = None
        self._since = self._printed = clock()

    def show(self, what: Callable[[], str] | str | None) -> None:
        """Set what is being waited for; None for nothing."""
        self.clear()
        self._what = (lambda: what) if isinstance(what, str) else what
        self._since = self._clock()

    def clear(self) -> bool:
        """Erase the line and return whether there was one; it comes back after a while without output."""
        self._printed = self._clock()
        drawn, self._drawn = self._drawn, False
        if drawn:
            self._console.file.write(_CLEAR)
            self._console.file.flush()
        return drawn

    async def run(self) -> None:
        """Redraw until cancelled."""
        while self._on:
            await anyio.sleep(_EVERY)
            self.draw()

    def draw(self) -> None:
        """Draw the line if something is being waited for and nothing was printed recently."""
        now = self._clock()
        if self._what is None or now - self._printed < _QUIET:
            return
        seconds = int(now - self._since)
        what, how_long = self._what(), f" ({duration(seconds) if seconds >= 60 else f'{seconds} s'})"
        room = max(self._console.width - 1 - len(how_long), 1)
        if cell_len(what) > room:
            what = set_cell_size(what, room)
        line = f"{what}{how_long}"
        plain = self._console.no_color or self._console.color_system is None
        self._console.file.write(f"{_CLEAR}{line}" if plain else f"{_CLEAR}\x1b[2m{line}\x1b[0m")
        self._console.file.flush()
        self._drawn = True
