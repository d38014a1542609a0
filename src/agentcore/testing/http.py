"""A small HTTP server on the loopback, for tests and demos that need a real socket. Not one for the open air.

Above: the provider of `agentcore.testing.provider`. Below: h11 on an anyio listener, so it runs on asyncio and trio.
Imported only when something is served: what else agentcore.testing holds is of use where h11 is not installed.
"""

from __future__ import annotations

import json
import socket
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
import h11
from anyio.abc import Listener, SocketAttribute, SocketStream, TaskStatus
from pydantic import JsonValue


@dataclass(frozen=True, slots=True)
class HTTPRequest:
    """A request, whole."""

    method: str
    path: str
    headers: Mapping[str, str]
    """By lower-case name."""
    content: bytes

    def json(self) -> Any:
        """The content, read as JSON."""
        return json.loads(self.content)


Handler = Callable[[HTTPRequest, "Responder"], Awaitable[None]]
"""Answers a request. It is cancelled when the client goes away."""


class Responder:
    """The way back to the client, for one request."""

    def __init__(self, stream: SocketStream, connection: h11.Connection) -> None:
        self._stream = stream
        self._connection = connection
        self.started = False
        """True if the status was sent."""

    async def send(self, status: int, content: bytes, headers: Mapping[str, str] | None = None) -> None:
        """Answer, all at once."""
        await self.start(status, {**(headers or {}), "Content-Length": str(len(content))})
        await self.write(content)
        await self.end()

    async def send_json(self, status: int, content: JsonValue, headers: Mapping[str, str] | None = None) -> None:
        """Answer with JSON."""
        await self.send(status, json.dumps(content).encode(), {"Content-Type": "application/json", **(headers or {})})

    async def start(self, status: int, headers: Mapping[str, str]) -> None:
        """Begin an answer whose content comes piece by piece."""
        self.started = True
        await self._out(h11.Response(status_code=status, headers=list(headers.items())))

    async def write(self, piece: bytes) -> None:
        """Send more content."""
        await self._out(h11.Data(piece))

    async def end(self) -> None:
        """End the answer as HTTP has it."""
        await self._out(h11.EndOfMessage())

    async def abort(self) -> None:
        """Break the connection off so that the client reads a reset instead of an end."""
        raw = self._stream.extra(SocketAttribute.raw_socket)  # noqa: S610 - of anyio, not of Django
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await anyio.aclose_forcefully(self._stream)

    async def _out(self, event: h11.Response | h11.Data | h11.EndOfMessage) -> None:
        data = self._connection.send(event)  # pyright: ignore[reportCallIssue, reportArgumentType] - typed one by one
        if data:
            await self._stream.send(data)


class HTTPServer:
    """A server that is listening. Made by `serve_http`."""

    def __init__(self, port: int, handler: Handler) -> None:
        self.url = f"http://127.0.0.1:{port}"
        """Where it listens, without a path."""
        self.connections = 0
        """Connections open now."""
        self._handler = handler
        self._moved = anyio.Event()

    async def idle(self) -> None:
        """Wait until no connection is open."""
        while self.connections:
            await self._moved.wait()

    def _count(self, change: int) -> None:
        self.connections += change
        self._moved.set()
        self._moved = anyio.Event()

    async def serve(
        self, listener: Listener[SocketStream], *, task_status: TaskStatus[None] = anyio.TASK_STATUS_IGNORED
    ) -> None:
        """Answer every connection, until it is cancelled."""
        task_status.started()
        await listener.serve(self._serve_connection)

    async def _serve_connection(self, stream: SocketStream) -> None:
        self._count(+1)
        try:
            async with stream:
                await self._requests(stream)
        except* (anyio.BrokenResourceError, anyio.ClosedResourceError, h11.ProtocolError):
            pass  # the client went away, or speaks no HTTP: it has its answer
        finally:
            self._count(-1)

    async def _requests(self, stream: SocketStream) -> None:
        connection: h11.Connection = h11.Connection(h11.SERVER)
        while (request := await _read(stream, connection)) is not None:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_watch, stream, connection, tasks.cancel_scope)
                await self._handler(request, Responder(stream, connection))
                tasks.cancel_scope.cancel()
            if connection.our_state is not h11.DONE or connection.their_state is not h11.DONE:
                return
            connection.start_next_cycle()


async def _read(stream: SocketStream, connection: h11.Connection) -> HTTPRequest | None:
    """Read a request; None where the client has no other, or speaks no HTTP."""
    head = await _next_event(stream, connection)
    if not isinstance(head, h11.Request):
        return None
    content = bytearray()
    while isinstance(event := await _next_event(stream, connection), h11.Data):
        content += event.data
    if not isinstance(event, h11.EndOfMessage):
        return None
    headers = {name.decode(): value.decode("latin-1") for name, value in head.headers}
    return HTTPRequest(head.method.decode(), head.target.decode(), headers, bytes(content))


async def _next_event(stream: SocketStream, connection: h11.Connection) -> object:
    while (event := connection.next_event()) is h11.NEED_DATA:
        try:
            connection.receive_data(await stream.receive())
        except anyio.EndOfStream:
            connection.receive_data(b"")
    return event


async def _watch(stream: SocketStream, connection: h11.Connection, scope: anyio.CancelScope) -> None:
    """End the answer when the client has gone."""
    try:
        while True:
            connection.receive_data(await stream.receive())
    except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        scope.cancel()


@asynccontextmanager
async def serve_http(handler: Handler) -> AsyncGenerator[HTTPServer]:
    """Listen on a free port of the loopback while the context is open."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        server = HTTPServer(listener.extra(SocketAttribute.local_port), handler)  # noqa: S610 - of anyio
        async with anyio.create_task_group() as tasks:
            await tasks.start(server.serve, listener)
            yield server
            tasks.cancel_scope.cancel()
