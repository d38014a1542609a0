"""Server-sent events, read from bytes as they come (WHATWG HTML, section 9.2)."""

from __future__ import annotations

from collections.abc import Iterator

from agentcore.errors import ModelUnavailable

LONGEST_EVENT = 64 * 1024 * 1024
"""Bytes of one event. No provider sends such a one; a server that never ends a line would fill the memory."""

_MARK = b"\xef\xbb\xbf"
"""With which a text may begin, to say that it is UTF-8."""


class EventParser:
    """A parser that yields the data of each event, whatever pieces its bytes come in.

    Names, ids and comments are left out: what providers send says in its data what it is.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._searched = 0
        """How much of the rest is known to hold no line end."""
        self._half = False
        """True if the rest ends with what may be half of a line end."""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[bytes]:
        """Take bytes in and give the data of each event that is whole now.

        Raises:
            ModelUnavailable: An event is longer than any that is meant.
        """
        self._rest += chunk
        # A line ends with any of three; one that ends with the last byte may go on with the next.
        if b"\r" in chunk or self._half:
            yield from self._lines_of_any_kind()
        else:
            yield from self._lines()
        if len(self._rest) + self._size > LONGEST_EVENT:
            raise ModelUnavailable(f"The provider sent an event of more than {LONGEST_EVENT:,} bytes.")

    @property
    def pending(self) -> int:
        """Bytes of data that wait for the end of their event."""
        return self._size + (len(self._rest) if self._rest.startswith(b"data:") else 0)

    def _lines(self) -> Iterator[bytes]:
        rest, start = self._rest, 0
        while (end := rest.find(b"\n", max(start, self._searched))) >= 0:
            line = bytes(rest[start:end])
            start = end + 1
            event = self._take(line.removesuffix(b"\r"))
            if event is not None:
                yield event
        del rest[:start]
        self._searched = len(rest)

    def _lines_of_any_kind(self) -> Iterator[bytes]:
        rest = self._rest
        # Half of "\r\n" may be here: what it is shows with the next byte.
        self._half = rest.endswith(b"\r")
        whole = bytes(rest[:-1] if self._half else rest).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        rest[:] = whole + (b"\r" if self._half else b"")
        self._searched = 0
        yield from self._lines()

    def _take(self, line: bytes) -> bytes | None:
        if not line:
            data, self._data, self._size = self._data, [], 0
            return b"\n".join(data) if data else None
        if line.startswith(b"data:"):
            value = line[6:] if line[5:6] == b" " else line[5:]
            self._data.append(value)
            self._size += len(value)
        elif line == b"data":
            self._data.append(b"")
        elif line.startswith(_MARK):
            return self._take(line.removeprefix(_MARK))
        return None

    def finish(self) -> Iterator[bytes]:
        """Yield an event that the end of the stream cut off: some servers leave out its last blank line."""
        last = bytes(self._rest).removesuffix(b"\r")
        # A lone "\r" that was held back is the blank line itself.
        for line in (last, b"") if self._rest else (b"",):
            event = self._take(line)
            if event is not None:
                yield event
        self._rest.clear()
