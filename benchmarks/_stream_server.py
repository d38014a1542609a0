"""The server of `serve.py`'s streams: ours, beside a bare Starlette app, in one process on one hypercorn.

A delivery is over when the last watcher's `send` has returned: both sides count it in the same place.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, Callable, Sequence
from typing import Any, cast

import anyio
import psutil
from _serving import serve_here
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, StreamingResponse
from starlette.routing import Route
from starlette.types import Message as AsgiMessage
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from agentcore.conversation import DeltaCursor
from agentcore.conversation.guards import LoopAffinity
from agentcore.conversation.watch import HeadSignal
from agentcore.events import MessageEvent
from agentcore.messages import Message
from agentcore.record import ConversationState
from agentcore.wire import Cursor, encode_event, encode_sse
from agentcore_serve.streams import ClientFrames, StreamHub, stream_sse, stream_websocket

TEXT = "The total is rounded before the tax is added, so that a cent is lost on some orders. " * 4
_SENT = ("websocket.send", "http.response.body")


class Log:
    """A log that grows by hand: what a conversation costs is measured elsewhere."""

    def __init__(self) -> None:
        self.state = ConversationState("log")
        self.head_signal = HeadSignal(LoopAffinity(None))

    def append(self, event: MessageEvent) -> None:
        """Append an event."""
        self.state.apply(event)
        self.head_signal.notify()

    def deltas(self) -> DeltaCursor | None:
        """Follow no deltas."""
        return None

    def event(self, number: int, text: str = TEXT) -> MessageEvent:
        """Make the event after so many more."""
        return MessageEvent(seq=self.state.head + 1 + number, source="user", message=Message.user(text))


class Side(ABC):
    """One of the two, as an ASGI app."""

    def __init__(self) -> None:
        self.log = Log()
        self.watchers = 0
        self._left = 0
        self._delivered = anyio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream, and count what was sent."""
        begun = False

        async def counted(message: AsgiMessage) -> None:
            nonlocal begun
            await send(message)
            if message["type"] not in _SENT:
                return
            if not begun:  # the hello
                begun = True
                self.watchers += 1
                return
            self._left -= 1
            if not self._left:
                self._delivered.set()

        try:
            await self.stream(scope, receive, counted)
        finally:
            self.watchers -= begun

    @abstractmethod
    async def stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream to one watcher."""

    @abstractmethod
    def prepare(self, events: int) -> Sequence[Any]:
        """Make what is sent."""

    @abstractmethod
    def send(self, item: Any) -> None:
        """Begin to send it to all."""

    async def deliver(self, item: Any) -> None:
        """Send it to all, and wait until all sends have returned."""
        self._left, self._delivered = self.watchers, anyio.Event()
        self.send(item)
        await self._delivered.wait()


class Ours(Side):
    """Our streams."""

    def __init__(self, hub: StreamHub) -> None:
        super().__init__()
        self.streams = hub.of(self.log)

    def frames_for(self, client: str) -> ClientFrames:
        """Nobody is asked."""
        raise NotImplementedError(client)

    async def stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream to one watcher, from the head on."""
        scope["query_string"] = f"after={self.log.state.head}".encode()
        if scope["type"] == "websocket":
            await stream_websocket(cast("Any", self), WebSocket(scope, receive, send))
        else:
            await (await stream_sse(self, Request(scope, receive, send)))(scope, receive, send)

    def prepare(self, events: int) -> list[MessageEvent]:
        """Make events."""
        return [self.log.event(number) for number in range(events)]

    def send(self, item: MessageEvent) -> None:
        """Append an event."""
        self.log.append(item)


class Bare(Side):
    """What one writes in twenty lines: an event wakes all, and each sends the same bytes."""

    def __init__(self) -> None:
        super().__init__()
        self.news = anyio.Event()
        self.frame = b""

    async def stream(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Stream to one watcher."""
        if scope["type"] == "websocket":
            await self._ws(WebSocket(scope, receive, send))
        else:
            await StreamingResponse(self._sse(), media_type="text/event-stream")(scope, receive, send)

    async def _sse(self) -> AsyncGenerator[bytes]:
        yield b": hello\n\n"
        while True:
            await self.news.wait()
            yield encode_sse("event", self.frame, Cursor(1, "ev_01"))

    async def _ws(self, websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.send_text("hello")

        async def listen() -> None:
            while (await websocket.receive())["type"] != "websocket.disconnect":
                pass
            tasks.cancel_scope.cancel()

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listen)
            while True:
                await self.news.wait()
                await websocket.send_text(self.frame.decode())

    def prepare(self, events: int) -> list[tuple[MessageEvent, bytes]]:
        """Encode events."""
        made = [self.log.event(number) for number in range(events)]
        return [(event, encode_event(event, event.seq)) for event in made]

    def send(self, item: tuple[MessageEvent, bytes]) -> None:
        """Append an event, which is not a part of sending it, and wake all."""
        event, self.frame = item
        self.log.append(event)
        news, self.news = self.news, anyio.Event()
        news.set()


async def _until(condition: Callable[[], bool]) -> None:
    # Watchers are counted, not announced.
    while not condition():  # noqa: ASYNC110
        await anyio.sleep(0.01)


async def main() -> None:
    """Serve both sides until the process is ended."""
    async with StreamHub() as hub:
        sides: dict[str, Side] = {"ours": Ours(hub), "bare": Bare()}

        async def deliver(request: Request) -> JSONResponse:
            """Deliver events one after the other; answer with the CPU that it took."""
            asked = await request.json()
            side = sides[asked["side"]]
            await _until(lambda: side.watchers == asked["watchers"])
            await anyio.sleep(0.1)
            items = side.prepare(asked["events"])
            began = time.process_time()
            for item in items:
                await side.deliver(item)
            return JSONResponse({"cpu": time.process_time() - began})

        async def flood(request: Request) -> JSONResponse:
            """Append many events at the pace of the fastest watcher; answer with the memory that came."""
            asked = await request.json()
            ours = cast("Ours", sides["ours"])
            await _until(lambda: ours.watchers == asked["watchers"])
            process = psutil.Process()
            began = process.memory_info().rss
            for _ in range(asked["events"]):
                ours.log.append(ours.log.event(0, TEXT * 120))
                head = ours.log.state.head
                while not any(each.position.seq == head for each in ours.streams.watchers):
                    await anyio.lowlevel.checkpoint()  # soon: a watcher that stalls for 30 s is cut
            await anyio.sleep(0.1)
            behind = sum(each.position.seq < ours.log.state.head for each in ours.streams.watchers)
            return JSONResponse({"bytes": process.memory_info().rss - began, "behind": behind})

        bare = Starlette(
            routes=[Route("/deliver", deliver, methods=["POST"]), Route("/flood", flood, methods=["POST"])]
        )

        async def app(scope: Scope, receive: Receive, send: Send) -> None:
            here: Any = sides.get(scope.get("path", "").strip("/"), bare)
            await here(scope, receive, send)

        await serve_here(app)


if __name__ == "__main__":
    anyio.run(main)
