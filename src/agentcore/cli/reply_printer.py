"""Words as they come, wrapped at the width of the terminal without cutting a word."""

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


class Words:
    """Prints words, paragraph by paragraph, with an empty line behind each."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._style = ""
        self._flow = self._new_flow()
        self._open = False
        """Whether a paragraph is being written."""
        self._reply_id: str | None = None
        self._printed = ""
        """What was printed of the reply."""
        self._said = ""
        """What events say of the reply so far."""

    def text(self, reply_id: str | None, offset: int, piece: str) -> None:
        """Print the next words of a reply, unless some before them are missing: then the event says them all."""
        self._turn_to(reply_id)
        known = len(self._printed)
        if offset <= known < offset + len(piece):
            new = piece[known - offset :]
            self._printed += new
            self._print(new, "")

    def reasoning(self, piece: str) -> None:
        """Print what is being thought."""
        self._print(piece, f"{DIM} italic")

    def say_rest(self, reply_id: str | None, text: str) -> None:
        """Print of a reply's words, which an event has, those that were not printed as they came."""
        if not text:
            return
        self._turn_to(reply_id)
        self._said += text
        if self._said.startswith(self._printed):
            rest = self._said[len(self._printed) :]
            self._printed = self._said
            self._print(rest, "")
        elif not self._printed.startswith(self._said):
            self.end()
            self._printed = self._said
            self._print(text, "")

    def say(self, text: str) -> None:
        """Print a paragraph."""
        self.end()
        self._print(text, "")
        self.end()

    def reset(self) -> None:
        """What was printed of the reply does not count: it starts over, or was given up."""
        if self._open:
            self.end()
            self._console.print(Text("(the reply was broken off here)", DIM))
        self._printed = self._said = ""

    def pause(self) -> None:
        """End the line: something else is shown for a while."""
        self._flow.finish()

    def end(self) -> None:
        """End the paragraph."""
        self._flow.finish()
        if self._open:
            self._open = False
            self._console.print()

    def _turn_to(self, reply_id: str | None) -> None:
        if reply_id != self._reply_id:
            self.end()
            self._reply_id = reply_id
            self._printed = self._said = ""

    def _print(self, text: str, style: str) -> None:
        if style != self._style:
            self.end()
            self._style = style
        if not self._open:
            text = text.lstrip()
            if not text:
                return
            self._flow = self._new_flow()
            self._open = True
        self._flow.feed(printable(text))

    def _new_flow(self) -> Flow:
        return Flow(self._write, self._console.width if self._console.is_terminal else None)

    def _write(self, text: str) -> None:
        self._console.print(Text(text, self._style), end="", soft_wrap=True)
