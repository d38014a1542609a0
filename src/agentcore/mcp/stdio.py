"""The stdio transport: a program that is talked to over its standard input and output, in whichever workspace it runs.

Above: mcp's client, which takes a pair of streams of messages. Below: `Workspace.open_process`. mcp has such a transport too; its
reader needs quadratic time for a long line and stops at a byte that is no UTF-8, and its processes run on this machine alone.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage

from agentcore._text import Mask
from agentcore.errors import WorkspaceError
from agentcore.logs import get_logger
from agentcore.mcp.ending import Ending
from agentcore.mcp.lines import LineBuffer, parse_line, render_line
from agentcore.workspace import Process, Workspace

_log = get_logger(__name__)

MOST_BYTES: Final = 64 * 1024 * 1024
"""The longest message that is taken in."""
_BUFFERED: Final = 1_000
"""Messages that may wait in a stream: a thousand calls that are cancelled at once do not wait for each other to say so."""
_FLUSH_SECONDS: Final = 1.0
_LEAVE_SECONDS: Final = 2.0
"""How long a server may take to end once its input is closed; then it is killed."""
_EXPLAIN_SECONDS: Final = 1.0
"""How long to wait for the exit code and the last words of a server that closed its output."""
_LONGEST_WORDS: Final = 2_000
_LONGEST_LINE: Final = 64 * 1024
"""Bytes of a line of the standard error that are looked at."""
_LONGEST_SECRET: Final = 8 * 1024

Incoming = SessionMessage | Exception
Streams = tuple[MemoryObjectReceiveStream[Incoming], MemoryObjectSendStream[SessionMessage]]

_ENDED: Final = (anyio.EndOfStream, anyio.ClosedResourceError, anyio.BrokenResourceError, WorkspaceError)
_GONE: Final = (anyio.ClosedResourceError, anyio.BrokenResourceError)


@asynccontextmanager
async def open_stdio(
    workspace: Workspace,
    command: Sequence[str],
    *,
    cwd: str | None,
    env: dict[str, str],
    ending: Ending,
    mask: Mask,
    name: str,
) -> AsyncGenerator[Streams]:
    """Start a server and yield its streams; leaving closes its input, waits a little, and kills what is left.

    Raises:
        WorkspaceError: It could not be started, or there is no such folder as `cwd`.
    """
    async with workspace.open_process(list(command), cwd=cwd, env=env) as process:
        to_client, incoming = anyio.create_memory_object_stream[Incoming](_BUFFERED)
        outgoing, from_client = anyio.create_memory_object_stream[SessionMessage](_BUFFERED)
        pipes = _Pipes(process, ending, mask, name)
        async with to_client, incoming, outgoing, from_client, anyio.create_task_group() as tasks:
            tasks.start_soon(pipes.read, to_client, name=f"output of MCP server {name}")
            tasks.start_soon(pipes.write, from_client, name=f"input of MCP server {name}")
            tasks.start_soon(pipes.read_errors, name=f"errors of MCP server {name}")
            tasks.start_soon(pipes.watch, name=f"end of MCP server {name}")
            try:
                yield incoming, outgoing
            finally:
                with anyio.move_on_after(_FLUSH_SECONDS + _LEAVE_SECONDS, shield=True):
                    incoming.close()  # what it still writes is read and dropped, so that it is not stuck in writing it
                    outgoing.close()
                    await pipes.leave()
                tasks.cancel_scope.cancel()


class _Pipes:
    """The streams of one process. Each method but `leave` is the whole of a task."""

    def __init__(self, process: Process, ending: Ending, mask: Mask, name: str) -> None:
        self._process = process
        self._ending = ending
        self._mask = mask
        self._name = name
        self._last_words = ""
        self._output = anyio.CancelScope()
        self._written = anyio.Event()
        self._errors_read = anyio.Event()
        self._output_read = anyio.Event()
        self._exited = anyio.Event()
        self._is_left = False

    async def read(self, to_client: MemoryObjectSendStream[Incoming]) -> None:
        buffer = LineBuffer()
        with self._output:
            try:
                while buffer.size <= MOST_BYTES:
                    for line in buffer.feed(await self._process.receive()):
                        await self._deliver(line, to_client)
                self._ending.set(f"it sent a message of more than {MOST_BYTES // 1024**2} MiB")
            except _ENDED:
                pass
        if self._ending.reason is None:
            await self._explain()
        self._output_read.set()
        # Nobody waits for an answer any more that does not come; and the reason is known by now.
        to_client.close()

    async def _deliver(self, line: bytes, to_client: MemoryObjectSendStream[Incoming]) -> None:
        if not line.strip():
            return
        message = parse_line(line)
        if message is None:
            shown = self._mask(line[:_LONGEST_WORDS].decode("utf-8", "replace"))[:200]
            _log.debug("line of an MCP server left out: it is not a message", server=self._name, line=shown)
            return
        with suppress(*_GONE):  # it is being left
            try:
                to_client.send_nowait(SessionMessage(message))
            except anyio.WouldBlock:
                await to_client.send(SessionMessage(message))

    async def _explain(self) -> None:
        if self._is_left:
            return  # it ends because its input was closed; why it was left says more
        with anyio.move_on_after(_EXPLAIN_SECONDS):
            await self._errors_read.wait()
            await self._exited.wait()
        code = self._process.returncode
        what = "it closed its output" if code is None else f"it exited with code {code}"
        self._ending.set(f"{what}: {self._last_words}" if self._last_words else what)

    async def watch(self) -> None:
        """End the reading soon after the process itself: what it left behind may hold its output open."""
        try:
            await self._process.wait()
        except _ENDED:
            return
        self._exited.set()
        with anyio.move_on_after(_EXPLAIN_SECONDS):
            await self._output_read.wait()
        self._output.cancel()

    async def write(self, from_client: MemoryObjectReceiveStream[SessionMessage]) -> None:
        try:
            async for message in from_client:
                await self._process.send(render_line(message.message))
        except _ENDED:
            # It may go on in silence: then nothing would ever answer.
            await self._explain()
            self._output.cancel()
        finally:
            from_client.close()
            self._written.set()

    async def read_errors(self) -> None:
        buffer = LineBuffer()
        is_rest = False  # of a line that was too long
        try:
            while True:
                for line in buffer.feed(await self._process.receive_stderr()):
                    if not is_rest:
                        self._hear(line)
                    is_rest = False
                if buffer.size > _LONGEST_LINE:
                    (line,) = buffer.feed(b"\n")
                    if not is_rest:
                        self._hear(line, is_cut=True)
                    is_rest = True
        except _ENDED:
            for line in buffer.feed(b"\n"):
                if not is_rest:
                    self._hear(line)
        self._errors_read.set()

    def _hear(self, line: bytes, *, is_cut: bool = False) -> None:
        words = self._mask(line.decode("utf-8", "replace")).strip()
        if is_cut:
            # At its end may be half of a secret, which can't be masked.
            words = words[:-_LONGEST_SECRET]
        if words:
            self._last_words = words[:500]
            _log.debug("MCP server wrote to its standard error", server=self._name, text=words[:_LONGEST_WORDS])

    async def leave(self) -> None:
        self._is_left = True
        with anyio.move_on_after(_FLUSH_SECONDS):
            await self._written.wait()
        try:
            await self._process.send_eof()
            with anyio.move_on_after(_LEAVE_SECONDS):
                await self._process.wait()
        except _ENDED:
            pass
