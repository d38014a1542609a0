"""A conversation's stream as server-sent events, for browsers' `EventSource`, curl, and what knows HTTP only."""

from __future__ import annotations

from typing import Final, Protocol

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from agentcore_serve.streams.connection import send_until_end
from agentcore_serve.streams.conversation import ConversationStreams
from agentcore_serve.streams.cursor import check_cursor, read_cursor, read_flag
from agentcore_serve.streams.encode import SSE

_HEADERS: Final = (
    (b"content-type", b"text/event-stream; charset=utf-8"),
    (b"cache-control", b"no-store"),
    # nginx would hold back what is small.
    (b"x-accel-buffering", b"no"),
)


class Streamed(Protocol):
    """A conversation that is served."""

    @property
    def streams(self) -> ConversationStreams:
        """Its streams."""
        ...


async def stream_sse(served: Streamed, request: Request) -> EventStream:
    """Return the response that streams a conversation: `?after=`, `Last-Event-ID`, and deltas with `?deltas=1`.

    Raises:
        Refused: The cursor is of another log or past its head (410); a parameter does not fit (422).
    """
    seq = check_cursor(read_cursor(request), served.streams.watched.state)
    return EventStream(served.streams, seq, deltas=read_flag(request, "deltas", default=False))


class EventStream:
    """A response: an ASGI app that ends when the conversation closes or the client leaves."""

    def __init__(self, streams: ConversationStreams, seq: int, *, deltas: bool) -> None:
        self._streams = streams
        self._seq = seq
        self._deltas = deltas

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:  # noqa: ARG002 an ASGI app
        async def send_body(data: bytes) -> None:
            await send({"type": "http.response.body", "body": data, "more_body": True})

        with self._streams.watch(self._seq, SSE, deltas=self._deltas) as watcher:
            await send({"type": "http.response.start", "status": 200, "headers": list(_HEADERS)})
            await send_until_end(watcher, receive, send_body)
        if watcher.said_bye:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
