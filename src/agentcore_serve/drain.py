"""The end of a server: not ready any more, `bye` to every stream, then the steps under way come to their end."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import anyio

from agentcore.logs import get_logger

_log = get_logger(__name__)

_POLL_SECONDS = 0.05


class Drain:
    """The state of a server, from taking work to the point where it may stop.

    Args:
        close_streams: Says `bye` to all streams and waits until they have ended.
        finish_work: Pauses what runs and waits for it, for at most these seconds.
        end_clients: Ends what clients run in workspaces, when the work has come to its end.
        seconds: The bound of `finish_work`.
    """

    def __init__(
        self,
        close_streams: Callable[[], Coroutine[Any, Any, None]],
        finish_work: Callable[[float], Coroutine[Any, Any, None]],
        end_clients: Callable[[], None],
        seconds: float,
    ) -> None:
        self._close_streams = close_streams
        self._finish_work = finish_work
        self._end_clients = end_clients
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
            self._end_clients()
            self._done.set()

    async def watch_uvicorn(self) -> None:
        """Drain when uvicorn is told to end, where it is the server, and let it end only then.

        Its lifespan ends after all connections have, and those of streams never would.
        """
        with _hold_back_signals() as held:
            if held is None:
                return
            while not held.caught and not held.server.should_exit:  # noqa: ASYNC110 a signal handler can't set an event
                await anyio.sleep(_POLL_SECONDS)
            await self.drain()
            held.pass_on()


class _HeldBack:
    """The signals that end uvicorn, held back until there is nothing left to end in order."""

    def __init__(self, server: Any) -> None:
        self.server = server
        self.caught: list[int] = []
        self._before: dict[int, Any] = {}
        self._passes = False

    def hold(self) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            before = signal.getsignal(number)
            if getattr(before, "__self__", None) is self.server:
                self._before[number] = before
                signal.signal(number, self._catch)

    def release(self) -> None:
        for number, before in self._before.items():
            if signal.getsignal(number) == self._catch:
                signal.signal(number, before)

    def pass_on(self) -> None:
        """Let uvicorn have what came, and what comes."""
        self._passes = True
        for number in self.caught:
            self._before[number](number, None)

    def _catch(self, number: int, frame: FrameType | None) -> None:
        # The second one is somebody in a hurry.
        if self._passes or self.caught:
            self._before[number](number, frame)
        self.caught.append(number)


@contextmanager
def _hold_back_signals() -> Generator[_HeldBack | None]:
    server: Any = getattr(signal.getsignal(signal.SIGTERM), "__self__", None)
    if not hasattr(server, "should_exit") or threading.current_thread() is not threading.main_thread():
        yield None
        return
    held = _HeldBack(server)
    held.hold()
    try:
        yield held
    finally:
        held.release()
