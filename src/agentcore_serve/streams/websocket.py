"""A conversation's stream over a WebSocket: lines of frames in text messages, deltas by default, and what a client is asked.

Nothing is read from it: commands are requests, so that keys, limits and repeats have one place.
"""

from __future__ import annotations

from contextlib import nullcontext
from http import HTTPStatus
from typing import Final, Protocol

from starlette.websockets import WebSocket

from agentcore.wire import Bye, Problem, encode_frame
from agentcore_serve.refused import Refused
from agentcore_serve.streams.connection import send_until_end
from agentcore_serve.streams.cursor import check_cursor, read_cursor, read_flag
from agentcore_serve.streams.encode import SOCKET
from agentcore_serve.streams.sse import Streamed
from agentcore_serve.streams.watched import AsksClients

CLOSE_CODES: Final = {"closed": 1000, "draining": 1001, "failed": 1011, "deleted": 4404, "replaced": 4409}
"""By the code of `bye`. A refusal closes with 4000 and its HTTP status."""


class StreamedSocket(Streamed, AsksClients, Protocol):
    """A conversation that is served, and may ask its clients."""


async def stream_websocket(served: StreamedSocket, websocket: WebSocket) -> None:
    """Stream a conversation: `?after=` with `&birth=`, `?deltas=0`, and `?client=<id>` for one that runs parts of it.

    It accepts the socket. What is refused is a `bye` with the problem, because a browser is not told why a socket was
    not accepted.
    """
    await websocket.accept()
    streams = served.streams
    try:
        seq = check_cursor(read_cursor(websocket), streams.watched.state)
        deltas = read_flag(websocket, "deltas", default=True)
        watching = streams.watch(seq, SOCKET, deltas=deltas)
        client = websocket.query_params.get("client")
        with watching as watcher, served.frames_for(client) if client else nullcontext() as frames:
            await send_until_end(watcher, websocket.receive, lambda data: _send(websocket, data), frames)
        if watcher.said_bye and watcher.bye is not None:
            await websocket.close(CLOSE_CODES.get(watcher.bye.code, 1000))
    except Refused as refused:
        await refuse_websocket(websocket, refused)


async def refuse_websocket(websocket: WebSocket, refused: Refused) -> None:
    """Send a refusal as the `bye` of a socket that was accepted, and close it."""
    problem = Problem(
        title=HTTPStatus(refused.status).phrase, status=refused.status, detail=str(refused), code=refused.code
    )
    await _send(websocket, encode_frame(Bye(code=refused.code, problem=problem)))
    await websocket.close(4000 + refused.status)


async def _send(websocket: WebSocket, data: bytes) -> None:
    await websocket.send({"type": "websocket.send", "text": data.decode()})
