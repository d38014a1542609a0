"""Programs in processes of their own that need not import everything again: forked from a Python that has.

What is forked is a real process (its own id, session, streams, signals, exit code), whose interpreter was started before.
A test of that start, of what is imported when, or of an environment that only it reads, starts a Python of its own.
"""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import socket
import subprocess
import sys
import termios
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import anyio
from anyio.abc import ByteReceiveStream

_SERVER = Path(__file__).parent / "warm_server.py"
_START_SECONDS = 120
_END_SECONDS = 10
_PIECE = 1 << 16

Place = str | os.PathLike[str]


def only_a_start_reads(env: Mapping[str, str]) -> bool:
    """Whether a variable is among these that an interpreter reads when it starts, and never again."""
    return any(name.startswith(("PYTHON", "LC_", "LANG", "COVERAGE_")) for name in env)


class Forked:
    """A process of a program."""

    def __init__(self, pid: int, report: _Report) -> None:
        self.pid = pid
        self._report = report
        self._code: int | None = None

    async def wait(self) -> int:
        """Wait until it ends, and give its exit code; the signal's negative number where a signal ended it."""
        if self._code is None:
            self._code = int(await self._report.line())
        return self._code

    async def kill(self) -> None:
        """End it, unless it has ended."""
        if self._code is None and not self._report.says_more():
            with suppress(ProcessLookupError):
                os.kill(self.pid, signal.SIGKILL)
        with anyio.fail_after(_END_SECONDS, shield=True):
            await self.wait()


@dataclass
class OnTerminal:
    """A process on a terminal that is ours to look at and to type into."""

    process: Forked
    _master: int

    @property
    def pid(self) -> int:
        """Its process id."""
        return self.process.pid

    async def receive(self) -> bytes:
        """Give what it wrote.

        Raises:
            anyio.EndOfStream: Nobody has the terminal open any more.
        """
        data = await _read(self._master)
        if not data:
            raise anyio.EndOfStream
        return data

    async def send(self, data: bytes) -> None:
        """Type this."""
        await _write(self._master, data)

    async def wait(self) -> int:
        """Wait until it ends, and give its exit code as a shell tells it."""
        code = await self.process.wait()
        return code if code >= 0 else 128 - code


