"""A file's text, and how it was written: so that what is not changed stays the same, byte for byte."""

from __future__ import annotations

import codecs
from bisect import bisect_left
from collections.abc import Sequence
from typing import Final, NamedTuple, Self, final

from agentcore.errors import ToolError
from agentcore_tools.files.encodings import likely_encodings

# The longer first: the one for UTF-32 begins like the one for UTF-16.
_MARKS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_TEXT_CONTROLS: Final = frozenset(b"\t\n\v\f\r\b\x1b")


class Change(NamedTuple):
    """A stretch of a text's normal form, and what comes in its place."""

    start: int
    end: int
    new: str


class NotText(Exception):
    """These bytes are not text."""


@final
class Text:
    """Text with line feeds only, for looking and comparing, and the text as it is in the file."""

    def __init__(self, raw: str, encoding: str = "utf-8", mark: bytes = b"", *, guessed: bool = False) -> None:
        self._raw = raw
        self._mark = mark
        self.encoding = encoding
        self.guessed = guessed
        """True if nothing in the file says that this is its encoding."""
        pieces = raw.split("\r\n")
        self.normal = "\n".join(pieces)
        """The text, each of its lines ended by a line feed."""
        self._pairs: list[int] = []
        at = -1
        for piece in pieces[:-1]:
            at += len(piece) + 1
            self._pairs.append(at)

    @classmethod
    def read(cls, data: bytes) -> Self:
        """Make text of a file's bytes; where they are not text, that is a `NotText`."""
        for mark, encoding in _MARKS:
            if data.startswith(mark):
                text = _decoded(data[len(mark) :], encoding)
                if text is None:
                    break
                return cls(text, encoding, mark)
        if b"\0" in data:
            raise NotText
        text = _decoded(data, "utf-8")
        if text is not None:
            return cls(text)
        beginning = data[:8192]
        controls = sum(1 for byte in beginning if byte < 0x20 and byte not in _TEXT_CONTROLS)
        if controls * 20 > len(beginning):
            raise NotText
        for encoding in likely_encodings(data):
            if (text := _decoded(data, encoding)) is not None:
                return cls(text, encoding, guessed=True)
        # All bytes mean something in Latin-1, so that nothing is lost where the encoding is not known.
        return cls(data.decode("latin-1"), "latin-1", guessed=True)

    @property
    def note(self) -> str:
        """A line for the model about an encoding that was guessed; empty where it is known."""
        return f"[Not UTF-8; read as {self.encoding}, which is a guess.]\n" if self.guessed else ""

    @property
    def lines(self) -> list[str]:
        """The lines, without their ends."""
        lines = self.normal.split("\n")
        if not lines[-1]:
            lines.pop()
        return lines

    def encode(self) -> bytes:
        """Return the file's bytes."""
        return self._mark + self._raw.encode(self.encoding)

    def replaced(self, changes: Sequence[Change]) -> Text:
        """Make changes (in order, and none over another) of the normal text; new lines end as most lines of the file do."""
        pairs = len(self._pairs) * 2 > self.normal.count("\n")
        pieces: list[str] = []
        done = 0
        for start, end, new in changes:
            pieces += [self._raw[done : self._in_raw(start)], new.replace("\n", "\r\n") if pairs else new]
            done = self._in_raw(end)
            self._check_can_be_written(new)
        return Text("".join([*pieces, self._raw[done:]]), self.encoding, self._mark, guessed=self.guessed)

    def _check_can_be_written(self, new: str) -> None:
        _refuse_nul(new)
        try:
            new.encode(self.encoding)
        except UnicodeEncodeError as error:
            raise ToolError(
                f"The file is written in {self.encoding}, which has no {error.object[error.start]!r}. Use other "
                "characters, or bring the file into UTF-8 first (with iconv, say)."
            ) from error

    def _in_raw(self, place: int) -> int:
        """Return the place in the file's text for a place in the normal text: each pair before it counts one more."""
        return place + bisect_left(self._pairs, place)


def encoded(text: str) -> bytes:
    """Return the bytes of a new file."""
    _refuse_nul(text)
    return text.encode(errors="replace")


def with_line_feeds(text: str) -> str:
    """End each line by a line feed, as in a text's normal form."""
    return text.replace("\r\n", "\n")


def _refuse_nul(new: str) -> None:
    if "\0" in new:
        raise ToolError(
            "There is a NUL character in the new text, and a file that has one is not text any more. Write such a file with a "
            "command, such as printf."
        )


def _decoded(data: bytes, encoding: str) -> str | None:
    try:
        text = data.decode(encoding)
        return text if text.encode(encoding) == data else None
    except UnicodeError:
        return None
