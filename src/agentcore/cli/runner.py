"""From a command's coroutine to the end of the process: one event loop, errors as sentences, the exit code."""

from __future__ import annotations

import os
import sys
import threading
import traceback
from collections.abc import Callable, Coroutine
from typing import Any, NoReturn

import anyio

from agentcore.cli.console import BAD, flush, make_console, prepare_streams, say_words
from agentcore.cli.failures import explain, is_broken_pipe, of_the_output
from agentcore.logs import configure_logging

__all__ = ["execute"]

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
