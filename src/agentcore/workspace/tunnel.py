"""Bytes between two streams, both ways, until both have ended or nothing has moved for too long.

Above: ports that are exposed, and the proxy of boxes. Below: anyio's streams.
"""

from __future__ import annotations

from typing import Final, final

import anyio
from anyio.abc import ByteReceiveStream, ByteSendStream, ByteStream

from agentcore.errors import WorkspaceError

IDLE_SECONDS: Final = 300.0
"""How long a connection may be silent, both ways, before it is closed."""
HALF_CLOSED_SECONDS: Final = 60.0
"""The same, once one side has ended: the other is often gone by then, and cannot say so."""

LOST: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError, OSError, WorkspaceError)
"""The errors of a stream whose other end is gone, or the box that it leads to."""


@final
class IdleScope:
    """Ends what runs inside of its scope when `touch` was not called for too long."""

    def __init__(self, idle_seconds: float = IDLE_SECONDS, half_closed_seconds: float = HALF_CLOSED_SECONDS) -> None:
        self.scope = anyio.CancelScope(deadline=anyio.current_time() + idle_seconds)
        self._seconds = idle_seconds
        self._half_closed_seconds = half_closed_seconds

    def touch(self) -> None:
        """Note that something has moved."""
        self.scope.deadline = anyio.current_time() + self._seconds

    def half_close(self) -> None:
        """Note that one side has ended."""
        self._seconds = min(self._seconds, self._half_closed_seconds)
        self.touch()


async def pump(source: ByteReceiveStream, sink: ByteSendStream, idle: IdleScope) -> None:
    """Pass on bytes until the source ends.

    Raises:
        anyio.BrokenResourceError, anyio.ClosedResourceError, OSError, WorkspaceError: One of the two is gone.
    """
    while True:
        try:
            data = await source.receive()
        except anyio.EndOfStream:
            return
        idle.touch()
        await sink.send(data)
        idle.touch()


async def tunnel(one: ByteStream, other: ByteStream, idle: IdleScope | None = None) -> None:
    """Pass on bytes both ways; the end of one way is passed on alone. Return when both have ended, one is gone, or both are silent.

    It closes neither stream.
    """
    idle = idle or IdleScope()

    async def pass_on(source: ByteStream, sink: ByteStream) -> None:
        try:
            await pump(source, sink, idle)
            await sink.send_eof()
            idle.half_close()
        except LOST:
            idle.scope.cancel("one end is gone")

    with idle.scope:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(pass_on, one, other)
            tasks.start_soon(pass_on, other, one)
