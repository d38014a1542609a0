"""What the server costs beside a bare one: streams of events to 1, 100 and 1,000 watchers.

The server runs in a process of its own, with a bare Starlette app beside ours on the same hypercorn. It counts its own CPU,
from the moment that an event is there until it was sent to all; reading is the other process's.
"""

from __future__ import annotations

import socket
import sys
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from importlib import import_module
from typing import Any, cast

import anyio
import httpx
from _report import Report, Settings, median, report
from hypercorn.config import Config, Sockets
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route, WebSocketRoute
from starlette.websockets import WebSocket

from agentcore.conversation import DeltaCursor
from agentcore.conversation.guards import LoopAffinity
from agentcore.conversation.watch import HeadSignal
from agentcore.events import MessageEvent
from agentcore.messages import Message
from agentcore.record import ConversationState
from agentcore.wire import Cursor, encode_event, encode_sse
from agentcore_serve.streams import ClientFrames, StreamHub, stream_sse, stream_websocket
from agentcore_serve.streams.watcher import Watcher

TEXT = "The total is rounded before the tax is added, so that a cent is lost on some orders. " * 4
EVENTS = {1: 1000, 100: 100, 1000: 15}
ROUNDS = 3


def measure(settings: Settings) -> Report:
    """Measure both kinds of streams for each number of watchers."""
    found = Report("What does it cost to deliver an event to 1, 100 and 1,000 watchers, against bare Starlette?")
    anyio.run(measure_streams, settings, found)
    return found


async def measure_streams(settings: Settings, found: Report) -> None:
    """Start the server, and have it deliver events by turns: ours, the bare one."""
    async with start_server() as port:
        for kind in ("ws", "sse"):
            for watchers in (1, 100, 1000) if not settings.tiny else (2,):
                events = settings.pick(EVENTS.get(watchers, 1), 3)
                spent: dict[str, list[float]] = {"ours": [], "bare": []}
                for _ in range(settings.pick(ROUNDS, 1)):
                    for side, costs in spent.items():
                        costs.append(await deliver(port, side, kind, watchers, events))
                ours, bare = median(spent["ours"]), median(spent["bare"])
                name = f"{kind}_to_{watchers}"
                found.tell(f"{name}_cpu_ms_per_event", ours * 1e3)
                found.tell(f"{name}_bare_cpu_ms_per_event", bare * 1e3)
                found.hold(f"{name}_ratio", ours / bare, 1.5)


async def deliver(port: int, side: str, kind: str, watchers: int, events: int) -> float:
    """Have so many events delivered to so many watchers; return the server's CPU seconds for each delivery."""
    cpu = 0.0
    async with AsyncExitStack() as stack, anyio.create_task_group() as tasks:
        for _ in range(watchers):
            stream = await stack.enter_async_context(await anyio.connect_tcp("127.0.0.1", port))
            await stream.send(request_of(side, kind))
            await stream.receive()
            tasks.start_soon(read_all, stream)
        async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=120) as client:
            answer = await client.post("/deliver", json={"side": side, "watchers": watchers, "events": events})
        cpu = float(answer.json()["cpu"])
        tasks.cancel_scope.cancel()
    return cpu / watchers / events


def request_of(side: str, kind: str) -> bytes:
    """Make the request that opens a stream."""
    upgrade = (
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    )
    return f"GET /{side}/{kind} HTTP/1.1\r\nHost: here\r\n{upgrade if kind == 'ws' else ''}\r\n".encode()


async def read_all(stream: anyio.abc.SocketStream) -> None:
    """Read and forget."""
    while True:
        await stream.receive()


@asynccontextmanager
async def start_server() -> AsyncGenerator[int]:
    """Start the server in a process of its own; give its port."""
    async with await anyio.open_process([sys.executable, __file__, "--here"], stderr=None) as process:
        assert process.stdout is not None
        try:
            yield int(await process.stdout.receive())
        finally:
            process.kill()


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

    def event(self, number: int) -> MessageEvent:
        """Make the event after so many more."""
        return MessageEvent(seq=self.state.head + 1 + number, source="user", message=Message.user(TEXT))


