"""A TCP proxy between a client and a server that fails as networks do: cuts, delays, half-open connections, refusals."""

from __future__ import annotations

import socket
import struct
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Literal

import anyio
from anyio.abc import SocketAttribute, SocketStream

Direction = Literal["up", "down"]
"""`up` is from the client to the server, `down` from the server to the client."""


class CuttingProxy:
    """A proxy that is listening. Made by `cutting_proxy`; its attributes may be changed at any time."""

    def __init__(self, port: int, server_port: int) -> None:
        self.port = port
        """The port for clients."""
        self.delay = 0.0
        """Seconds that each piece is held back, either way."""
        self.refusing = False
        """True to reset every new connection."""
        self.accepted = 0
        """Connections so far."""
        self.bytes_until_cut: dict[Direction, int] = {}
        """The connection that brings the count of its direction to 0 is cut after that byte; the entry is then removed."""
        self._server_port = server_port
        self._connections: dict[tuple[SocketStream, SocketStream], anyio.CancelScope] = {}
        self._flowing = anyio.Event()
        self._flowing.set()
        self._changed = anyio.Event()

    @property
    def url(self) -> str:
        """The address for an HTTP client."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def connections(self) -> int:
        """Connections open now."""
        return len(self._connections)

    async def connected(self, count: int = 1) -> None:
        """Wait until so many connections are open."""
        while self.connections < count:
            await self._changed.wait()

    async def idle(self) -> None:
        """Wait until no connection is open."""
        while self.connections:
            await self._changed.wait()

    async def cut(self) -> None:
        """Reset all connections now, both ways."""
        for pair in tuple(self._connections):
            await self._cut(pair)

    def half_open(self) -> None:
        """Forward nothing any more, and go on accepting: both sides believe in a connection that is dead."""
        self._flowing = anyio.Event()

    def flow(self) -> None:
        """Forward again, what was held back too."""
        self._flowing.set()

    async def serve(self, client: SocketStream) -> None:
        """Forward one connection both ways until it ends."""
        self.accepted += 1
        if self.refusing:
            await _reset(client)
            return
        try:
            server = await anyio.connect_tcp("127.0.0.1", self._server_port)
        except OSError:
            await _reset(client)
            return
        pair = (client, server)
        try:
            async with client, server, anyio.create_task_group() as tasks:
                self._connections[pair] = tasks.cancel_scope
                self._tell()
                tasks.start_soon(self._forward, pair, "up")
                tasks.start_soon(self._forward, pair, "down")
        finally:
            self._connections.pop(pair, None)
            self._tell()

    async def _forward(self, pair: tuple[SocketStream, SocketStream], direction: Direction) -> None:
        source, target = pair if direction == "up" else pair[::-1]
        try:
            async for piece in source:
                if self.delay:
                    await anyio.sleep(self.delay)
                await self._flowing.wait()
                left = self.bytes_until_cut.get(direction)
                is_last = left is not None and len(piece) >= left
                if is_last:  # before anything is awaited: another connection counts too
                    del self.bytes_until_cut[direction]
                elif left is not None:
                    self.bytes_until_cut[direction] = left - len(piece)
                await target.send(piece[:left] if is_last else piece)
                if is_last:
                    await self._cut(pair)
            await target.send_eof()
        except (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError):
            await self._cut(pair)

    async def _cut(self, pair: tuple[SocketStream, SocketStream]) -> None:
        for stream in pair:
            await _reset(stream)
        if pair in self._connections:
            self._connections[pair].cancel()  # it may hold a piece back

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


async def _reset(stream: SocketStream) -> None:
    try:
        raw = stream.extra(SocketAttribute.raw_socket)
        raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    except OSError:
        pass  # it is closed
    await anyio.aclose_forcefully(stream)


@asynccontextmanager
async def cutting_proxy(server_port: int) -> AsyncGenerator[CuttingProxy]:
    """Listen on a free port of the loopback, for a server there, while the context is open."""
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        proxy = CuttingProxy(listener.extra(SocketAttribute.local_port), server_port)
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(listener.serve, proxy.serve)  # noqa: ASYNC113 the socket listens already
            yield proxy
            tasks.cancel_scope.cancel()
