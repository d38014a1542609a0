"""Who waits for whom among the calls of one reply: each for the earlier ones that it conflicts with.

They are found in a tree of the resources' paths. A call waits for its nearest predecessors only, and for what those wait
for by way of them; many that are waited for together are bound into one. So the work grows with the calls, not with their
pairs: a reply may have thousands.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import anyio

from agentcore.tools import Resource

__all__ = ["Place", "Queue"]


class Place:
    """A call's place in the queue. Whoever waits for it waits for those before it too, though its own call was cancelled."""

    __slots__ = ("_behind", "_left", "_turn", "_waits_for")

    def __init__(self) -> None:
        self._waits_for = 0
        self._behind: list[Place] = []
        self._left = False
        self._turn: anyio.Event | None = None

    @property
    def is_first(self) -> bool:
        """Whether nobody is before it."""
        return not self._waits_for

    @property
    def behind(self) -> Sequence[Place]:
        """The places that are waiting for this one, or were when it was over."""
        return self._behind

    async def turn(self) -> None:
        """Wait until all before it are over."""
        if self._waits_for:
            self._turn = self._turn or anyio.Event()
            await self._turn.wait()

    def leave(self) -> None:
        """Say that its call is over, or never will be."""
        if self._left:
            return
        self._left = True
        over: list[Place] = [] if self._waits_for else [self]
        while over:
            for place in over.pop().behind:
                place._waits_for -= 1
                if not place._waits_for:
                    if place._turn is not None:
                        place._turn.set()
                    if place._left:
                        over.append(place)

    def wait_for(self, others: Iterable[Place]) -> None:
        """Come after these, each named once."""
        for other in others:
            if not other._left or other._waits_for:
                other._behind.append(self)
                self._waits_for += 1


class _Node:
    """What a path's own resource, and what is in it, were asked for by those who have a place."""

    __slots__ = ("parts", "readers", "writer", "writers_within")

    def __init__(self) -> None:
        self.parts: dict[str, _Node] = {}
        self.writer: Place | None = None
        """The last one that writes it as a whole: everybody before comes before that."""
        self.readers: list[Place] = []
        """Those that read it as a whole, since then."""
        self.writers_within: list[Place] = []
        """Those that write a part of it, since then."""


class Queue:
    """Hands out places in the order of the calls."""

    def __init__(self) -> None:
        self._whole = _Node()

    def enter(self, wanted: Sequence[Resource]) -> Place:
        """Take the next place, for what a call touches."""
        place = Place()
        before: dict[Place, None] = {}
        for resource in wanted:
            before.update(dict.fromkeys(self._before(resource)))
        place.wait_for(before)
        for resource in wanted:
            self._note(place, resource)
        return place

    def _before(self, wanted: Resource) -> Iterator[Place]:
        """Give those that conflict, or others through which these are waited for."""
        node = self._whole
        for part in wanted.path:
            yield from _claimed(node, wanted)
            found = node.parts.get(part)
            if found is None:
                return
            node = found
        yield from _claimed(node, wanted)
        if wanted.mode == "read":
            yield from _bound(node.writers_within)
            return
        nodes = list(node.parts.values())
        while nodes:
            node = nodes.pop()
            yield from _claimed(node, wanted)
            nodes.extend(node.parts.values())

    def _note(self, place: Place, wanted: Resource) -> None:
        node = self._whole
        for part in wanted.path:
            if wanted.mode == "write":
                node.writers_within.append(place)
            node = node.parts.setdefault(part, _Node())
        if wanted.mode == "read":
            node.readers.append(place)
            return
        # Whoever meets one of these meets this one too, which comes after them.
        node.writer = place
        node.readers.clear()
        node.writers_within.clear()
        node.parts.clear()


def _claimed(node: _Node, wanted: Resource) -> Iterator[Place]:
    if node.writer is not None:
        yield node.writer
    if wanted.mode == "write":
        yield from _bound(node.readers)


def _bound(places: list[Place]) -> list[Place]:
    """Put one place in the place of many: over when all of them are."""
    if len(places) > 1:
        knot = Place()
        knot.wait_for(dict.fromkeys(places))
        knot.leave()
        places[:] = [knot]
    return list(places)
