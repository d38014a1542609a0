"""A process of this machine: its streams and its end."""

from __future__ import annotations

import errno
import io
import math
import os
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final, final

import anyio
from anyio.lowlevel import cancel_shielded_checkpoint, checkpoint, checkpoint_if_cancelled

from agentcore._threads import Threads
from agentcore.errors import WorkspaceError
from agentcore.workspace.launch import STARTS, LaunchSpec, Started, set_size, start
from agentcore.workspace.process_tree import CLOSE_SECONDS, ProcessTree, kill_tree

# As many as there are processes: each of these threads only waits for one of them to end.
_WAITS: Final = Threads("waits", math.inf)


@asynccontextmanager
async def open_local_process(spec: LaunchSpec) -> AsyncGenerator[LocalProcess]:
    """Start a process and hold it; leaving ends it, with all that it started."""
    process = LocalProcess(await start(spec), spec.mark)
    try:
        yield process
    finally:
        await process.aclose()


@final
class LocalProcess:
    """A process of this machine, as `Process` describes it. It is not collected before it is closed; see `ProcessTree`."""

    def __init__(self, started: Started, mark: str) -> None:
        self._started = started
        self._has_terminal = started.stderr is None
        self._tree = ProcessTree(started.process.pid, mark, started.stdin.fileno() if self._has_terminal else None)
        self._code: int | None = None
        self._closing = False
        self._closed = anyio.Event()

    @property
    def pid(self) -> int:
        return self._tree.pid

    @property
    def returncode(self) -> int | None:
        if self._code is None:
            self._code = _exit_code(self._started.process)
        return self._code

    async def send(self, data: bytes) -> None:
        await checkpoint_if_cancelled()
        left = memoryview(data)
        while left:
            descriptor = _descriptor(self._started.stdin)
            try:
                left = left[os.write(descriptor, left) :]
            except BlockingIOError:
                await anyio.wait_writable(descriptor)
            except OSError as error:
                raise anyio.BrokenResourceError from error
        # Others get their turn once the process has what it waits for.
        await cancel_shielded_checkpoint()

    async def send_eof(self) -> None:
        if self._has_terminal:
            await self.send(b"\x04")
        else:
            await checkpoint()
            _close(self._started.stdin)

    async def receive(self, max_bytes: int = 65536) -> bytes:
        return await _receive(self._started.stdout, max_bytes)

    async def receive_stderr(self, max_bytes: int = 65536) -> bytes:
        if self._started.stderr is None:
            await checkpoint()
            raise anyio.EndOfStream
        return await _receive(self._started.stderr, max_bytes)

    async def signal(self, signal: int) -> None:
        await checkpoint()
        if self._closed.is_set():
            return
        group = self._tree.foreground()
        try:
            os.killpg(group, signal)
        except ProcessLookupError:
            pass
        except PermissionError as error:
            raise WorkspaceError(f"Group {group} runs as another user: it can't get signal {signal}.") from error

    async def interrupt(self, *, started_within: float | None = None) -> bool:
        if not self._has_terminal:
            await self.terminate()
            return True
        await checkpoint()
        return self._closed.is_set() or await self._tree.interrupt(started_within)

    async def terminate(self) -> None:
        await checkpoint()
        await self._tree.terminate()

    async def resize(self, columns: int, rows: int) -> None:
        await checkpoint()
        if not self._has_terminal:
            raise WorkspaceError(f"Process {self.pid} has no terminal to resize. Open it with pty=True.")
        set_size(_descriptor(self._started.stdin), columns, rows)

    async def wait(self) -> int:
        await checkpoint()
        while (code := self.returncode) is None:
            await _until_exit(self._started.process)
        return code

    async def aclose(self) -> None:
        """End it, and let go of it. Closing twice is fine."""
        if self._closing:
            await self._closed.wait()
            return
        self._closing = True
        try:
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await self._tree.terminate()
        except BaseException:
            # Cancelled by asyncio itself, which no shield keeps out. A thread goes on even if that happens again.
            with anyio.move_on_after(CLOSE_SECONDS, shield=True):
                await STARTS.run(kill_tree, self.pid, self._tree.mark)
            raise
        finally:
            # Before it is collected, and then by itself only if it could not be ended.
            _ = self.returncode
            for stream in (self._started.stdin, self._started.stdout, self._started.stderr):
                if stream is not None:
                    _close(stream)
            self._tree.collected()
            self._started.process.poll()
            self._closed.set()


def _descriptor(stream: io.FileIO) -> int:
    if stream.closed:
        raise anyio.ClosedResourceError
    return stream.fileno()


def _close(stream: io.FileIO) -> None:
    if not stream.closed:
        # Wakes all who wait for it.
        anyio.notify_closing(stream.fileno())
        stream.close()


async def _receive(stream: io.FileIO, max_bytes: int) -> bytes:
    await checkpoint_if_cancelled()
    has_waited = False
    try:
        while True:  # noqa: ASYNC913 each turn but the last one waits
            descriptor = _descriptor(stream)
            try:
                data = os.read(descriptor, max_bytes)
            except BlockingIOError:
                await anyio.wait_readable(descriptor)
                has_waited = True
                continue
            except OSError as error:
                if error.errno == errno.EIO:
                    # Nobody has the other end of the terminal open any more.
                    raise anyio.EndOfStream from None
                raise anyio.BrokenResourceError from error
            if not data:
                raise anyio.EndOfStream
            return data
    finally:
        if not has_waited:
            # What was read is not lost to a cancellation.
            await cancel_shielded_checkpoint()


def _exit_code(process: subprocess.Popen[bytes]) -> int | None:
    if process.returncode is None and hasattr(os, "waitid"):
        try:
            ended = os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            # Somebody else in this program collects all children, or has the system forget them: how it ended is lost.
            return 255
        if ended is None:
            return None
        return ended.si_status if ended.si_code == os.CLD_EXITED else 128 + ended.si_status
    # macOS has waitid since Python 3.13 only; until then a process is collected when it ends.
    code = process.poll()
    return 128 - code if code is not None and code < 0 else code


async def _until_exit(process: subprocess.Popen[bytes]) -> None:
    try:
        descriptor = os.pidfd_open(process.pid)
    except (AttributeError, OSError):
        # Not Linux, or in a container that knows no pidfd.
        await _WAITS.run(_wait_in_thread, process, abandon_on_cancel=True)
        return
    try:
        await anyio.wait_readable(descriptor)
    finally:
        os.close(descriptor)


def _wait_in_thread(process: subprocess.Popen[bytes]) -> None:
    if hasattr(os, "waitid"):
        with suppress(ChildProcessError):
            os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    else:
        process.wait()
