"""Frames as bytes. An event is encoded once for all who watch, and the bytes of many events are joined in one write."""

from __future__ import annotations

from collections import OrderedDict
from typing import Protocol

from agentcore.events import Event
from agentcore.wire import Cursor, Frame, encode_event, encode_frame, encode_sse

CACHE_BYTES = 64 * 1024 * 1024
"""Encoded events that are kept, over all conversations."""


class EncodedEvents:
    """The frames of events that were sent lately. One is shared by all conversations of a server."""

    def __init__(self, room: int = CACHE_BYTES) -> None:
        self._room = room
        self._size = 0
        self._frames: OrderedDict[tuple[int, int], bytes] = OrderedDict()

    @property
    def size(self) -> int:
        """The bytes that are kept."""
        return self._size

    def get(self, log: int, event: Event, group: int) -> bytes:
        """Return an event's frame.

        Args:
            log: A number that no other log of this server has.
            event: The event.
            group: The seq of the last event of its group.
        """
        key = (log, event.seq)
        frame = self._frames.get(key)
        if frame is not None:
            self._frames.move_to_end(key)
            return frame
        frame = self._frames[key] = encode_event(event, group)
        self._size += len(frame)
        while self._size > self._room:
            _, oldest = self._frames.popitem(last=False)
            self._size -= len(oldest)
        return frame


class WireFormat(Protocol):
    """Encoded frames as a kind of connection carries them. What is returned for several frames may be joined."""

    def event(self, frame: bytes, birth: str | None, seq: int) -> bytes:
        """Return an event's frame for the connection."""
        ...

    def frame(self, frame: Frame) -> bytes:
        """Return another frame for the connection."""
        ...


class SseFormat:
    """Messages of an event stream. Events have the cursor that a browser sends when it reconnects."""

    def event(self, frame: bytes, birth: str | None, seq: int) -> bytes:
        return encode_sse("event", frame, Cursor(seq, birth))

    def frame(self, frame: Frame) -> bytes:
        return encode_sse(frame.type, encode_frame(frame))


class SocketFormat:
    """Lines of a WebSocket's text messages."""

    def event(self, frame: bytes, birth: str | None, seq: int) -> bytes:  # noqa: ARG002 the line has the seq
        return frame + b"\n"

    def frame(self, frame: Frame) -> bytes:
        return encode_frame(frame) + b"\n"


SSE: WireFormat = SseFormat()
SOCKET: WireFormat = SocketFormat()
