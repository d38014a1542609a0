"""The agent's words in the live view: printed as they come, and no word twice when the event says them all."""

from __future__ import annotations

from rich.console import Console
from rich.text import Text

from agentcore.cli.console import DIM
from agentcore.cli.flow import Flow
from agentcore.cli.printable import printable

__all__ = ["Words"]


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
