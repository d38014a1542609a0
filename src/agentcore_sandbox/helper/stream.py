"""Frames: cut from what comes, and written in turns.

What is urgent (answers to pings and calls, credit) goes before the bytes of channels, which take turns: a flood on one of them
delays another by a few frames.
"""

from __future__ import annotations

import json
import os
import time
from collections import deque
from struct import Struct

from agentcore_sandbox.helper.loop import Cancelled, Flag, Loop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from agentcore_sandbox.helper.loop import Steps

HELLO, PING, PONG, OPEN, DATA, DATA_ERR, EOF, CREDIT, CALL, ANSWER, RESULT, CANCEL, EXIT = range(1, 14)
# The streams that EOF and CREDIT name.
STREAM_IN, STREAM_OUT, STREAM_ERR = range(3)
MAX_PAYLOAD = 65536
WINDOW = 1024 * 1024

_HEADER = Struct(">BII")
_CREDIT = Struct(">BI")
_READ_AT_ONCE = 256 * 1024
# Of the bytes of channels. More of what is urgent than this means that nobody reads, so nothing is read here either.
_ROOM = 256 * 1024
_MAX_URGENT = 1024 * 1024
_WRITE_AT_ONCE = 64 * 1024
_JSON_KINDS = {HELLO, OPEN, CALL}
# A command line may be long, and comes in several frames.
_LONGEST_JSON = 64 * 1024 * 1024


class ProtocolError(Exception):
    """The other side sent something that it never sends."""


class StreamEnded(Exception):
    """Nobody is at the other end."""


def encode(kind: int, channel: int, payload: bytes = b"") -> bytes:
    return _HEADER.pack(kind, channel, len(payload)) + payload


def encode_json(value: Any) -> bytes:
    # ASCII, so that names that are not UTF-8 travel as escaped surrogates.
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def encode_credit(count: int) -> bytes:
    return _CREDIT.pack(STREAM_IN, count)


def decode_credit(payload: bytes) -> tuple[int, int]:
    if len(payload) != _CREDIT.size:
        raise ProtocolError("credit of the wrong length")
    stream, count = _CREDIT.unpack(payload)
    return stream, count


