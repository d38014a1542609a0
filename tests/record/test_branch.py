"""The active branch of a log whose head moves."""

from __future__ import annotations

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


def test_without_moves_a_branch_is_the_log_up_to_its_head() -> None:
    events, moves = log(None, None, None)
    assert branch_ranges(events, moves, 3) == [(1, 3)]
    assert branch_ranges(events, moves, 2) == [(1, 2)]
    assert branch_ranges(events, moves, 0) == []


def test_after_a_move_what_was_left_is_not_on_the_branch() -> None:
    events, moves = log(None, None, None, 1, None)
    assert branch_ranges(events, moves, 5) == [(1, 1), (4, 5)]
    assert branch_ranges(events, moves, 3) == [(1, 3)], "the other branch is there all the same"
    assert [event.seq for event in events_of_branch(events, moves, 5)] == [1, 4, 5]


def test_a_move_to_the_very_beginning_leaves_nothing_before_it() -> None:
    events, moves = log(None, None, 0, None)
    assert branch_ranges(events, moves, 4) == [(3, 4)]


def test_a_move_back_to_a_branch_that_was_left_takes_it_up_again() -> None:
    events, moves = log(None, None, None, 1, None, 3, None)
    assert branch_ranges(events, moves, 7) == [(1, 3), (6, 7)]


def test_a_move_to_a_point_behind_a_move_follows_both() -> None:
    events, moves = log(None, None, 1, None, None, 4, None)
    assert branch_ranges(events, moves, 7) == [(1, 1), (3, 4), (6, 7)]


def test_a_move_that_leads_forward_ends_before_itself() -> None:
    for to in (2, 3, 99):
        events, moves = log(None, to, None)
        assert branch_ranges(events, moves, 3) == [(1, 1), (2, 3)]
    events, moves = log(None, -7, None)
    assert branch_ranges(events, moves, 3) == [(2, 3)]


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
