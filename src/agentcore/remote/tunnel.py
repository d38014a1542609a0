"""A connection to a port of a server's box, as a byte stream over one WebSocket.

Above: `RemoteWorkspace.expose`. Below: `Socket`, and the messages of tunnels in `agentcore.wire.workspaces`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import TYPE_CHECKING, final

import anyio
from anyio.abc import ByteStream

from agentcore._groups import leaf_exceptions
from agentcore.errors import AgentcoreError
from agentcore.wire.workspaces import PIECE, PING_SECONDS, SILENCE_SECONDS, TUNNEL_END, TUNNEL_PING

if TYPE_CHECKING:
    from agentcore.remote.socket import Socket


@asynccontextmanager
async def open_tunnel(open_socket: Callable[[], AbstractAsyncContextManager[Socket]]) -> AsyncGenerator[ByteStream]:
    """Open a connection; leaving ends it.

    Args:
        open_socket: Opens the WebSocket for it.

    Raises:
        anyio.BrokenResourceError: The server cannot be reached, or nothing listens at the port.
    """
    async with AsyncExitStack() as stack:
        try:
            socket = await stack.enter_async_context(open_socket())
        except AgentcoreError as error:
            raise anyio.BrokenResourceError(str(error)) from error
        stream = _Tunnel(socket)
        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(stream.ping)
                yield stream
                tasks.cancel_scope.cancel("the tunnel is left")
        except ExceptionGroup as group:
            raise leaf_exceptions(group)[0] from group


@final
class _Tunnel(ByteStream):
    def __init__(self, socket: Socket) -> None:
        self._socket = socket
        self._sending = anyio.Lock()
        self._unread = b""
        self._has_ended = False

    async def ping(self) -> None:
        """Send a ping now and then, until this is cancelled or the connection is gone."""
        try:
            while True:
                await anyio.sleep(PING_SECONDS)
                await self._send(TUNNEL_PING)
        except anyio.BrokenResourceError:
            return  # whoever receives learns of it

    async def receive(self, max_bytes: int = 65536) -> bytes:
        while not self._unread:
            if self._has_ended:
                raise anyio.EndOfStream
            message = await self._receive()
            if isinstance(message, bytes):
                self._unread = message
            self._has_ended = message == TUNNEL_END
        data, self._unread = self._unread[:max_bytes], self._unread[max_bytes:]
        return data

    async def _receive(self) -> str | bytes:
        try:
            with anyio.fail_after(SILENCE_SECONDS):
                return await self._socket.receive()
        except (AgentcoreError, anyio.EndOfStream, TimeoutError) as error:
            # The end of what the program says is a message; without one, the connection was cut.
            raise anyio.BrokenResourceError(str(error)) from error

    async def send(self, item: bytes) -> None:
        for at in range(0, len(item), PIECE):
            await self._send(item[at : at + PIECE])

    async def send_eof(self) -> None:
        await self._send(TUNNEL_END)

    async def aclose(self) -> None:
        """Do nothing: the connection ends with its context."""

    async def _send(self, message: str | bytes) -> None:
        async with self._sending:
            try:
                await self._socket.send(message)
            except AgentcoreError as error:
                raise anyio.BrokenResourceError(str(error)) from error