class Ours:
    """Our streams."""

    def __init__(self, hub: StreamHub) -> None:
        self.log = Log()
        self.streams = hub.of(self.log)
        self.left: list[Watcher] = []

    def frames_for(self, client: str) -> ClientFrames:
        raise NotImplementedError(client)

    async def sse(self, request: Request) -> Response:
        request.scope["query_string"] = f"after={self.log.state.head}".encode()
        return cast("Response", await stream_sse(self, request))

    async def ws(self, websocket: WebSocket) -> None:
        websocket.scope["query_string"] = f"after={self.log.state.head}".encode()
        await stream_websocket(cast("Any", self), websocket)

    def prepare(self, events: int) -> list[MessageEvent]:
        return [self.log.event(number) for number in range(events)]

    def send(self, item: MessageEvent) -> None:
        self.left = list(self.streams.watchers)
        self.log.append(item)

    @property
    def watchers(self) -> int:
        return len(self.streams)

    @property
    def delivered(self) -> bool:
        while self.left and self.left[-1].position.seq == self.log.state.head:
            self.left.pop()
        return not self.left


class Bare:
    """What one writes in twenty lines: an event wakes all, and each sends the same bytes."""

    def __init__(self) -> None:
        self.log = Log()
        self.news = anyio.Event()
        self.frame = b""
        self.left = 0
        self.watchers = 0

    async def sse(self, _: Request) -> Response:
        async def body() -> AsyncGenerator[bytes]:
            self.watchers += 1
            try:
                yield b": hello\n\n"
                while True:
                    await self.news.wait()
                    yield encode_sse("event", self.frame, Cursor(1, "ev_01"))
                    self.left -= 1
            finally:
                self.watchers -= 1

        async def closing() -> AsyncGenerator[bytes]:
            async with aclosing(body()) as parts:
                async for part in parts:
                    yield part

        return StreamingResponse(closing(), media_type="text/event-stream")

    async def ws(self, websocket: WebSocket) -> None:
        await websocket.accept()
        await websocket.send_text("hello")
        self.watchers += 1

        async def listen() -> None:
            while (await websocket.receive())["type"] != "websocket.disconnect":
                pass
            tasks.cancel_scope.cancel()

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listen)
                while True:
                    await self.news.wait()
                    await websocket.send_text(self.frame.decode())
                    self.left -= 1
        finally:
            self.watchers -= 1

    def prepare(self, events: int) -> list[bytes]:
        return [encode_event(self.log.event(number), number + 1) for number in range(events)]

    def send(self, item: bytes) -> None:
        self.frame, self.left = item, self.watchers
        news, self.news = self.news, anyio.Event()
        news.set()

    @property
    def delivered(self) -> bool:
        return not self.left


async def here() -> None:
    """Serve both until the process is ended."""
    listener = socket.create_server(("127.0.0.1", 0), backlog=2048)
    listener.setblocking(False)

    class OneSocket(Config):
        def create_sockets(self) -> Sockets:
            return Sockets([], [listener], [])

    async with StreamHub() as hub:
        sides: dict[str, Any] = {"ours": Ours(hub), "bare": Bare()}

        async def deliver_here(request: Request) -> JSONResponse:
            asked = await request.json()
            side = sides[asked["side"]]
            # Watchers are counted, not announced.
            while side.watchers != asked["watchers"]:  # noqa: ASYNC110
                await anyio.sleep(0.01)
            await anyio.sleep(0.1)
            items = side.prepare(asked["events"])
            began = time.process_time()
            for item in items:
                side.send(item)
                while not side.delivered:
                    await anyio.lowlevel.checkpoint()
            return JSONResponse({"cpu": time.process_time() - began})

        app = Starlette(
            routes=[
                Route("/deliver", deliver_here, methods=["POST"]),
                *(Route(f"/{name}/sse", side.sse) for name, side in sides.items()),
                *(WebSocketRoute(f"/{name}/ws", side.ws) for name, side in sides.items()),
            ]
        )
        print(listener.getsockname()[1], flush=True)
        config = OneSocket()
        config.loglevel = "ERROR"
        await import_module("hypercorn.asyncio").serve(cast("Any", app), config, mode="asgi")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        anyio.run(here)
    else:
        report(measure)
