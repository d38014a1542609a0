"""The model's text in the live view: printed while it streams, wrapped between words, and never printed twice."""

from __future__ import annotations

import re
from collections.abc import Callable

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from agentcore.cli.console import DIM
from agentcore.cli.text import printable

_PIECE = re.compile(r"\n|[^\S\n]+|\S+")
_LONG_WORD = 40


class Wrap:
    """Wraps text that arrives in pieces. rich wraps only what it has whole.

    Args:
        write: Receives the text that can be printed.
        width: The columns of the terminal; None where nothing is wrapped.
    """

    def __init__(self, write: Callable[[str], None], width: int | None) -> None:
        self._write = write
        self._width = width
        self._column = 0
        self._gap = ""
        self._word = ""

    def feed(self, text: str) -> None:
        """Write the next piece; its last word is held back, because it may continue."""
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


class ReplyPrinter:
    """Prints a reply paragraph by paragraph, with an empty line after each."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._style = ""
        self._wrap = self._new_wrap()
        self._open = False
        """Whether a paragraph is being printed."""
        self._reply_id: str | None = None
        self._printed = ""
        """The part of the reply that was printed."""
        self._recorded = ""
        """The part of the reply that events contain so far."""

    def text(self, reply_id: str | None, offset: int, piece: str) -> None:
        """Print the next piece of a reply, unless one before it is missing: then the event brings all of it."""
        self._switch_to(reply_id)
        known = len(self._printed)
        if offset <= known < offset + len(piece):
            new = piece[known - offset :]
            self._printed += new
            self._print(new, "")

    def reasoning(self, piece: str) -> None:
        """Print a piece of the model's reasoning."""
        self._print(piece, f"{DIM} italic")

    def print_rest(self, reply_id: str | None, text: str) -> None:
        """Print the part of a recorded reply that was not printed while it streamed."""
        if not text:
            return
        self._switch_to(reply_id)
        self._recorded += text
        if self._recorded.startswith(self._printed):
            rest = self._recorded[len(self._printed) :]
            self._printed = self._recorded
            self._print(rest, "")
        elif not self._printed.startswith(self._recorded):
            self.end()
            self._printed = self._recorded
            self._print(text, "")

    def print_paragraph(self, text: str) -> None:
        """Print a paragraph."""
        self.end()
        self._print(text, "")
        self.end()

    def reset(self) -> None:
        """Discard the reply so far: it starts again, or was abandoned."""
        if self._open:
            self.end()
            self._console.print(Text("(this reply was cut off)", DIM))
        self._printed = self._recorded = ""

    def pause(self) -> None:
        """End the line, because something else is shown for a while."""
        self._wrap.finish()

    def end(self) -> None:
        """End the paragraph."""
        self._wrap.finish()
        if self._open:
            self._open = False
            self._console.print()

    def _switch_to(self, reply_id: str | None) -> None:
        if reply_id != self._reply_id:
            self.end()
            self._reply_id = reply_id
            self._printed = self._recorded = ""

    def _print(self, text: str, style: str) -> None:
        if style != self._style:
            self.end()
            self._style = style
        if not self._open:
            text = text.lstrip()
            if not text:
                return
            self._wrap = self._new_wrap()
            self._open = True
        self._wrap.feed(printable(text))

    def _new_wrap(self) -> Wrap:
        return Wrap(self._write, self._console.width if self._console.is_terminal else None)

    def _write(self, text: str) -> None:
        self._console.print(Text(text, self._style), end="", soft_wrap=True)
