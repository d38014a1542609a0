"""`Channel`: one thing that is done for the other side, with its bytes in both directions."""

from __future__ import annotations

from collections import deque

from agentcore_sandbox.helper.errors import Refused
from agentcore_sandbox.helper.loop import Flag, Loop, Task
from agentcore_sandbox.helper.stream import (
    ANSWER,
    CREDIT,
    DATA,
    DATA_ERR,
    EOF,
    EXIT,
    MAX_PAYLOAD,
    RESULT,
    STREAM_ERR,
    STREAM_IN,
    WINDOW,
    ProtocolError,
    Writer,
    encode_credit,
    encode_json,
    is_object,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from agentcore_sandbox.helper.loop import Steps

_CREDIT_AT = WINDOW // 4


class Channel:
    """One channel. One task reads what comes, and one writes each of its streams."""

    def __init__(self, loop: Loop, writer: Writer, number: int) -> None:
        self.number = number
        self.loop = loop
        self.task: Task | None = None
        self.call: Callable[[dict[str, Any]], Steps[dict[str, Any]]] | None = None
        """Answers calls, where there is something to call."""
        self.calls: set[Task] = set()
        self.is_cancelled = False
        self.eof_byte: bytes | None = None
        """The byte that stands for the end of what comes, on a terminal, where more may come after it."""
        self._writer = writer
        self._received: deque[bytes] = deque()
        self._news = Flag()
        self._ended = False
        # What came and was not allowed again, and how much of that was used up.
        self._unconfirmed = 0
        self._used = 0
        self._windows = {DATA: WINDOW, DATA_ERR: WINDOW}
        self._credit = Flag()

    # What the other side sends.

    def take_data(self, data: bytes) -> None:
        self._unconfirmed += len(data)
        if self._unconfirmed > WINDOW:
            raise ProtocolError("more bytes than the window has room for")
        if data and not self._ended:
            self._received.append(data)
            self._news.fire()

    def take_eof(self, payload: bytes) -> None:
        if payload != bytes([STREAM_IN]):
            raise ProtocolError("the end of a stream that is not there")
        if self.eof_byte is not None:
            self._received.append(self.eof_byte)
        else:
            self._ended = True
        self._news.fire()

    def take_credit(self, stream: int, count: int) -> None:
        kind = DATA_ERR if stream == STREAM_ERR else DATA
        self._windows[kind] += count
        if self._windows[kind] > WINDOW:
            raise ProtocolError("credit for more than was sent")
        self._credit.fire()

    @property
    def has_unread(self) -> bool:
        return bool(self._received)

    def receive(self) -> Steps[bytes | None]:
        """Return the next bytes, or None at their end."""
        while not self._received:
            if self._ended:
                return None
            yield self._news
        data = self._received.popleft()
        self.use(len(data))
        return data

    def use(self, count: int) -> None:
        self._used += count
        if self._used >= _CREDIT_AT:
            # A byte that stands for the end on a terminal never came.
            self._used = min(self._used, self._unconfirmed)
            self._unconfirmed -= self._used
            self._writer.put_urgent(CREDIT, self.number, encode_credit(self._used))
            self._used = 0

    # What is sent.

    def room(self, kind: int = DATA) -> Steps[int]:
        """Wait until something may be sent, and return how much."""
        while self._windows[kind] <= 0:
            yield self._credit
        return min(self._windows[kind], MAX_PAYLOAD)

    def send(self, data: bytes, kind: int = DATA) -> Steps[None]:
        """Send bytes, as fast as the other side takes them."""
        view = memoryview(data)
        while view:
            size = yield from self.room(kind)
            yield from self._writer.turn()
            piece = bytes(view[:size])
            self._windows[kind] -= len(piece)
            self._writer.put(kind, self.number, piece)
            view = view[size:]

    def end_stream(self, stream: int) -> None:
        self._writer.put(EOF, self.number, bytes([stream]))

    def exited(self, code: int) -> None:
        self._writer.put_urgent(EXIT, self.number, encode_json({"code": code}))

    def answer(self, number: int, **values: Any) -> None:
        values["id"] = number
        self._writer.put_urgent(ANSWER, self.number, encode_json(values))

    def finish(self, result: dict[str, Any]) -> None:
        self._writer.put(RESULT, self.number, encode_json(result))


def text_in(asked: dict[str, Any], name: str) -> str:
    value = asked.get(name)
    if not isinstance(value, str):
        raise Refused(f"{name!r} is not a text.")
    return value


def number_in(asked: dict[str, Any], name: str, least: int, most: int) -> int:
    value = asked.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise Refused(f"{name!r} is not a number from {least} to {most}.")
    return value


def texts_in(asked: dict[str, Any], name: str) -> dict[str, str]:
    values: Any = asked.get(name)
    if values is None:
        return {}
    if not is_object(values):
        raise Refused(f"{name!r} is not an object.")
    return {key: text_in(values, key) for key in values}
