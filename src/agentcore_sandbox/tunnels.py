"""Tunnels: connections to ports inside, and connections that something inside makes to a port that is served from here.

Above: ports that are published, and the proxy for allowed hosts. Below: `Channel`. Each end is an anyio `ByteStream`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, final, runtime_checkable

import anyio
from anyio.abc import ByteStream

from agentcore.errors import WorkspaceError
from agentcore_sandbox.channel import Channel

TunnelHandler = Callable[[ByteStream], Awaitable[None]]
"""Serves one connection; the stream is closed when it returns."""


@runtime_checkable
class Tunnels(Protocol):
    """A workspace with ports, as what publishes and serves them sees it."""

    def connect(self, port: int) -> AbstractAsyncContextManager[ByteStream]:
        """Connect to a port on 127.0.0.1 inside; leaving ends the connection.

        Raises:
            WorkspaceError: Nothing listens there.
        """
        ...

    def listen(self, port: int, handler: TunnelHandler) -> AbstractAsyncContextManager[int]:
        """Listen on a port of 127.0.0.1 inside (0: any), until the context is left, and return which it is.

        It is listened on again when a new helper is started. Each connection has a task of its own.

        Raises:
            WorkspaceError: It is taken.
        """
        ...


@final
class TunnelStream(ByteStream):
    """One end of a connection through the stream to the helper."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel

    async def receive(self, max_bytes: int = 65536) -> bytes:
        try:
            return await self._channel.receive(max_bytes)
        except WorkspaceError as error:
            # As any stream says it: who serves a connection knows nothing of boxes.
            raise anyio.BrokenResourceError(str(error)) from error

    async def send(self, item: bytes) -> None:
        try:
            await self._channel.send(item)
        except WorkspaceError as error:
            raise anyio.BrokenResourceError(str(error)) from error

    async def send_eof(self) -> None:
        await self._channel.send_eof()

    async def aclose(self) -> None:
        await self._channel.aclose()


@final
class Listener:
    """A port that is listened on inside."""

    def __init__(self, port: int, handler: TunnelHandler, on_port: Callable[[int], None] | None = None) -> None:
        self.port = port
        self.on_port = on_port
        """Is called with the port; any other one will do where that is taken. None: it has to be this one."""
        self.handler = handler
        self.channel: Channel | None = None
