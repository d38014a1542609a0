"""Who waits for whom: exactly those that conflict, directly or by way of others, at a cost that grows with the calls."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.conversation.queue import Place, Queue
from agentcore.tools import Access, Resource, conflicts

ROOT = "/project"
PATHS = st.sampled_from([".", "a", "a/b", "a/b/c", "a/d", "e", "e/f", "/", "/elsewhere"])
MODES: st.SearchStrategy[Access] = st.sampled_from(["read", "write"])


def _file(path: str, mode: Access) -> Resource:
    return Resource.file(path, mode, root=ROOT)


RESOURCES = st.one_of(
    st.builds(_file, PATHS, MODES), st.builds(Resource.named, st.sampled_from(["browser", "account"]), MODES)
)


def links(places: Sequence[Place]) -> Iterator[tuple[Place, Place]]:
    """Give who waits for whom, with the places that bind others."""
    seen = set(places)
    left = list(places)
    while left:
        place = left.pop()
        for behind in place.behind:
            yield place, behind
            if behind not in seen:
                seen.add(behind)
                left.append(behind)


def reached(place: Place) -> set[Place]:
    return {behind for _, behind in links([place])}


@given(st.lists(st.lists(RESOURCES, max_size=3), max_size=12))
def test_a_call_comes_after_those_it_conflicts_with_and_those_they_come_after_and_no_others(
    wanted: list[list[Resource]],
) -> None:
    queue = Queue()
    places = [queue.enter(each) for each in wanted]
    expected: list[set[int]] = [set() for _ in wanted]
    for later, mine in enumerate(wanted):
        for earlier in reversed(range(later)):
            if conflicts(mine, wanted[earlier]):
                expected[later] |= {earlier} | expected[earlier]
    for later, place in enumerate(places):
        before = {number for number, each in enumerate(places) if place in reached(each)}
        assert before == expected[later]
        assert place.is_first == (not before)


@given(st.lists(st.lists(RESOURCES, max_size=3), min_size=1, max_size=12), st.randoms(use_true_random=False))
def test_whatever_order_calls_end_or_are_cancelled_in_none_is_first_before_its_turn(
    wanted: list[list[Resource]], dice: random.Random
) -> None:
    queue = Queue()
    places = [queue.enter(each) for each in wanted]
    order = list(range(len(wanted)))
    dice.shuffle(order)
    over: set[int] = set()
    clear: set[int] = set()
    for number in order:
        places[number].leave()
        over.add(number)
        for each in range(len(wanted)):
            before = {earlier for earlier in range(each) if conflicts(wanted[each], wanted[earlier])}
            if before <= clear and each in over:
                clear.add(each)
        for each, place in enumerate(places):
            before = {earlier for earlier in range(each) if conflicts(wanted[each], wanted[earlier])}
            assert place.is_first == (before <= clear)
    assert all(place.is_first for place in places)


SHAPES: dict[str, Callable[[int], Resource]] = {
    "all write everything": lambda _: Resource.workspace("write"),
    "half read everything, then half write files": lambda n: (
        Resource.workspace("read") if n < 1_000 else Resource.file(str(n), "write", root=ROOT)
    ),
    "half write files, then half read everything": lambda n: (
        Resource.file(str(n), "write", root=ROOT) if n < 1_000 else Resource.workspace("read")
    ),
    "one reads everything, the next writes a file": lambda n: (
        Resource.workspace("read") if n % 2 else Resource.file(str(n), "write", root=ROOT)
    ),
    "one writes everything, the next reads a file": lambda n: (
        Resource.workspace("write") if n % 2 else Resource.file(str(n), "read", root=ROOT)
    ),
}


@pytest.mark.parametrize("shape", SHAPES)
def test_two_thousand_calls_wait_for_each_other_by_a_few_links_each(shape: str) -> None:
    queue = Queue()
    places = [queue.enter([SHAPES[shape](number)]) for number in range(2_000)]
    assert sum(1 for _ in links(places)) <= 4 * len(places)
