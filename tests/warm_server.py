"""A Python that has imported what programs need, and forks for each of them. `warm_python` starts it and talks to it.

    python warm_server.py SOCKET MODULE ...

A message on the socket, behind its length in 4 bytes, is a program. With the length come its standard input, output and
error, and a pipe on which its process id and, at its end, its exit code are told. The program's process becomes the main
program of this interpreter: it is in a session of its own, and ends as any Python does, as far as anybody sees.
"""

from __future__ import annotations

import atexit
import fcntl
import gc
import json
import os
import runpy
import signal
import socket
import sys
import termios
import threading
from contextlib import suppress
from importlib import import_module
from typing import Any, TextIO, cast

from pydantic import BaseModel


def main() -> None:
    """Import, then fork until nobody is at the other end of the socket."""
    descriptor, *modules = sys.argv[1:]
    for name in modules:
        import_module(name)
    build_models()
    if threading.active_count() > 1:
        raise RuntimeError(f"A process with threads can't be forked: {threading.enumerate()}")
    gc.collect()
    gc.freeze()  # a collection in a fork would write to, and so copy, all that was imported
    # To count what is frozen is to go through all of it, and each fork would do that a few times.
    frozen = gc.get_freeze_count()
    gc.get_freeze_count = lambda: frozen
    program = serve(socket.socket(fileno=int(descriptor)))
    if program is None:
        return
    try:
        run(program)
    except SystemExit as ended:
        if ended.code is not None and not isinstance(ended.code, int):
            raise
        end(ended.code or 0)
    end(0)


def build_models() -> None:
    """Let pydantic do here what it would do in each fork, when a model is first used."""
    models = BaseModel.__subclasses__()
    for model in models:
        models += model.__subclasses__()
        if not model.__pydantic_complete__:
            model.model_rebuild(raise_errors=False)


def serve(door: socket.socket) -> dict[str, Any] | None:
    """Give, in the process of a program, that program; in this one nothing, when nobody asks any more."""
    while True:
        length, descriptors, _, _ = socket.recv_fds(door, 4, 4)
        collect(wait=not length)
        if not length:
            return None
        message = door.recv(int.from_bytes(length), socket.MSG_WAITALL)
        # Two processes: the program's, and its parent, who waits for it.
        if os.fork() == 0:
            door.close()
            *streams, report = descriptors
            pid = os.fork()
            if pid == 0:
                os.close(report)
                return {**json.loads(message), "streams": streams}
            for stream in streams:
                os.close(stream)
            os.write(report, f"{pid}\n".encode())
            _, status = os.waitpid(pid, 0)
            os.write(report, f"{os.waitstatus_to_exitcode(status)}\n".encode())
            os._exit(0)
        for each in descriptors:
            os.close(each)


def collect(*, wait: bool) -> None:
    """Take note of forks that have ended, or wait for all of them."""
    with suppress(ChildProcessError):
        while os.waitpid(-1, 0 if wait else os.WNOHANG)[0]:
            pass


def run(program: dict[str, Any]) -> None:
    """Be this program: what an interpreter does between its start and the first line."""
    os.setsid()
    for each in (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(each, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, descriptor in enumerate(program["streams"]):
        os.dup2(descriptor, number)
        os.close(descriptor)
    if program["tty"]:
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.environ.clear()
    os.environ.update(program["env"])
    os.chdir(program["cwd"])
    sys.stdin = sys.__stdin__ = opened(0, sys.stdin)
    sys.stdout = sys.__stdout__ = opened(1, sys.stdout)
    sys.stderr = sys.__stderr__ = opened(2, sys.stderr)
    name, *arguments = program["program"]
    if name == "-m":
        sys.path[0] = os.getcwd()
        sys.argv = ["-m", *arguments[1:]]
        runpy.run_module(arguments[0], run_name="__main__", alter_sys=True)
    else:
        sys.path[0] = os.path.dirname(name)
        sys.argv = [name, *arguments]
        runpy.run_path(name, run_name="__main__")


def end(code: int) -> None:
    """End as an interpreter does, but for taking all modules apart: that would write to, and so copy, all that was imported."""
    # As they are called when an interpreter ends, for which no names are published.
    cast("Any", threading)._shutdown()
    cast("Any", atexit)._run_exitfuncs()
    gc.collect()  # it warns of what was left open
    try:
        sys.stdout.flush()
        sys.stderr.flush()
    except (OSError, ValueError):
        sys.exit(code)  # which says so
    os._exit(code)


def opened(number: int, before: object) -> TextIO:
    """Open a standard stream as the interpreter did when it started."""
    stream = cast("TextIO", before)
    return open(
        number,
        "r" if number == 0 else "w",
        encoding=stream.encoding,
        errors=stream.errors,
        buffering=1 if number == 2 or (number == 1 and os.isatty(1)) else -1,
        closefd=False,
    )


if __name__ == "__main__":
    main()
