"""The text that a terminal would show: carriage returns and escape sequences are resolved, and nothing is lost.

Below: text as programs write it to their terminal. Above: the text that a model reads, and the live text for people.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, final

from agentcore_tools._output import HeadAndTail
from agentcore_tools.terminal.screen_buffer import ScreenBuffer

# A sequence (with numbers and a last letter, a string, or of two characters), or a control character that is no part of
# text.
_TOKEN: Final = re.compile(
    r"\x1b(?:\[(?P<numbers>[0-?]*)[ -/]*(?P<letter>[@-~])|\][^\r\n\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\r\n\x07\x1b]*\x1b\\"
    r"|[ -/]*(?P<single>[0-~]))|(?P<control>[\x00-\x08\x0b-\x1f\x7f-\x9f])"
)
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# The beginning of one that may go on in the next piece.
_UNFINISHED: Final = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|\][^\r\n\x07\x1b]*\x1b?|[PX^_][^\r\n\x07\x1b]*\x1b?|[ -/]*)\Z")
# One that is longer than this, or goes on in another line, is taken for text: nothing hides behind one that never ends.
_LONGEST_SEQUENCE: Final = 8192
_SEVERAL_RETURNS: Final = re.compile(r"\r{2,}\n")
_BLANKS_AT_END: Final = re.compile(r"(?<! ) +$", re.MULTILINE)
# The rows behind the end of a text, as editors mark them: one is enough.
_FILLING: Final = re.compile(r"^(?:~\n){2,}", re.MULTILINE)
_FULL_SCREEN: Final = frozenset({"47", "1047", "1049"})

# Up, to a place, and to erase, by which going to the first place is known as clearing the screen.
_LEAD_ELSEWHERE: Final = frozenset("AFHfdJ")

# By the letter of the sequence. Counts and places begin at 1, which is also meant where there is no number.
_ACTS: Final[dict[str, Callable[[ScreenBuffer, int, int], None]]] = {
    "A": lambda page, count, _: page.move_by(-(count or 1), 0),
    "B": lambda page, count, _: page.move_by(count or 1, 0),
    "C": lambda page, count, _: page.move_by(0, count or 1),
    "D": lambda page, count, _: page.move_by(0, -(count or 1)),
    "E": lambda page, count, _: page.move_rows(count or 1),
    "F": lambda page, count, _: page.move_rows(-(count or 1)),
    "G": lambda page, column, _: page.move_to(None, (column or 1) - 1),
    "H": lambda page, row, column: page.move_to((row or 1) - 1, (column or 1) - 1),
    "f": lambda page, row, column: page.move_to((row or 1) - 1, (column or 1) - 1),
    "d": lambda page, row, _: page.move_to((row or 1) - 1, None),
    "J": lambda page, how, _: page.erase(how),
    "K": lambda page, how, _: page.erase_in_row(how),
    "@": lambda page, count, _: page.insert_blanks(count or 1),
    "P": lambda page, count, _: page.delete(count or 1),
    "X": lambda page, count, _: page.blank(count or 1),
    "L": lambda page, count, _: page.insert_rows(count or 1),
    "M": lambda page, count, _: page.delete_rows(count or 1),
    "b": lambda page, count, _: page.repeat(count or 1),
    "s": lambda page, _first, _second: page.save_place(),
    "u": lambda page, _first, _second: page.return_to_place(),
}
_SINGLE_ACTS: Final[dict[str, Callable[[ScreenBuffer], None]]] = {
    "7": ScreenBuffer.save_place,
    "8": ScreenBuffer.return_to_place,
    "D": ScreenBuffer.next_row,
    "E": ScreenBuffer.next_row,
    "M": lambda page: page.move_by(-1, 0),
    "c": ScreenBuffer.clear,
}
_CONTROLS: Final[dict[str, Callable[[ScreenBuffer], None]]] = {
    "\r": lambda page: page.move_to(None, 0),
    "\b": lambda page: page.move_by(0, -1),
    "\v": ScreenBuffer.next_row,
    "\f": ScreenBuffer.next_row,
}


@final
class Screen:
    """Takes what programs write to a terminal of that size, and gives the text that comes of it."""

    def __init__(self, width: int, height: int) -> None:
        self._size = (width, height)
        self._kept = HeadAndTail()
        self._held = ""
        self.whole: Callable[[str], None] | None = None
        """Takes all the text as it becomes final, until `finish`."""
        self._main = ScreenBuffer(*self._size, self._kept.add, self._add_to_whole)
        self._page = self._main
        self._unfinished = ""

    def feed(self, text: str) -> str:
        """Take the next piece; give it for people who watch it come.

        That is without its sequences, but for those that lead elsewhere than on: what comes behind them is written over
        something, and who shows it line by line has to know.
        """
        if self._unfinished:
            text, self._unfinished = self._unfinished + text, ""
        if "\r" in text:
            text = text.replace("\r\n", "\n")
            if "\r" in text:
                text = _SEVERAL_RETURNS.sub("\n", text)
        if (unfinished := _UNFINISHED.search(text, max(0, len(text) - _LONGEST_SEQUENCE))) is not None:
            self._unfinished = unfinished[0]
            text = text[: unfinished.start()]
        watched: list[str] = []
        at = 0
        for token in _TOKEN.finditer(text) if _CONTROL.search(text) is not None else ():
            if token.start() > at:
                watched.append(text[at : token.start()])
                self._page.put(watched[-1])
            at = token.end()
            if token[0] == "\r" or (token["letter"] == "G" and token["numbers"] in {"", "0", "1"}):
                watched.append("\r")
            elif token["letter"] in _LEAD_ELSEWHERE or _shows_full_screen(token):
                watched.append(token[0])
            self._obey(token)
        if at < len(text):
            watched.append(text[at:])
            self._page.put(watched[-1])
        return "".join(watched)

    def take(self, unfinished: Callable[[str], int] = lambda _: 0) -> str:
        """Return the text since the last call: the rows that became final, then the rows that changed.

        At the end, as many characters as `unfinished` returns of a text are held back until the next call.
        """
        final, rows = self._held + self._kept.take(), self._main.take()
        count = unfinished(final + rows)
        text = (final + rows)[: len(final) + len(rows) - count]
        self._main.hold_back(min(count, len(rows)))
        self._held = final[len(text) :]
        if self._page is self._main or not (page := self._page.take()):
            return text
        if count := unfinished(page):
            self._page.hold_back(count)
            page = page[:-count]
        # Programs fill the rows of a full screen with blanks, and the screen with rows that say nothing.
        page = _FILLING.sub("~\n", _BLANKS_AT_END.sub("", page))
        return f"{text}\n{page}" if text and not text.endswith("\n") else text + page

    def finish(self) -> str:
        """Return the text since the last call, all of it final. The next text begins on a new row."""
        self._page = self._main
        self._page.put(self._unfinished.strip("\x1b"))
        self._unfinished = ""
        self._main.end()
        text = self.take()
        self._main = self._page = ScreenBuffer(*self._size, self._kept.add, self._add_to_whole)
        return text

    def end(self) -> None:
        """Pass the remaining rows to `whole`, because no more text will come."""
        self._main.end()

    def _add_to_whole(self, text: str) -> None:
        if self.whole is not None:
            self.whole(text)

    def _obey(self, token: re.Match[str]) -> None:
        act: Callable[[ScreenBuffer], None] | None = None
        if (letter := token["letter"]) is not None:
            self._obey_sequence(letter, token["numbers"])
        elif (single := token["single"]) is not None:
            act = _SINGLE_ACTS.get(single)
        elif (control := token["control"]) is not None:
            act = _CONTROLS.get(control)
        if act is not None:
            act(self._page)

    def _obey_sequence(self, letter: str, numbers: str) -> None:
        if numbers[:1] in {"<", "=", ">", "?"}:
            if numbers[0] == "?" and letter in {"h", "l"} and not _FULL_SCREEN.isdisjoint(numbers[1:].split(";")):
                self._show_full_screen(letter == "h")
        elif (act := _ACTS.get(letter)) is not None:
            act(self._page, *_first_two(numbers))

    def _show_full_screen(self, shown: bool) -> None:
        if not shown:
            self._page = self._main
        elif self._page is self._main:
            # What scrolls off it is forgotten, as a terminal does.
            self._page = ScreenBuffer(*self._size, lambda _: None)


def _shows_full_screen(token: re.Match[str]) -> bool:
    return token["letter"] == "h" and token["numbers"].startswith("?") and token["numbers"][1:] in _FULL_SCREEN


def _first_two(numbers: str) -> tuple[int, int]:
    """Read the first two numbers, 0 where there is none."""
    first, second, *_ = (int(part) if part.isdecimal() and len(part) < 6 else 0 for part in f"{numbers};".split(";"))
    return first, second
