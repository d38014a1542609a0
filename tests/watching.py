"""Streams of a conversation, for tests: an app around them, a log that grows by hand, and clients that read frames."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from typing import Any, cast

import anyio
import httpx
import httpx_ws
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from agentcore.conversation import DeltaCursor, StreamDelta
from agentcore.conversation.deltas import DeltaBroadcast
from agentcore.conversation.guards import LoopAffinity
from agentcore.conversation.watch import HeadSignal
from agentcore.events import MessageEvent
from agentcore.messages import Message
from agentcore.record import ConversationState
from agentcore.wire import Bye, EventFrame, Frame, parse_frames
from agentcore_serve.refused import Refused
from agentcore_serve.streams import ClientFrames, StreamHub, Timing, Watched, stream_sse, stream_websocket

__all__ = [
    "Asked",
    "GrowingLog",
    "Served",
    "Sse",
    "app_of",
    "open_streams",
    "read_socket",
    "read_sse",
    "texts_of",
    "until_bye",
]


class GrowingLog:
    """A log of messages that grows by hand, as the hub follows one that another process writes."""

    def __init__(self, name: str = "log") -> None:
        home = LoopAffinity(None)
        self.state = ConversationState(name)
        self.head_signal = HeadSignal(home)
        self.broadcast = DeltaBroadcast(home)

    def append(self, *texts: str) -> None:
        """Append a group of messages."""
        for text in texts:
            event = MessageEvent(seq=self.state.head + 1, source="user", message=Message.user(text))
            self.state.apply(event, group_ends=text is texts[-1])
        self.head_signal.notify()

    def say(self, text: str, offset: int = 0) -> None:
        """Publish a piece of a reply."""
        self.broadcast.publish(StreamDelta(type="text", reply_id="r", offset=offset, text=text))

    def close(self) -> None:
        """Append nothing more."""
        self.head_signal.close()
        self.broadcast.close()

    def deltas(self) -> DeltaCursor:
        return self.broadcast.subscribe()


class Asked:
    """Frames for a client."""

    def __init__(self) -> None:
        self.news = anyio.Event()
        self.closed = False
        self._frames: list[Frame] = []

    def ask(self, frame: Frame) -> None:
        """Send a frame to the client."""
        self._frames.append(frame)
        self.news.set()

    def end(self) -> None:
        """The client has another connection."""
        self.closed = True
        self.news.set()

    def take(self) -> list[Frame]:
        frames, self._frames = self._frames, []
        self.news = anyio.Event()
        return frames


class Served:
    """A conversation that is served, and its clients."""

    def __init__(self, hub: StreamHub, watched: Watched) -> None:
        self.streams = hub.of(watched)
        self.clients: dict[str, Asked] = {}

    @contextmanager
    def frames_for(self, client: str) -> Generator[ClientFrames]:
        if client in self.clients:
            self.clients[client].end()
        asked = self.clients[client] = Asked()
        try:
            yield asked
        finally:
            if self.clients[client] is asked:
                del self.clients[client]


def app_of(served: Served) -> Starlette:
    """Make an app of the two streams of a conversation: /sse and /ws."""

    async def sse(request: Request) -> Response:
        return cast("Response", await stream_sse(served, request))

    async def ws(websocket: WebSocket) -> None:
        await stream_websocket(served, websocket)

    async def refuse(request: Request, error: Exception) -> Response:
        assert isinstance(error, Refused)
        return JSONResponse({"code": error.code, "detail": error.detail}, error.status)

    return Starlette(routes=[Route("/sse", sse), WebSocketRoute("/ws", ws)], exception_handlers={Refused: refuse})


@asynccontextmanager
async def open_streams(watched: Watched, **timing: float) -> AsyncGenerator[tuple[StreamHub, Served]]:
    """Serve the streams of one conversation, with these bounds in place of the usual ones."""
    async with StreamHub(Timing(**timing)) as hub:
        yield hub, Served(hub, watched)


@dataclass
class Sse:
    """A message of an event stream."""

    event: str = ""
    id: str | None = None
    data: str = ""
    frames: list[Frame] = field(default_factory=list[Frame])


async def read_sse(response: httpx.Response) -> AsyncIterator[Sse]:
    """Read the messages of an event stream, each with its frame."""
    message = Sse()
    async for line in response.aiter_lines():
        if not line:
            message.frames = parse_frames(message.data)
            yield message
            message = Sse()
        else:
            name, _, value = line.partition(": ")
            setattr(message, name, value)


async def read_socket(socket: httpx_ws.AsyncWebSocketSession) -> AsyncIterator[list[Frame]]:
    """Read the messages of a socket until it is closed, each with its frames."""
    while True:  # noqa: ASYNC913 it ends by what it reads
        try:
            yield parse_frames(await socket.receive_text())
        except httpx_ws.WebSocketDisconnect:
            return


async def until_bye(url: str, *, headers: dict[str, str] | None = None, **query: Any) -> list[Frame]:
    """Read a stream to its end: an SSE for http://, a WebSocket for ws://."""
    frames: list[Frame] = []
    params = {name: str(value) for name, value in query.items()}
    # Loading certificates would take longer than all else.
    async with httpx.AsyncClient(timeout=None, headers=headers, verify=False) as client:
        if url.startswith("http"):
            async with client.stream("GET", url, params=params) as response:
                assert response.status_code == 200, json.loads(await response.aread())
                async for message in read_sse(response):
                    frames += message.frames
        else:
            async with httpx_ws.aconnect_ws(url, client, params=params) as socket:
                async for some in read_socket(socket):
                    frames += some
    assert isinstance(frames[-1], Bye)
    return frames


def texts_of(frames: list[Frame]) -> list[str]:
    """Return the texts of the messages among frames, in order."""
    events = [frame.event for frame in frames if isinstance(frame, EventFrame)]
    return [event.text for event in events if isinstance(event, MessageEvent)]
