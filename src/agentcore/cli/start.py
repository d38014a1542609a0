"""The first moments of the command line: while the rest of it is imported, Ctrl-C ends it in one line."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from importlib import import_module
from types import FrameType


def main() -> None:
    """Run the command line."""
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # else it is ignored, as in a script's background
        with suppress(ValueError):  # not in the main thread, which alone gets signals
            signal.signal(signal.SIGINT, _stop)
    try:
        import_module("agentcore.cli.app").main()
    finally:
        end_start()


def end_start() -> None:
    """Let Ctrl-C raise `KeyboardInterrupt` again: the work begins."""
    if signal.getsignal(signal.SIGINT) is _stop:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _stop(number: int, frame: FrameType | None) -> None:
    # Not an exception: raised in the middle of an import it would come out as a traceback, or as another error.
    del frame
    begin = b"\n" if os.isatty(2) else b""  # behind the ^C
    os.write(2, begin + b"Stopped before the start.\n")
    os._exit(128 + number)
