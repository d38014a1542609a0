"""The process of a command: its event loop, its signals, its errors and its exit code."""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Coroutine, Generator
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from types import FrameType
from typing import Any, NoReturn

import anyio
import psutil
from rich.text import Text

from agentcore.cli.console import BAD, WARN, flush, make_console, prepare_streams, print_line, print_text
from agentcore.cli.failures import explain, is_broken_pipe, output_error
from agentcore.cli.start import end_start
from agentcore.logs import configure_logging

_BROKEN_PIPE = 141


def execute(command: Callable[[], Coroutine[Any, Any, int]], *, debug: bool) -> NoReturn:
    """Run a command and exit with its code. Errors are printed as one sentence; with `debug`, as a traceback too.

    Args:
        command: Returns the coroutine. It is called before the event loop starts, so it may read files and the environment.
        debug: Whether to print tracebacks and log to standard error.
    """
    prepare_streams()
    if debug:
        configure_logging(json=False, level="DEBUG")
    try:
        # Closed, because it has not begun if Ctrl-C comes before the event loop is made.
        with closing(command()) as coroutine:
            end_start()

            async def main() -> int:
                with _second_interrupt_leaves():
                    return await coroutine

            code = anyio.run(main)
        sys.stdout.flush()
    except KeyboardInterrupt:
        signal.signal(signal.SIGINT, _leave_silently)
        console = make_console(stderr=True)
        print_line(console, Text("\nStopped." if console.is_terminal else "Stopped.", WARN))
        code = 130
    except Exception as error:
        code = _report(error, debug)
    _leave(code)


def _leave_silently(number: int, frame: FrameType | None) -> NoReturn:
    del frame
    os._exit(128 + number)


@contextmanager
def _second_interrupt_leaves() -> Generator[None]:
    """Let Ctrl-C cancel what runs, as it does in this event loop, once. Again, or while the loop closes, it ends the process.

    A `KeyboardInterrupt` at that time would break into asyncio's own code, which then warns of coroutines that never ran.
    """
    cancel = signal.getsignal(signal.SIGINT)
    if not callable(cancel):  # it is ignored, as in a script's background
        yield
        return

    def interrupt(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, leave)
        cancel(number, frame)

    def leave(number: int, frame: FrameType | None) -> None:
        del frame
        _leave_at_once(number, "Stopped.")

    signal.signal(signal.SIGINT, interrupt)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, leave)


def _report(error: Exception, debug: bool) -> int:
    if is_broken_pipe(error):
        # The reader is gone, as after `| head`: that is not an error.
        _print_nowhere()
        return _BROKEN_PIPE
    if output_error(error) is not None:
        _print_nowhere()  # the buffer would be written again at exit
    if debug:
        traceback.print_exception(error)
    sentence, code = explain(error)
    print_text(make_console(stderr=True), f"error: {sentence}", BAD)
    return code


def _print_nowhere() -> None:
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())


def _leave(code: int) -> NoReturn:
    flush()
    if any(not thread.daemon for thread in threading.enumerate() if thread is not threading.main_thread()):
        # The thread of a synchronous tool cannot be stopped, and the interpreter would wait for it.
        os._exit(code)
    sys.exit(code)


_ASKING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

OnInterrupt = Callable[[], Awaitable[None]]


class Interrupts:
    """The signals that end a program, and the action to take. Made by `catch_interrupts`."""

    def __init__(self, scope: anyio.CancelScope) -> None:
        self._scope = scope
        self._action: OnInterrupt | None = None
        self._muted = False
        self.caught: int | None = None
        """The signal that was received."""
        self.last_words: str | None = None
        """The message to print when a second signal ends the process."""

    @contextmanager
    def handled_by(self, action: OnInterrupt) -> Generator[None]:
        """Run this action on a signal; without an action everything is cancelled."""
        before, self._action = self._action, action
        try:
            yield
        finally:
            self._action = before

    @contextmanager
    def muted(self) -> Generator[None]:
        """Leave Ctrl-C to another program on this terminal, such as an editor."""
        self._muted = True
        try:
            yield
        finally:
            self._muted = False

    async def listen(self, signals: AsyncIterable[int]) -> None:
        """Wait for signals until cancelled."""
        async for number in signals:
            if self._muted and number == signal.SIGINT:
                continue
            if self.caught is not None:
                self._leave(number, None)
            self.caught = number
            # A plain handler from here on: the second signal has to work even if the event loop is stuck.
            signal.signal(signal.SIGINT, self._leave)
            if self._action is None:
                self._scope.cancel()
            else:
                await self._action()

    def _leave(self, number: int, frame: FrameType | None) -> None:
        del frame
        _leave_at_once(number, self.last_words)


def _leave_at_once(number: int, last_words: str | None) -> NoReturn:
    """Kill all children and exit immediately. The log survives that."""
    # Commands have their own process groups, which Ctrl-C does not reach.
    with suppress(psutil.Error):
        for child in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                child.kill()
    # The signal may have interrupted a write: then the buffer stays unwritten.
    with suppress(RuntimeError):
        flush()
    if last_words is not None:
        begin = "\n" if sys.stderr.isatty() else ""
        with suppress(OSError):
            os.write(sys.stderr.fileno(), f"{begin}{last_words}\n".encode(errors="backslashreplace"))
    os._exit(128 + number)


@asynccontextmanager
async def catch_interrupts() -> AsyncGenerator[Interrupts]:
    """Catch SIGINT, SIGTERM and SIGHUP while the context is open."""
    before = signal.getsignal(signal.SIGINT)
    # Signals that were ignored at the start (nohup, a background job of a script) stay ignored.
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