class WarmPython:
    """Forks programs from a Python that has imported these modules. It is started when the first one is asked for.

    Args:
        modules: What to import.
        env: The environment to import it in; a program brings its own.
    """

    def __init__(self, *modules: str, env: Mapping[str, str]) -> None:
        self._modules = modules
        self._env = dict(env)
        self._door: socket.socket | None = None
        self._server: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._door is not None:
            self._door.close()
        if self._server is not None:
            self._server.wait(timeout=_END_SECONDS)

    @asynccontextmanager
    async def start(
        self, program: Sequence[str], *, env: Mapping[str, str], cwd: Place, streams: Sequence[int], tty: bool = False
    ) -> AsyncGenerator[Forked]:
        """Start a program, and kill it at the end if need be.

        Args:
            program: What would stand behind `python` on a command line: a file or `-m` and a module, and arguments.
            env: Its whole environment.
            cwd: Its working directory.
            streams: Its standard input, output and error; it gets duplicates.
            tty: Whether they are a terminal that is to be its own.
        """
        asked = {"program": list(program), "env": dict(env), "cwd": os.fspath(cwd), "tty": tty}
        with _descriptors() as pipes:
            told, tell = pipes.pipe()
            message, door = json.dumps(asked).encode(), self._opened_door()
            socket.send_fds(door, [len(message).to_bytes(4)], [*streams, tell])
            door.sendall(message)
            pipes.close(tell)
            report = _Report(told)
            with anyio.fail_after(_START_SECONDS):
                forked = Forked(int(await report.line()), report)
            try:
                yield forked
            finally:
                await forked.kill()

    @asynccontextmanager
    async def on_terminal(
        self, program: Sequence[str], *, env: Mapping[str, str], cwd: Place, size: tuple[int, int]
    ) -> AsyncGenerator[OnTerminal]:
        """Start a program on a terminal of so many columns and rows, and kill it at the end if need be."""
        with _descriptors() as pipes:
            master, slave = pipes.keep(*pty.openpty())
            columns, rows = size
            termios.tcsetwinsize(master, (rows, columns))
            async with self.start(program, env=env, cwd=cwd, streams=(slave, slave, slave), tty=True) as forked:
                pipes.close(slave)
                yield OnTerminal(forked, master)

    @asynccontextmanager
    async def telling(
        self, program: Sequence[str], *, env: Mapping[str, str], cwd: Place
    ) -> AsyncGenerator[tuple[Forked, Output]]:
        """Start a program that is given nothing and whose output is read as it comes; kill it at the end if need be."""
        with _descriptors() as pipes:
            nothing, out, output = *pipes.keep(os.open(os.devnull, os.O_RDONLY)), *pipes.pipe()
            async with self.start(program, env=env, cwd=cwd, streams=(nothing, output, 2)) as forked:
                pipes.close(nothing, output)
                yield forked, Output(out)

    async def run(
        self, program: Sequence[str], *, env: Mapping[str, str], cwd: Place, stdin: bytes = b""
    ) -> subprocess.CompletedProcess[bytes]:
        """Run a program to its end, on pipes."""
        written: dict[int, bytes] = {}

        async def read(descriptor: int) -> None:
            written[descriptor] = b""
            while data := await _read(descriptor):
                written[descriptor] += data

        async def write(descriptor: int) -> None:
            with suppress(BrokenPipeError):
                await _write(descriptor, stdin)
            pipes.close(descriptor)

        with _descriptors() as pipes:
            (in_, to), (out, output), (err, error) = pipes.pipe(), pipes.pipe(), pipes.pipe()
            async with self.start(program, env=env, cwd=cwd, streams=(in_, output, error)) as forked:
                pipes.close(in_, output, error)
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(write, to)
                    tasks.start_soon(read, out)
                    tasks.start_soon(read, err)
                code = await forked.wait()
        return subprocess.CompletedProcess(list(program), code, written[out], written[err])

    def _opened_door(self) -> socket.socket:
        if self._door is None:
            self._door, theirs = socket.socketpair()
            with theirs:
                self._server = subprocess.Popen(
                    [sys.executable, str(_SERVER), str(theirs.fileno()), *self._modules],
                    env=self._env,
                    stdin=subprocess.DEVNULL,
                    pass_fds=[theirs.fileno()],
                    start_new_session=True,
                )
        return self._door


class Output(ByteReceiveStream):
    """What a program writes, as it comes."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    async def receive(self, max_bytes: int = _PIECE) -> bytes:
        """Wait for the next piece, however large it is."""
        if data := await _read(self._descriptor):
            return data
        raise anyio.EndOfStream

    async def aclose(self) -> None:
        """Leave closing to who opened it."""


class _Report:
    """The lines that are told of a process."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._read = b""

    async def line(self) -> str:
        while b"\n" not in self._read:
            data = await _read(self._descriptor)
            if not data:
                raise RuntimeError("The Python that programs are forked from has ended; see above for why.")
            self._read += data
        line, _, self._read = self._read.partition(b"\n")
        return line.decode()

    def says_more(self) -> bool:
        return bool(self._read or select.select([self._descriptor], [], [], 0)[0])


class _Descriptors:
    """Descriptors that are open."""

    def __init__(self) -> None:
        self._open: set[int] = set()

    def keep(self, *descriptors: int) -> tuple[int, ...]:
        self._open.update(descriptors)
        return descriptors

    def pipe(self) -> tuple[int, int]:
        reading, writing = os.pipe()
        self.keep(reading, writing)
        return reading, writing

    def close(self, *descriptors: int) -> None:
        for each in descriptors:
            if each in self._open:
                self._open.discard(each)
                os.close(each)

    def close_all(self) -> None:
        self.close(*self._open)


@contextmanager
def _descriptors() -> Generator[_Descriptors]:
    """Close at the end what is still open."""
    descriptors = _Descriptors()
    try:
        yield descriptors
    finally:
        descriptors.close_all()


async def _read(descriptor: int) -> bytes:
    await anyio.wait_readable(descriptor)
    try:
        return os.read(descriptor, _PIECE)
    except OSError:  # EIO: a terminal that nobody has open any more
        return b""


async def _write(descriptor: int, data: bytes) -> None:
    os.set_blocking(descriptor, False)
    while data:
        await anyio.wait_writable(descriptor)
        with suppress(BlockingIOError):
            data = data[os.write(descriptor, data) :]
