"""The streams of a conversation: one address, for server-sent events and for WebSockets."""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import Field
from starlette.types import ASGIApp, Receive, Scope, Send

from agentcore.wire.requests import RequestBody
from agentcore.wire.routes import CONVERSATIONS
from agentcore_serve.asks import ClientAsks, ClientConnection
from agentcore_serve.auth.identity import require_scope
from agentcore_serve.followed import Followed
from agentcore_serve.refused import Refused
from agentcore_serve.routes.table import WEBSOCKET, Call, Route
from agentcore_serve.served import Served
from agentcore_serve.streams import ConversationStreams, stream_sse, stream_websocket

_TAG: Final = "streams"
_PATH: Final = CONVERSATIONS + "/{id}/stream"


class StreamQuery(RequestBody):
    """Where a stream begins, and what is in it."""

    after: Annotated[str, Field(max_length=200)] | None = None
    """The seq behind which it begins, or birth:seq; `Last-Event-ID` goes before it."""
    birth: Annotated[str, Field(max_length=200)] | None = None
    """The birth of the log that `after` is about: 410 where it is another one by now."""
    deltas: Literal["0", "1"] | None = None
    """With deltas, or without; server-sent events are without, WebSockets with them."""


async def _find(call: Call) -> Served | Followed:
    """Return the conversation, with its streams: one fan-out for all who watch it."""
    found = await call.hub.watch(call.identity, call.params["id"])
    if found.streams is None:
        found.streams = call.state.streams.of(found)
    return found


async def _stream_sse(call: Call) -> ASGIApp:
    found = await _find(call)
    stream = await stream_sse(found, call.request)

    async def stream_while_open(scope: Scope, receive: Receive, send: Send) -> None:
        with found.watching():
            await stream(scope, receive, send)

    return stream_while_open


async def _stream_websocket(call: Call) -> None:
    found = await _find(call)
    with found.watching():
        asks = found.parts.asks if isinstance(found, Served) else None
        if call.websocket.query_params.get("client"):
            require_scope(call.identity, "run")
        await stream_websocket(_Watched(found.streams, asks), call.websocket)


class _Watched(NamedTuple):
    """A conversation, and the parts of it that clients run."""

    streams: ConversationStreams
    asks: ClientAsks | None

    @contextmanager
    def frames_for(self, client: str) -> Generator[ClientConnection]:
        """Attach a client while the context lasts."""
        if self.asks is None:
            raise Refused(409, "client_parts_refused", "This conversation can only be watched here.")
        connection = self.asks.attach(client)
        try:
            yield connection
        finally:
            connection.close()


STREAMS: Final = (
    Route(
        "GET",
        _PATH,
        _stream_sse,
        "read",
        query=StreamQuery,
        media="text/event-stream",
        summary="What happens in a conversation, as it happens.",
        tag=_TAG,
    ),
    Route(WEBSOCKET, _PATH, _stream_websocket, "read", summary="The same as a WebSocket.", tag=_TAG),
)
"""The routes of streams."""
