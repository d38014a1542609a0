"""Output to a terminal, a pipe or a file: lines for people, and JSON Lines for programs."""

from __future__ import annotations

import errno
import io
import json
import os
import sys
from collections.abc import Callable
from typing import Any, Final, NoReturn

import anyio
from rich.cells import cell_len, set_cell_size
from rich.console import Console
from rich.text import Text

from agentcore._value import Value
from agentcore.cli.text import duration, printable
from agentcore.events import Event

# All styles there are. Output without colours has the same text.
NAME: Final = "bold cyan"
STRONG: Final = "bold"
DIM: Final = "dim"
GOOD: Final = "green"
BAD: Final = "red"
WARN: Final = "yellow"

_LEAST_WIDTH: Final = 8
_EVERY: Final = 0.25
_QUIET: Final = 0.5
"""Seconds without output before the progress line appears, so that short waits show none."""
_CLEAR: Final = "\r\x1b[J"


class Glyphs:
    """Signs beside the text, in ASCII where the encoding has nothing better."""

    def __init__(self, encoding: str) -> None:
        try:
            "│…·".encode(encoding)
        except (UnicodeEncodeError, LookupError):
            self.bar, self.more, self.between = "|", "...", "-"
        else:
            self.bar, self.more, self.between = "│", "…", "·"


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        # rich would end the program here, but a conversation has to be closed first.
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def prepare_streams() -> None:
    """Make characters that the encoding lacks print as escapes instead of failing."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def make_console(*, stderr: bool = False) -> Console:
    """Return a console that heeds NO_COLOR, FORCE_COLOR, COLUMNS and TERM, and interprets no markup."""
    return _Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def styled(text: str, style: str = "") -> Text:
    """Return text to which other text can be appended: a `Text`'s own style would apply to that too."""
    return Text().append(text, style)


def print_line(console: Console, text: str | Text, style: str = "") -> None:
    """Print a line and leave wrapping to the terminal, so that a path or a command can be copied whole."""
    line = Text(printable(text)) if isinstance(text, str) else text
    console.print(line, style=style or None, soft_wrap=True)


def print_text(console: Console, text: str | Text, style: str = "") -> None:
    """Print a sentence; on a terminal it is wrapped between words."""
    line = Text(printable(text)) if isinstance(text, str) else text
    console.print(line, style=style or None, soft_wrap=not console.is_terminal)


def print_below(console: Console, mark: str, line: Text) -> None:
    """Print a line behind a mark; on a terminal it is wrapped to the width, with the mark before each piece.

    A line with `no_wrap` is left to the terminal, so that it can be copied.
    """
    pieces = [line]
    if console.is_terminal and not line.no_wrap:
        # Tabs count from the mark, alike in each line.
        pieces = line.wrap(console, max(console.width - len(mark), _LEAST_WIDTH), tab_size=8)
    for piece in pieces:
        if len(pieces) > 1:
            piece.rstrip()
        print_line(console, styled(mark, DIM).append_text(piece))


class Ticker:
    """The progress line at the bottom of a terminal: the current wait and how long it has lasted.

    Draws nothing on a pipe, in a file or on a terminal that cannot erase. The cursor stays at the line's beginning: when the
    window narrows and the terminal wraps the line, all pieces of it are behind the cursor and are erased.

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

    def keep(self, what: Callable[[], str] | None) -> None:
        """Like `show`, but what is being waited for already stays, with the time since when."""
        if self._what != what:
            self.show(what)

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
        self._console.file.write(f"{_CLEAR}{line}\r" if plain else f"{_CLEAR}\x1b[2m{line}\x1b[0m\r")
        self._console.file.flush()
        self._drawn = True


def flush() -> None:
    """Flush standard output and standard error. A reader that is gone is not an error."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue


class JsonLines:
    """A conversation as JSON Lines on standard output; nothing else is written there from then on."""

    def __init__(self) -> None:
        sys.stdout.flush()
        output, errors = sys.stdout.fileno(), sys.stderr.fileno()
        self._descriptor = os.dup(output)
        # Whatever else writes there, a library or a program that it starts, writes to standard error instead.
        os.dup2(errors, output)

    def event(self, event: Event) -> None:
        """Write an event as the log has it."""
        self._write(event.model_dump_json().encode())

    def result(self, conversation_id: str, result: Value, exit_code: int) -> None:
        """Write the last line: `{"kind": "result", ...}` with all fields of the result."""
        line = {"kind": "result", "conversation_id": conversation_id, "exit_code": exit_code}
        self._write(_encode({**line, **result.model_dump(mode="json")}))

    def _write(self, line: bytes) -> None:
        rest = memoryview(line + b"\n")
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]


def write_json(value: Any) -> None:
    """Write one line of JSON to standard output."""
    sys.stdout.flush()
    sys.stdout.buffer.write(_encode(value) + b"\n")


def _encode(value: Any) -> bytes:
    # UTF-8 whatever the locale is, as JSON requires.
    return json.dumps(value, ensure_ascii=False, default=str).encode(errors="backslashreplace")
