"""A server that answers with bytes as they are, however wrong: for faults that no HTTP server would make."""

from __future__ import annotations

import socket
import struct
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager

import anyio
from anyio.abc import SocketAttribute, SocketStream, TaskStatus

__all__ = ["Act", "RawServer", "drip", "hang", "just", "keep", "reset", "serve_raw"]

Act = Callable[[SocketStream], Awaitable[bool]]
"""Answers one request; whether the connection stays open."""


class RawServer:
    """A server that is listening. Made by `serve_raw`."""

    def __init__(self, port: int) -> None:
        self.url = f"http://127.0.0.1:{port}"
        self.asked = 0
        """Requests that came."""
        self.accepted = 0
        """Connections that were made."""
        self.open = 0
        """Connections open now."""
        self._moved = anyio.Event()

    def count(self, change: int) -> None:
        self.open += change
        self.accepted += change > 0
        self._moved.set()
        self._moved = anyio.Event()

    async def idle(self) -> None:
        """Wait until no connection is open."""
        while self.open:
            await self._moved.wait()


def just(data: bytes) -> Act:
    """Send bytes and close."""

    async def act(stream: SocketStream) -> bool:
        await stream.send(data)
        return False

    return act


def keep(data: bytes) -> Act:
    """Send bytes and wait for the next request."""

    async def act(stream: SocketStream) -> bool:
        await stream.send(data)
        return True

    return act


def hang(data: bytes = b"") -> Act:
    """Send bytes and nothing more, until the client goes."""

    async def act(stream: SocketStream) -> bool:
        if data:
            await stream.send(data)
        await stream.receive()
        return False

    return act


def reset(data: bytes = b"") -> Act:
    """Send bytes and break the connection off."""

    async def act(stream: SocketStream) -> bool:
        if data:
            await stream.send(data)
        raw = stream.extra(SocketAttribute.raw_socket)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        await anyio.aclose_forcefully(stream)
        return False

    return act


def drip(data: bytes) -> Act:
    """Send bytes one at a time and close."""

    async def act(stream: SocketStream) -> bool:
        for at in range(len(data)):
            await stream.send(data[at : at + 1])
        return False

    return act


@asynccontextmanager
async def serve_raw(*acts: Act) -> AsyncGenerator[RawServer]:
    """Answer each request by the next act, the last one again and again, while the context is open."""
    left = list(acts)

    async def serve(stream: SocketStream) -> None:
        server.count(+1)
        try:
            async with stream:
                while await _read(stream):
                    server.asked += 1
                    act = left.pop(0) if len(left) > 1 else left[0]
                    if not await act(stream):
                        return
        except* (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream):
            pass  # the client went away
        finally:
            server.count(-1)

    async def listen(*, task_status: TaskStatus[None]) -> None:
        task_status.started()
        await listener.serve(serve)

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        server = RawServer(listener.extra(SocketAttribute.local_port))
        async with anyio.create_task_group() as tasks:
            await tasks.start(listen)
            yield server
            tasks.cancel_scope.cancel()


async def _read(stream: SocketStream) -> bool:
    """Read a request; whether there is one."""
    data = b""
    while b"\r\n\r\n" not in data:
        try:
            data += await stream.receive()
        except anyio.EndOfStream:
            return False
    head, _, body = data.partition(b"\r\n\r\n")
    length = next(int(line[15:]) for line in head.lower().split(b"\r\n") if line.startswith(b"content-length:"))
    while len(body) < length:
        body += await stream.receive()
    return True
