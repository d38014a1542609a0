"""Exception groups, taken apart."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast


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
