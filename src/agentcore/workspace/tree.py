"""Which processes belong together, wherever they went.

A descendant is known by a mark in its environment, by its session, or by its parent: who leaves the group is still in the
session, who leaves the session (setsid, a daemon) still has the mark, and who throws its environment away still has a parent.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping
from typing import NamedTuple

__all__ = ["Seen", "descendants", "offspring"]


class Seen(NamedTuple):
    """One process, as it was when it was looked at. One that has ended and only waits to be collected is not seen."""

    parent: int
    group: int
    session: int
    age: float
    """Seconds since it was started."""
    marks: tuple[bytes, ...]
    """Of the processes it descends from, the outermost first."""
    uncertain: bool = False
    """Whether it may have marks that could not be read, because it was replacing its program all the time."""


def descendants(seen: Mapping[int, Seen], root: int | None, mark: bytes) -> set[int]:
    """Find a process that leads its session, and all its descendants, among those that were seen.

    Without `root` (its number may be somebody else's by now), they are found by the mark alone.
    """
    found = {pid for pid, each in seen.items() if root in {pid, each.session} or mark in each.marks}
    # A session is made by its first process and joined by nobody else, so all in it descend from that one.
    _grow(seen, found, lambda: {seen[pid].session for pid in found})
    return found


def offspring(seen: Mapping[int, Seen], start: Iterable[int]) -> set[int]:
    """Find some processes and their descendants that are linked to them by parents, or by a session they made."""
    found = {pid for pid in start if pid in seen}
    _grow(seen, found, lambda: found)
    return found


def _grow(seen: Mapping[int, Seen], found: set[int], sessions: Callable[[], set[int]]) -> None:
    # Whatever was marked by mistake, this process and its own session are never part of it.
    never, own_session = {0, 1, os.getpid()}, os.getsid(0)
    found -= never
    size = -1
    while size != len(found):
        size = len(found)
        theirs = sessions() - {0, 1, own_session}
        found |= {pid for pid, each in seen.items() if each.parent in found or each.session in theirs} - never
