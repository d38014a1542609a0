"""Task groups whose exceptions leave as themselves, not as groups."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from typing import cast

import anyio
from anyio.abc import TaskGroup

__all__ = ["bare", "open_group"]


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
