"""Task groups: a call for each of many items, and the exceptions of a group, taken apart."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from typing import TypeVar, cast

import anyio

T = TypeVar("T")
R = TypeVar("R")

_AT_ONCE = 16


async def for_each(function: Callable[[T], Awaitable[R]], items: Sequence[T]) -> list[R]:
    """Call a function for each of the items, some of them at once, and return the results in their order."""
    results: dict[int, R] = {}
    limiter = anyio.CapacityLimiter(_AT_ONCE)

    async def call(place: int) -> None:
        async with limiter:
            results[place] = await function(items[place])

    async with anyio.create_task_group() as tasks:
        for place in range(len(items)):
            tasks.start_soon(call, place)
    return [results[place] for place in range(len(items))]


def leaf_exceptions(error: BaseException, own: Collection[BaseException] = ()) -> list[BaseException]:
    """Return the exceptions in a group, in their order; of an exception that is not a group, itself.

    Args:
        error: The group, or an exception.
        own: Groups among these count as one exception: what user code raised itself stays what it is.
    """
    leaves: list[BaseException] = []
    left = [error]  # and no recursion: a group may be nested deeper than Python's stack goes
    while left:
        each = left.pop()
        if any(each is one for one in own) or not isinstance(each, BaseExceptionGroup):
            leaves.append(each)
        else:
            left.extend(reversed(cast("BaseExceptionGroup[BaseException]", each).exceptions))
    return leaves
