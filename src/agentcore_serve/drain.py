"""The end of a server: not ready any more, `bye` to every stream, then the steps under way come to their end."""

from __future__ import annotations

import signal
from collections.abc import Awaitable, Callable
from typing import Any

import anyio

from agentcore.logs import get_logger

_log = get_logger(__name__)

_POLL_SECONDS = 0.1


class Drain:
    """Whether the server takes work, and its way to the point where it may stop.

    Args:
        close_streams: Says `bye` to all streams and waits until they have ended.
        finish_work: Pauses what runs and waits for it, for at most these seconds.
        seconds: The bound of `finish_work`.
    """

    def __init__(
        self,
        close_streams: Callable[[], Awaitable[None]],
        finish_work: Callable[[float], Awaitable[None]],
        seconds: float,
    ) -> None:
        self._close_streams = close_streams
        self._finish_work = finish_work
        self._seconds = seconds
        self._begun = False
        self._done = anyio.Event()
        self.ready = False
        """True while new work is taken."""

    @property
    def begun(self) -> bool:
        """True once the server is on its way to its end."""
        return self._begun

    async def drain(self) -> None:
        """Take no more work, end the streams, and wait for what runs. A second caller waits for the first."""
        if self._begun:
            await self._done.wait()
            return
        self._begun = True
        self.ready = False
        try:
            _log.info("draining", seconds=self._seconds)
            async with anyio.create_task_group() as tasks:
                # Beside each other: a stream whose reader has stalled must not keep the work from being paused.
                tasks.start_soon(self._close_streams)
                tasks.start_soon(self._finish_work, self._seconds)
        finally:
            self._done.set()

    async def watch_uvicorn(self) -> None:
        """Drain as soon as uvicorn has been told to end, where it is the server.

        Its lifespan ends after all connections have, and those of streams would never.
        """
        while True:
            server: Any = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
            if getattr(server, "should_exit", False) is True:
                await self.drain()
                return
            await anyio.sleep(_POLL_SECONDS)
