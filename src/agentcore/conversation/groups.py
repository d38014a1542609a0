"""Task groups whose exceptions leave as themselves, not as groups."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import cast

import anyio
from anyio import get_cancelled_exc_class
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint_if_cancelled

__all__ = ["bare", "cancelled_itself", "is_cancelled", "open_group"]


def bare(error: BaseException) -> BaseException:
    """Give the one exception that a group is about; others are told in its notes."""
    if not isinstance(error, BaseExceptionGroup):
        return error
    leaves = list(_leaves(cast("BaseExceptionGroup[BaseException]", error)))
    # An interrupt from the keyboard, or the end of the process, goes before what it caused.
    first = next((leaf for leaf in leaves if not isinstance(leaf, Exception)), leaves[0])
    for leaf in leaves:
        if leaf is not first:
            first.add_note(f"At the same time: {type(leaf).__name__}: {leaf}")
    return first


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterator[BaseException]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(cast("BaseExceptionGroup[BaseException]", error))
        else:
            yield error


@asynccontextmanager
async def open_group() -> AsyncGenerator[TaskGroup]:
    """Open a task group; what a task or the body raises leaves bare."""
    try:
        async with anyio.create_task_group() as tasks:
            yield tasks
    except BaseExceptionGroup as group:
        error = bare(group)
        # The cause stays what it was: the group would only repeat it.
        raise error from error.__cause__


async def is_cancelled() -> bool:
    """Say whether a cancellation that was caught is one of a scope that is in force here.

    Code of users can raise the same exception by itself: on asyncio, whoever awaits a task that was cancelled does.
    """
    try:
        await checkpoint_if_cancelled()
    except get_cancelled_exc_class():  # noqa: ASYNC103 asking is the purpose: whoever caught the first one raises it
        return True  # noqa: ASYNC104 the same
    return False


def cancelled_itself(who: str, error: BaseException) -> RuntimeError:
    """Make the error of code that raised a cancellation which nobody asked for."""
    failed = RuntimeError(
        f"{who} raised {type(error).__name__} although nobody cancelled it. Most likely it awaited a task or a future "
        "that was cancelled; catch that where it is awaited."
    )
    failed.__cause__ = error
    return failed