def decode_json(text: bytes) -> dict[str, Any]:
    try:
        value = json.loads(text.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        raise ProtocolError("not JSON") from None
    if not is_object(value):
        raise ProtocolError("not a JSON object")
    return value


def is_object(value: object) -> bool:
    """Return True for what was a JSON object; a type checker goes on to know nothing of what is in it."""
    return isinstance(value, dict)


def is_list(value: object) -> bool:
    return isinstance(value, list)


class Reader:
    """Cuts what comes into frames, and says when something came last."""

    def __init__(self, loop: Loop, descriptor: int, writer: Writer) -> None:
        self.heard = time.monotonic()
        self._loop = loop
        self._descriptor = descriptor
        self._writer = writer
        self._data = bytearray()
        # Of a JSON object that goes on in the next frame.
        self._begun: tuple[int, int] | None = None
        self._text = bytearray()

    def run(self, take: Callable[[int, int, Any], None]) -> Steps[None]:
        """Call with the kind, channel and payload (JSON is decoded) of each frame.

        Raises:
            ProtocolError: What came is not frames.
            StreamEnded: Nothing comes any more.
        """
        while True:
            while self._writer.is_clogged:
                yield self._writer.drained
            try:
                data = os.read(self._descriptor, _READ_AT_ONCE)
            except BlockingIOError:
                yield self._loop.readable(self._descriptor)
                continue
            except OSError as error:
                raise StreamEnded from error
            if not data:
                raise StreamEnded
            self.heard = time.monotonic()
            self._data += data
            self._cut(take)
            yield None

    def _cut(self, take: Callable[[int, int, Any], None]) -> None:
        at = 0
        while len(self._data) - at >= _HEADER.size:
            kind, channel, length = _HEADER.unpack_from(self._data, at)
            if length > MAX_PAYLOAD or not HELLO <= kind <= EXIT:
                raise ProtocolError(f"a frame of the kind {kind} with {length} bytes")
            end = at + _HEADER.size + length
            if end > len(self._data):
                break
            payload = bytes(self._data[at + _HEADER.size : end])
            at = end
            self._pass_on(kind, channel, payload, take)
        del self._data[:at]

    def _pass_on(self, kind: int, channel: int, payload: bytes, take: Callable[[int, int, Any], None]) -> None:
        if self._begun is not None and self._begun != (kind, channel):
            raise ProtocolError("a JSON object that does not end")
        if kind not in _JSON_KINDS:
            take(kind, channel, payload)
            return
        self._text += payload
        if len(self._text) > _LONGEST_JSON:
            raise ProtocolError("a JSON object that is too long")
        if len(payload) == MAX_PAYLOAD:
            self._begun = (kind, channel)
            return
        self._begun = None
        text, self._text = bytes(self._text), bytearray()
        take(kind, channel, decode_json(text))


class Writer:
    """Writes frames: first what is urgent, then what channels have put there in turns."""

    def __init__(self, loop: Loop, descriptor: int) -> None:
        self.drained = Flag()
        self.is_idle = True
        self._loop = loop
        self._descriptor = descriptor
        self._urgent: deque[bytes] = deque()
        self._ordered: deque[bytes] = deque()
        self._urgent_bytes = 0
        self._ordered_bytes = 0
        self._news = Flag()
        self._turns: deque[Flag] = deque()
        # Turns that were granted and not taken yet.
        self._granted = 0

    @property
    def is_clogged(self) -> bool:
        return self._urgent_bytes > _MAX_URGENT

    def put_urgent(self, kind: int, channel: int, payload: bytes = b"") -> None:
        """Have a frame written as soon as possible."""
        frame = encode(kind, channel, payload)
        self._urgent.append(frame)
        self._urgent_bytes += len(frame)
        self.is_idle = False
        self._news.fire()

    def put(self, kind: int, channel: int, payload: bytes = b"") -> None:
        """Have a frame written after all that was put here before. One with bytes waits for `turn` first."""
        frame = encode(kind, channel, payload)
        self._ordered.append(frame)
        self._ordered_bytes += len(frame)
        self.is_idle = False
        self._news.fire()

    def turn(self) -> Steps[None]:
        """Wait until it is the caller's turn to put a frame."""
        if not self._turns and self._has_room():
            return
        flag = Flag()
        self._turns.append(flag)
        try:
            yield flag
        except Cancelled:
            if flag in self._turns:
                self._turns.remove(flag)
            else:
                self._granted -= 1
                self._grant()
            raise
        self._granted -= 1

    def run(self) -> Steps[None]:
        """Write all there is, for ever.

        Raises:
            StreamEnded: Nobody reads any more.
        """
        while True:
            view = memoryview(self._take())
            self.is_idle = not view
            while view:
                try:
                    view = view[os.write(self._descriptor, view) :]
                except BlockingIOError:
                    yield self._loop.writable(self._descriptor)
                except OSError as error:
                    raise StreamEnded from error
            self.is_idle = not self._urgent and not self._ordered
            self._grant()
            self.drained.fire()
            yield self._news if self.is_idle else None

    def _take(self) -> bytes:
        pieces: list[bytes] = []
        size = 0
        while self._urgent and size < _WRITE_AT_ONCE:
            pieces.append(self._urgent.popleft())
            size += len(pieces[-1])
            self._urgent_bytes -= len(pieces[-1])
        while self._ordered and size < _WRITE_AT_ONCE:
            pieces.append(self._ordered.popleft())
            size += len(pieces[-1])
            self._ordered_bytes -= len(pieces[-1])
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def _has_room(self) -> bool:
        return self._ordered_bytes + self._granted * MAX_PAYLOAD < _ROOM

    def _grant(self) -> None:
        while self._turns and self._has_room():
            self._granted += 1
            self._turns.popleft().fire()
