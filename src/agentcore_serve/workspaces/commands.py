"""`CommandBook`: what must not happen twice, by id, and how long it goes on when the client that waits for it is gone.

Above: the routes of commands and of appending. It knows no workspace: what is to be done is a function. A command belongs to
the server, not to the request: a client that was cut off may ask again, and gets the answer of the one that runs.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from typing import Any, Final, final

import anyio
from anyio.abc import TaskGroup
from starlette.types import Receive

from agentcore.workspace import CommandResult
from agentcore_serve.refused import Refused, draining

Key = tuple[str, str]
"""The workspace's id, and the id of what is done."""

# A repeat comes within a client's reconnect_seconds. The ids, which are small, stay for longer than the answers.
_MAX_IDS: Final = 100_000
_MAX_BYTES: Final = 64 * 1024 * 1024


def lost() -> Refused:
    """Return the answer to a repeated request about whose first attempt nothing is known."""
    return Refused(
        409,
        "command_lost",
        "This was begun before, and then cut off: it may have been carried out in part. It is not done again.",
    )


@final
class _Entry:
    def __init__(self) -> None:
        self.scope = anyio.CancelScope()
        self.done = anyio.Event()
        self.waiters = 0
        self.result: Any = None
        self.error: BaseException | None = None
        self.size = 0


@final
class CommandBook:
    """The commands that run, and those that ran, by id.

    Args:
        tasks: Where it runs.
        grace_seconds: How long something goes on whose client may ask again.
    """

    def __init__(self, tasks: TaskGroup, grace_seconds: float) -> None:
        self._tasks = tasks
        self._grace = grace_seconds
        self._entries: OrderedDict[Key, _Entry] = OrderedDict()
        self._bytes = 0
        self._ended = False

    def end(self) -> None:
        """End what runs, and begin nothing more: who waits for it is told that it was cut off."""
        self._ended = True
        for entry in self._entries.values():
            entry.scope.cancel("the server ends")

    async def do(
        self,
        key: Key,
        function: Callable[[], Awaitable[Any]],
        receive: Receive,
        *,
        wait: float | None,
        ends: bool = True,
    ) -> Any:
        """Do something once, and return its result; None if it still runs after `wait` seconds.

        Args:
            key: What it is known by.
            function: Does it.
            receive: Of the request, whose body was read: it says when the client has left.
            wait: How long to wait. None: to its end, and it ends at once when the client leaves.
            ends: The client's leaving ends it.

        Raises:
            Refused: It was begun and cut off, or its answer is too old (409). The server is about to end (503).
        """
        entry = self._entries.get(key)
        if entry is None:
            if self._ended:
                raise draining()
            entry = self._entries[key] = _Entry()
            self._tasks.start_soon(self._carry_out, entry, function)
        entry.waiters += 1
        entry.scope.deadline = math.inf
        try:
            async with anyio.create_task_group() as waiting:
                waiting.start_soon(_watch, receive, waiting.cancel_scope)
                with anyio.move_on_after(wait):
                    await entry.done.wait()
                waiting.cancel_scope.cancel()
        finally:
            entry.waiters -= 1
            if ends and not entry.waiters:
                entry.scope.deadline = anyio.current_time() + (0.0 if wait is None else self._grace)
        if not entry.done.is_set():
            return None
        if entry.error is not None:
            raise entry.error
        return entry.result

    async def cancel(self, key: Key) -> None:
        """End something, and wait for its end. If it was not begun yet, it will not be."""
        entry = self._entries.get(key)
        if entry is None:
            entry = self._entries[key] = _Entry()
            self._finish(entry, error=lost())
            return
        entry.scope.cancel()
        await entry.done.wait()

    async def _carry_out(self, entry: _Entry, function: Callable[[], Awaitable[Any]]) -> None:
        error: BaseException | None = lost()
        result: Any = None
        try:
            with entry.scope:
                try:
                    result, error = await function(), None
                except Exception as raised:
                    error = raised
        finally:
            self._finish(entry, result=result, error=error)

    def _finish(self, entry: _Entry, *, result: Any = None, error: BaseException | None = None) -> None:
        entry.result, entry.error = result, error
        entry.size = _size(result)
        self._bytes += entry.size
        entry.done.set()
        for each in list(self._entries.values()) if self._bytes > _MAX_BYTES else ():
            if self._bytes <= _MAX_BYTES:
                break
            if each.size and not each.waiters:
                self._bytes -= each.size
                each.size, each.result, each.error = 0, None, lost()
        while len(self._entries) > _MAX_IDS and next(iter(self._entries.values())).done.is_set():
            self._bytes -= self._entries.popitem(last=False)[1].size


def _size(result: object) -> int:
    if not isinstance(result, CommandResult):
        return 0
    return sum(len(output.head) + len(output.tail) for output in (result.out, result.err))


async def _watch(receive: Receive, waiting: anyio.CancelScope) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    waiting.cancel("the client has left")
