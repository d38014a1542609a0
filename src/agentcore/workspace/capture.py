"""From a process to a result: feeding it, keeping what it writes in bounded memory, and clearing up behind it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Final, final

import anyio

from agentcore._groups import leaf_exceptions
from agentcore.workspace.protocol import Process
from agentcore.workspace.values import CommandResult, Output

# When all descendants have ended, what they wrote is there to be read; only one that could not be ended can hold this up.
_READ_ON_SECONDS: Final = 1.0


async def run_to_end(process: Process, *, stdin: bytes | None, max_output: int) -> CommandResult:
    """Wait for a process and give how it ended and what it wrote; what it leaves running is ended.

    Every workspace whose processes meet `Process` gets its `run` from this.

    Args:
        process: Just opened, without a terminal.
        stdin: What it can read.
        max_output: How many bytes to keep of each stream: half of them from the beginning, half from the end.
    """
    if max_output < 0:
        raise ValueError(f"max_output is a number of bytes, not {max_output}.")
    out, err = _Kept(max_output), _Kept(max_output)
    try:
        async with anyio.create_task_group() as feeding:
            feeding.start_soon(_feed, process, stdin)
            with anyio.CancelScope() as reading:
                async with anyio.create_task_group() as readers:
                    readers.start_soon(_keep, process.receive, out)
                    readers.start_soon(_keep, process.receive_stderr, err)
                    await process.wait()
                    await process.terminate()
                    reading.deadline = anyio.current_time() + _READ_ON_SECONDS
            feeding.cancel_scope.cancel()
    except ExceptionGroup as group:
        # One connection that breaks is one error, however many tasks used it.
        raise leaf_exceptions(group)[0] from None
    return CommandResult(exit_code=await process.wait(), out=out.output(), err=err.output())


async def _feed(process: Process, stdin: bytes | None) -> None:
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        if stdin:
            await process.send(stdin)
    # Also where it did not want to read all of it, as `head` does not.
    with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
        await process.send_eof()


async def _keep(receive: Callable[[], Awaitable[bytes]], kept: _Kept) -> None:
    try:
        while True:
            kept.add(await receive())
    except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
        return


@final
class _Kept:
    def __init__(self, limit: int) -> None:
        self._head_limit = limit - limit // 2
        self._tail_limit = limit // 2
        self._head = bytearray()
        self._tail = bytearray()
        self._omitted = 0

    def add(self, data: bytes) -> None:
        room = self._head_limit - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        # Not at each piece, since cutting off the front moves the rest.
        if len(self._tail) > 2 * self._tail_limit + 65536:
            self._cut()

    def output(self) -> Output:
        self._cut()
        if self._omitted:
            return Output(head=bytes(self._head), tail=bytes(self._tail), omitted=self._omitted)
        return Output(head=bytes(self._head + self._tail))

    def _cut(self) -> None:
        over = len(self._tail) - self._tail_limit
        if over > 0:
            del self._tail[:over]
            self._omitted += over
