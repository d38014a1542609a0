"""Work at the engine that no cancellation may cut: what is being made would be left behind, unknown to everybody.

aiodocker knows asyncio only, and asyncio's own `task.cancel()` goes through anyio's shields; so such work runs in a task of its own,
which only its end ends. The one place that starts tasks of asyncio's.
"""

from __future__ import annotations

import asyncio  # noqa: TID251 - aiodocker runs nowhere else
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

import anyio
from anyio.lowlevel import checkpoint_if_cancelled

from agentcore.errors import WorkspaceError

T = TypeVar("T")


def check_loop() -> None:
    """Refuse every event loop but asyncio's.

    Raises:
        WorkspaceError: This is trio.
    """
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise WorkspaceError(
            "DockerWorkspace runs on asyncio only, because aiodocker does: start the program with backend='asyncio', or use BubblewrapWorkspace."
        ) from None


async def run_whole(work: Coroutine[Any, Any, T], undo: Callable[[], Coroutine[Any, Any, None]]) -> T:
    """Do something to its end, whoever cancels this meanwhile. If it fails, or this was cancelled, it is undone to the end as well.

    Both have to be bounded by themselves.
    """
    task = asyncio.create_task(work)
    interrupted = await _end_of(task)
    try:
        await checkpoint_if_cancelled()
        made = task.result()
    except BaseException:
        await finish(undo())  # noqa: ASYNC102 shielded there, and bounded by itself
        raise
    if interrupted is not None:
        await finish(undo())
        raise interrupted
    return made


async def finish(work: Coroutine[Any, Any, T]) -> T | None:
    """Do something to its end, whoever cancels this meanwhile; then the cancellation goes on. Its errors are raised."""
    task = asyncio.create_task(work)
    interrupted = await _end_of(task)
    if interrupted is not None:
        raise interrupted
    return task.result()


async def _end_of(task: asyncio.Task[Any]) -> asyncio.CancelledError | None:
    # Shielded, because anyio cancels again and again what waits in a cancelled scope.
    interrupted: asyncio.CancelledError | None = None
    with anyio.CancelScope(shield=True):  # noqa: ASYNC912 a task that has ended needs no waiting
        while not task.done():
            try:
                await asyncio.wait([task])
            except asyncio.CancelledError as error:  # noqa: ASYNC103 it goes on when the task has ended
                interrupted = error
    if interrupted is not None and not task.cancelled():
        task.exception()  # read, so that asyncio does not report it: the cancellation is what is raised
    return interrupted
