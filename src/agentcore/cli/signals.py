"""Ctrl-C: the first one asks for an end, the second one is it."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from types import FrameType

import anyio
import psutil

from agentcore.cli.console import flush

__all__ = ["Interrupts", "catch_interrupts"]

_ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

OnInterrupt = Callable[[], Awaitable[None]]


class Interrupts:
    """Who is told of an interrupt. Made by `catch_interrupts`."""

    def __init__(self, scope: anyio.CancelScope) -> None:
        self._scope = scope
        self._told: OnInterrupt | None = None
        self._muted = False
        self.caught: int | None = None
        """The signal that came."""
        self.last_words: str | None = None
        """What to tell a person when a second one ends everything."""

    @contextmanager
    def told(self, action: OnInterrupt) -> Generator[None]:
        """Do this when one comes in the meantime; where nobody says what to do, everything is cancelled."""
        before, self._told = self._told, action
        try:
            yield
        finally:
            self._told = before

    @contextmanager
    def muted(self) -> Generator[None]:
        """Let another program on this terminal, an editor, have Ctrl-C for itself."""
        self._muted = True
        try:
            yield
        finally:
            self._muted = False

    async def listen(self, signals: AsyncIterable[int]) -> None:
        """Wait for signals, for ever."""
        async for number in signals:
            if self._muted and number == signal.SIGINT:
                continue
            if self.caught is not None:
                self._leave_at_once(number, None)
            self.caught = number
            # By the system's own means from here on: the second one has to work when the event loop does not.
            signal.signal(signal.SIGINT, self._leave_at_once)
            if self._told is None:
                self._scope.cancel()
            else:
                await self._told()

    def _leave_at_once(self, number: int, frame: FrameType | None) -> None:
        """End the process here, with all that it started. The log is whole: it is made to survive that."""
        del frame
        # A process group of its own does not hear Ctrl-C, so what was started would go on by itself.
        with suppress(psutil.Error):
            for child in psutil.Process().children(recursive=True):
                with suppress(psutil.Error):
                    child.kill()
        # The handler may have come in the middle of a write: then what is in the buffer stays there.
        with suppress(RuntimeError):
            flush()
        if self.last_words is not None:
            begin = "\n" if sys.stderr.isatty() else ""
            with suppress(OSError):
                os.write(sys.stderr.fileno(), f"{begin}{self.last_words}\n".encode(errors="backslashreplace"))
        os._exit(128 + number)


@asynccontextmanager
async def catch_interrupts() -> AsyncGenerator[Interrupts]:
    """Catch Ctrl-C, and what a system sends to end a program, while the context is open."""
    before = signal.getsignal(signal.SIGINT)
    # What is ignored from the start (nohup, a job in the background of a script) stays ignored.
    heeded = [number for number in _ASKING if signal.getsignal(number) is not signal.SIG_IGN]
    try:
        with anyio.open_signal_receiver(*heeded) as signals:
            async with anyio.create_task_group() as tasks:
                interrupts = Interrupts(tasks.cancel_scope)
                tasks.start_soon(interrupts.listen, signals)
                yield interrupts
                tasks.cancel_scope.cancel()
    finally:
        signal.signal(signal.SIGINT, before)
