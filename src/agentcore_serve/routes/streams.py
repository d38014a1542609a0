"""The streams of a conversation: one address, for server-sent events and for WebSockets."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import Field
from starlette.types import ASGIApp

from agentcore.wire.requests import RequestBody
from agentcore.wire.routes import CONVERSATIONS
from agentcore_serve.refused import Refused
from agentcore_serve.routes.table import WEBSOCKET, Call, Route
from agentcore_serve.streams import refuse_websocket, stream_sse, stream_websocket

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


async def _stream_sse(call: Call) -> ASGIApp:
    return await stream_sse(await call.hub.watch(call.identity, call.params["id"]), call.request)


async def _stream_websocket(call: Call) -> None:
    try:
        served = await call.hub.watch(call.identity, call.params["id"])
    except Refused as refused:
        # A browser is told nothing of a socket that was not accepted.
        await call.websocket.accept()
        await refuse_websocket(call.websocket, refused)
        return
    await stream_websocket(served, call.websocket)


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
"""What is watched."""
