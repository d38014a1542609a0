"""From a command's coroutine to the end of the process: one event loop, errors as sentences, the exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

import anyio
import psutil

from agentcore.cli.console import BAD, flush, make_console, prepare_streams, say_words
from agentcore.cli.failures import explain, is_broken_pipe, of_the_output
from agentcore.logs import configure_logging

_BROKEN_PIPE = 141


def execute(command: Callable[[], Coroutine[Any, Any, int]], *, debug: bool) -> NoReturn:
    """Run it and leave with its exit code. What it raises is said in one sentence; with `debug`, where it was raised too.

    Args:
        command: Makes the coroutine. It is called before there is an event loop: it may read files and the environment.
        debug: Whether to show tracebacks and what happens inside.
    """
    prepare_streams()
    if debug:
        configure_logging(json=False, level="DEBUG")
    try:
        coroutine = command()

        async def main() -> int:
            return await coroutine

        code = anyio.run(main)
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = 130
    except Exception as error:
        code = _tell(error, debug)
    _leave(code)


def _tell(error: Exception, debug: bool) -> int:
    if is_broken_pipe(error):
        # Nobody reads any more, as after `| head`: nothing is wrong, and nothing more can be said there.
        _print_nowhere()
        return _BROKEN_PIPE
    if of_the_output(error) is not None:
        _print_nowhere()  # what is left of it would be tried once more at the end
    if debug:
        traceback.print_exception(error)
    sentence, code = explain(error)
    say_words(make_console(stderr=True), f"error: {sentence}", BAD)
    return code


def _print_nowhere() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def _leave(code: int) -> NoReturn:
    flush()
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        # The thread of a synchronous tool can't be stopped, and the interpreter would wait for it.
        os._exit(code)
    sys.exit(code)


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
