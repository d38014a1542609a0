"""The active branch of a log whose head moves."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.events import Event, HeadMoved, PauseEvent
from agentcore.record import branch_ranges, events_of_branch


def log(*moves: int | None) -> tuple[list[Event], list[int]]:
    """A log in which a number moves the head there; the seqs of the moves."""
    events: list[Event] = [
        PauseEvent(seq=seq) if to is None else HeadMoved(seq=seq, to=to) for seq, to in enumerate(moves, 1)
    ]
    return events, [event.seq for event in events if isinstance(event, HeadMoved)]


_ = None


@pytest.mark.parametrize(
    ("moves", "head", "ranges"),
    [
        pytest.param((_, _, _), 3, [(1, 3)], id="without moves it is the log"),
        pytest.param((_, _, _), 2, [(1, 2)], id="up to its head"),
        pytest.param((_, _, _), 0, [], id="which may be before the first event"),
        pytest.param((_, _, _, 1, _), 5, [(1, 1), (4, 5)], id="what was left is not on it"),
        pytest.param((_, _, _, 1, _), 3, [(1, 3)], id="the other branch is there all the same"),
        pytest.param((_, _, 0, _), 4, [(3, 4)], id="a move to the very beginning"),
        pytest.param((_, _, _, 1, _, 3, _), 7, [(1, 3), (6, 7)], id="back to a branch that was left"),
        pytest.param((_, _, 1, _, _, 4, _), 7, [(1, 1), (3, 4), (6, 7)], id="to a point behind a move"),
        pytest.param((_, 2, _), 3, [(1, 1), (2, 3)], id="forward to itself"),
        pytest.param((_, 99, _), 3, [(1, 1), (2, 3)], id="forward"),
        pytest.param((_, -7, _), 3, [(2, 3)], id="before the beginning"),
    ],
)
def test_a_branch_is_these_ranges(moves: tuple[int | None, ...], head: int, ranges: list[tuple[int, int]]) -> None:
    assert branch_ranges(*log(*moves), head) == ranges


def by_definition(events: list[Event], head: int) -> list[int]:
    """The branch, one step back at a time: before a move comes what it led to, before another event the one before."""
    found: list[int] = []
    while head > 0:
        found.append(head)
        event = events[head - 1]
        head = min(event.to, head - 1) if isinstance(event, HeadMoved) else head - 1
    return found[::-1]


@given(st.lists(st.none() | st.integers(0, 30), max_size=30))
def test_every_branch_is_what_the_definition_says(moves: list[int | None]) -> None:
    events, seqs = log(*moves)
    for head in range(len(events) + 1):
        assert [event.seq for event in events_of_branch(events, seqs, head)] == by_definition(events, head)
