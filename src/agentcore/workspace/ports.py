"""A port inside of a workspace, on this machine: for a browser, or for another program of the user's.

Above: the workspaces. Below: `connect`, by which a workspace opens a stream to a port inside. It listens on 127.0.0.1 alone, which every
user of this machine can reach, and knows nothing of what goes through.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final, final

import anyio
from anyio.abc import ByteStream, SocketAttribute, SocketListener, SocketStream, TaskGroup, TaskStatus

from agentcore.errors import WorkspaceError
from agentcore.logs import get_logger
from agentcore.workspace.tunnel import LOST, tunnel

_log = get_logger(__name__)

MAX_CONNECTIONS: Final = 64
"""How many connections one exposed port has at once; more wait."""
_LOOPBACK: Final = "127.0.0.1"
_HIGHEST_PORT: Final = 65535
_RETRY_SECONDS: Final = 0.1

Connect = Callable[[int], AbstractAsyncContextManager[ByteStream]]
"""Opens a stream to a port on 127.0.0.1 inside."""
Handle = Callable[[SocketStream], Awaitable[None]]
"""Serves one connection, which is closed when it returns."""


@asynccontextmanager
async def connect_local(port: int) -> AsyncGenerator[ByteStream]:
    """Open a stream to a port of this machine, which is where the commands of a local workspace listen.

    Raises:
        OSError: Nothing listens there.
    """
    async with await anyio.connect_tcp(_LOOPBACK, port) as stream:
        yield stream


@final
class Exposed:
    """A port inside that can be reached on this machine, until it or the workspace is closed. Made by `expose`."""

    def __init__(self, host: str, port: int, scope: anyio.CancelScope, closed: anyio.Event) -> None:
        self._host = host
        self._port = port
        self._scope = scope
        self._closed = closed

    @property
    def port(self) -> int:
        """The port of this machine."""
        return self._port

    @property
    def url(self) -> str:
        """The address for a browser."""
        return f"http://{self._host}:{self._port}"

    async def aclose(self) -> None:
        """Stop to listen and end its connections; closing twice is fine."""
        self._scope.cancel("the port is closed")
        await self._closed.wait()

    def __repr__(self) -> str:
        return f"<Exposed {self.url}>"


async def expose(tasks: TaskGroup, connect: Connect, port: int) -> Exposed:
    """Listen on a free port of 127.0.0.1, and pass on each connection to a port inside.

    A connection that nothing inside takes is closed without an answer; that no program listens there yet is fine.

    Args:
        tasks: The task group of the workspace; leaving it ends the connections.
        connect: Opens a stream to a port inside.
        port: The port inside.

    Raises:
        ValueError: It is not a port.
        WorkspaceError: There is no port to listen on.
    """
    if type(port) is not int or not 0 < port <= _HIGHEST_PORT:
        raise ValueError(f"A port is a number from 1 to {_HIGHEST_PORT}, and not {port!r}.")

    async def pass_on(stream: SocketStream) -> None:
        try:
            async with connect(port) as inside:
                await tunnel(stream, inside)
        except LOST as error:
            _log.debug("port_not_reached", port=port, error=str(error))

    return await listen_here(tasks, pass_on)


async def listen_here(tasks: TaskGroup, handle: Handle, host: str = _LOOPBACK) -> Exposed:
    """Listen on a free port of this machine's own addresses (127.0.0.0/8), and serve each connection in a task of its own.

    Args:
        tasks: Leaving it ends the connections.
        handle: Serves a connection.
        host: The address.

    Raises:
        WorkspaceError: There is no port to listen on.
    """
    return await tasks.start(_serve, handle, host)


async def _serve(handle: Handle, host: str, *, task_status: TaskStatus[Exposed]) -> None:
    closed = anyio.Event()
    try:
        with anyio.CancelScope() as scope:
            try:
                listeners = await anyio.create_tcp_listener(local_host=host)
            except OSError as error:
                raise WorkspaceError(f"No port of this machine could be opened: {error.strerror or error}.") from error
            async with listeners, anyio.create_task_group() as tasks:
                (listener,) = listeners.listeners
                assert isinstance(listener, SocketListener)
                local = listener.extra(SocketAttribute.local_port)  # noqa: S610 - anyio's, not Django's
                task_status.started(Exposed(host, local, scope, closed))
                await _accept(listener, tasks, handle, local)
    finally:
        closed.set()


async def _accept(listener: SocketListener, tasks: TaskGroup, handle: Handle, port: int) -> None:
    slots = anyio.Semaphore(MAX_CONNECTIONS)

    async def serve(stream: SocketStream) -> None:
        try:
            async with stream:
                await handle(stream)
        finally:
            slots.release()

    while True:
        # Before a connection is accepted, so that those that are too many wait in the kernel.
        await slots.acquire()
        while True:
            try:
                stream = await listener.accept()
                break
            except OSError as error:  # no file descriptor is left, say
                _log.warning("port_not_accepting", port=port, error=error.strerror)
                await anyio.sleep(_RETRY_SECONDS)
        tasks.start_soon(serve, stream)
