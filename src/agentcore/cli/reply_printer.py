"""The model's text in the live view: printed while it streams, and never printed twice.

On a terminal with colours its Markdown is drawn, block by block as they are complete. Elsewhere it is printed as it is, line by line.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from importlib import import_module
from typing import Any, Final

from rich.cells import cell_len
from rich.console import Console
from rich.text import Text

from agentcore.cli.console import DIM, print_line, print_text
from agentcore.cli.text import printable

_BLANK: Final = re.compile(r"\n[ \t]*\n")
_BESIDES: Final = 20
"""The columns that "writing:" and the seconds take."""


@cache
def _markdown() -> Any:
    # Parsing and colouring is imported with the first words that are drawn.
    return import_module("agentcore.cli.markdown")


class ReplyPrinter:
    """Prints a reply paragraph by paragraph, with an empty line after each.

    Args:
        console: The console to print to.
        before: Called before anything is printed.
    """

    def __init__(self, console: Console, before: Callable[[], object] = lambda: None) -> None:
        self._console = console
        self._before = before
        self.draws = console.is_terminal and not console.no_color and console.color_system is not None
        """Whether Markdown is drawn."""
        self._block = ""
        """The block of Markdown that is still being written."""
        self._try_at = 0
        """The length of the block from which on it is worth looking for its end."""
        self._has_drawn = False
        """True if a block was drawn since the last end."""
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

    def newest(self) -> str:
        """Return the end of the words that are not drawn yet, to show that there are some."""
        words = " ".join(self._block.split())
        room = max(self._console.width - _BESIDES, 1)
        words = words[-room:]
        while cell_len(words) > room:
            words = words[1:]
        return f"writing: {words}" if words else "writing"

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
            self._before()
            self._console.print(Text("(this reply was cut off)", DIM))
        self._printed = self._recorded = ""

    def pause(self) -> None:
        """End the line, because something else is shown for a while."""
        if self._line.strip():
            self._print_line(self._line)
        self._line = ""
        self._draw(self._block)
        self._block = ""

    def end(self) -> None:
        """End the paragraph."""
        self.pause()
        if self._open:
            self._open = self._has_drawn = False
            self._before()
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
        if self.draws and not style:
            self._block += printable(text)
            if len(self._block) >= self._try_at and _BLANK.search(self._block):
                done, self._block = _markdown().split_blocks(self._block)
                self._try_at = len(self._block) * 9 // 8  # a long block is not parsed again with each word
                self._draw(done)
            return
        *lines, self._line = (self._line + printable(text)).split("\n")
        for line in lines:
            self._print_line(line)
        if self._console.is_terminal:
            # Only the last line can change when the text continues.
            *lines, last = Text(self._line).wrap(self._console, self._console.width) or [Text()]
            for line in lines:
                self._print_line(line.plain.rstrip())
            self._line = last.plain

    def _draw(self, markdown: str) -> None:
        if not markdown.strip():
            return
        self._before()
        if self._has_drawn:
            self._console.print()
        self._has_drawn = True
        for line in _markdown().render_markdown(self._console, markdown):
            print_line(self._console, line)

    def _print_line(self, line: str) -> None:
        self._before()
        print_text(self._console, Text(line, self._style))
