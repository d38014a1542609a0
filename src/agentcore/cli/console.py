"""Where the command line prints: the terminal, a pipe or a file, in colour or not, in whatever encoding there is."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import sys
from typing import Any, Final, NoReturn

from rich.cells import cell_len, chop_cells
from rich.console import Console
from rich.text import Text

from agentcore._value import Value
from agentcore.cli.text import printable
from agentcore.events import Event

# The few styles there are; what is printed without colours reads the same.
NAME: Final = "bold cyan"
STRONG: Final = "bold"
DIM: Final = "dim"
GOOD: Final = "green"
BAD: Final = "red"
WARN: Final = "yellow"


class Glyphs:
    """Signs beside the text, in ASCII where the encoding has nothing better."""

    def __init__(self, encoding: str) -> None:
        try:
            "│●…·".encode(encoding)
        except (UnicodeEncodeError, LookupError):
            self.bar, self.dot, self.more, self.between = "|", "*", "...", "-"
        else:
            self.bar, self.dot, self.more, self.between = "│", "●", "…", "·"


class _Console(Console):
    def on_broken_pipe(self) -> NoReturn:
        # What rich does is to leave the program from here, whatever is under way: a conversation has to be closed first.
        raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))


def prepare_streams() -> None:
    """See to it that nothing that is printed can fail for want of a character."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")


def make_console(*, stderr: bool = False) -> Console:
    """Make what prints to the terminal; NO_COLOR, FORCE_COLOR, COLUMNS and TERM mean what they mean everywhere."""
    return _Console(stderr=stderr, highlight=False, markup=False, emoji=False)


def styled(text: str, style: str = "") -> Text:
    """Make text to which other text can be appended: a `Text`'s own style would go over to that."""
    return Text().append(text, style)


def say(console: Console, text: str | Text, style: str = "") -> None:
    """Print a line; the terminal wraps it, so that a path or a command can be copied whole."""
    line = Text(printable(text)) if isinstance(text, str) else text
    console.print(line, style=style or None, soft_wrap=True)


def say_words(console: Console, text: str | Text, style: str = "") -> None:
    """Print a sentence: between two words a terminal's line may end."""
    line = Text(printable(text)) if isinstance(text, str) else text
    console.print(line, style=style or None, soft_wrap=not console.is_terminal)


def say_below(console: Console, mark: str, line: Text) -> None:
    """Print a line behind a mark; a terminal that it is too wide for gets it folded, the mark before each piece.

    A line that says `no_wrap` is left to the terminal, which wraps it so that what is in it can be copied.
    """
    room = max(console.width - len(mark), 8)
    if console.is_terminal and "\t" in line.plain:
        line = line.copy()
        line.expand_tabs(8)  # counted from the mark, in each line alike
    if not console.is_terminal or line.no_wrap or line.cell_len <= room:
        say(console, styled(mark, DIM).append_text(line))
        return
    # What fills a line up, as tables and programs with a screen of their own do, needs no line of its own.
    for piece in fold(line.plain.rstrip(" "), room):
        say(console, styled(mark, DIM).append(piece, line.style))


def fold(line: str, width: int) -> list[str]:
    """Cut a line into pieces of a width: behind spaces, and in the middle only of a word that fills half a piece."""
    pieces: list[str] = []
    while cell_len(near := line[: 4 * width]) > width:  # no more of it: what is cut may be long
        piece = chop_cells(near, width)[0]
        if line[len(piece)] == " ":
            line = line[: len(piece)] + line[len(piece) + 1 :]  # the end of the line stands for it
        elif (words := _TO_A_SPACE.match(piece)) and cell_len(words[0]) * 2 > width:
            piece = words[0]
        pieces.append(piece.rstrip(" ") or piece)
        line = line[len(piece) :]
    return [*pieces, line]


_TO_A_SPACE = re.compile(r".*\s")


def flush() -> None:
    """Hand on what was printed; who does not read any more need not."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            continue


class JsonLines:
    """Writes a conversation as it goes on, to standard output, which is its alone from now on."""

    def __init__(self) -> None:
        sys.stdout.flush()
        output, errors = sys.stdout.fileno(), sys.stderr.fileno()
        self._descriptor = os.dup(output)
        # What else would write there, a library or something it starts, writes to standard error instead.
        os.dup2(errors, output)

    def event(self, event: Event) -> None:
        """Write an event, as the log has it."""
        self._write(event.model_dump_json().encode())

    def result(self, conversation_id: str, result: Value, exit_code: int) -> None:
        """Write the last line: `{"kind": "result", ...}` with all that the `RunResult` says."""
        line = {"kind": "result", "conversation_id": conversation_id, "exit_code": exit_code}
        self._write(_encode({**line, **result.model_dump(mode="json")}))

    def _write(self, line: bytes) -> None:
        rest = memoryview(line + b"\n")
        while rest:
            rest = rest[os.write(self._descriptor, rest) :]


def write_json(value: Any) -> None:
    """Write one line to standard output."""
    sys.stdout.flush()
    sys.stdout.buffer.write(_encode(value) + b"\n")


def _encode(value: Any) -> bytes:
    # UTF-8 whatever the locale is: that is what JSON is.
    return json.dumps(value, ensure_ascii=False, default=str).encode(errors="backslashreplace")
