"""The active branch: which events of a log count, now that its head may have moved."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from agentcore.events import Event, HeadMoved


def branch_ranges(events: Sequence[Event], moves: Sequence[int], head: int) -> list[tuple[int, int]]:
    """Return the inclusive ranges of seqs on the branch that ends at `head`, in order.

    Args:
        events: The log.
        moves: The seqs of all `HeadMoved` events in it, ascending.
        head: The last seq of the branch; 0 for an empty one.
    """
    ranges: list[tuple[int, int]] = []
    end = min(head, len(events))
    while end > 0:
        index = bisect_right(moves, end)
        if index == 0:
            ranges.append((1, end))
            break
        move = moves[index - 1]
        ranges.append((move, end))
        event = events[move - 1]
        assert isinstance(event, HeadMoved)
        end = min(event.to, move - 1)  # a move that leads forward makes no sense, but must not lead round in a circle
    ranges.reverse()
    return ranges


def events_of_branch(events: Sequence[Event], moves: Sequence[int], head: int) -> Iterator[Event]:
    """Go through the events of the branch that ends at `head`, in order."""
    for first, last in branch_ranges(events, moves, head):
        for seq in range(first, last + 1):
            yield events[seq - 1]
