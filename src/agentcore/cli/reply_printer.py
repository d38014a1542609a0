"""The model's text in the live view: printed line by line while it streams, and never printed twice."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from agentcore.cli.console import DIM, print_text
from agentcore.cli.text import printable


class ReplyPrinter:
    """Prints a reply paragraph by paragraph, with an empty line after each."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._style = ""
        self._line = ""
        """The beginning of the line that comes next."""
        self._open = False
        """True if a paragraph is being printed."""
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
        if self._line.strip():
            self._print_line(self._line)
        self._line = ""

    def end(self) -> None:
        """End the paragraph."""
        self.pause()
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
            self._open = True
        *lines, self._line = (self._line + printable(text)).split("\n")
        for line in lines:
            self._print_line(line)
        if self._console.is_terminal:
            # Only the last line can change when the text continues.
            *lines, last = Text(self._line).wrap(self._console, self._console.width) or [Text()]
            for line in lines:
                self._print_line(line.plain.rstrip())
            self._line = last.plain

    def _print_line(self, line: str) -> None:
        print_text(self._console, Text(line, self._style))
