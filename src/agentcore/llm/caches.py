"""Caches of encoded values, by identity.

A conversation sends its model the same message objects in each request, and a few more. An encoding is found by the
identity of its value and dropped with it: nothing grows, nothing expires.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from operator import call, is_
from typing import Any, Generic, TypeVar
from weakref import ref

from agentcore.messages import Message

T = TypeVar("T", bound=object)
R = TypeVar("R")


class IdentityCache(Generic[T, R]):
    """A function of a frozen value that is computed once per object."""

    def __init__(self, make: Callable[[T], R]) -> None:
        self._make = make
        self._found: dict[int, tuple[ref[T], R]] = {}

    def __call__(self, value: T) -> R:
        """Return the result for a value, computed once."""
        key = id(value)
        found = self._found.get(key)
        if found is not None and found[0]() is value:
            return found[1]
        made = self._make(value)
        # Dropped before the id can be another object's.
        self._found[key] = (ref(value, lambda _: self._found.pop(key, None)), made)
        return made

    def drop(self, value: T) -> None:
        """Keep it no longer."""
        self._found.pop(id(value), None)

    def __len__(self) -> int:
        return len(self._found)


class PrefixCache(Generic[T]):
    """The beginnings of lists that grow, each written once and joined by commas, as long as their first values live.

    A conversation's request begins as its last one did. Written value by value, it would cost more with each step.
    """

    def __init__(self, write: Callable[[Sequence[T]], bytes]) -> None:
        self._write = write
        self._found: dict[tuple[int, ...], _Prefix[T]] = {}

    def __call__(self, values: Sequence[T]) -> bytearray:
        """Return the encoded values; only those that are new since the last time are encoded."""
        if not values:
            return bytearray()
        # Two: many conversations may begin with the same words of the system.
        first = values[:2]
        key = tuple(map(id, first))
        found = self._found.get(key)
        if found is None:
            found = self._found[key] = _Prefix([ref(value, lambda _: self._found.pop(key, None)) for value in first])
        if not found.begins(values):
            found.written.clear()
            found.data.clear()
        if new := values[len(found.written) :]:
            data = self._write(new)
            if data and found.data:
                found.data += b","
            found.data += data
            found.written += map(ref, new)
        return found.data

    def __len__(self) -> int:
        return len(self._found)


class _Prefix(Generic[T]):
    def __init__(self, first: list[ref[T]]) -> None:
        self._first = first
        self.written: list[ref[T]] = []
        self.data = bytearray()

    def begins(self, values: Sequence[T]) -> bool:
        """Return whether these values begin with those that are encoded."""
        written = self.written
        return len(written) <= len(values) and all(map(is_, map(call, written), values))


class IdentityTupleCache:
    """Messages by the very objects that they were made of."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[tuple[ref[Any], ...], Message]] = {}

    def __call__(self, made_of: tuple[object, ...], make: Callable[[], Message]) -> Message:
        """Return the message for these objects, or make it."""
        key = id(made_of[0])
        found = self._found.get(key)
        if found is not None and _are(found[0], made_of):
            return found[1]
        made = make()

        def forget(dead: ref[Any]) -> None:
            # Not another one, that has come in its place since.
            if (entry := self._found.get(key)) is not None and entry[0][0] is dead:
                del self._found[key]

        first = ref(made_of[0], forget)
        self._found[key] = ((first, *(ref(other) for other in made_of[1:])), made)
        return made

    def __len__(self) -> int:
        return len(self._found)


def _are(kept: tuple[ref[Any], ...], objects: tuple[object, ...]) -> bool:
    return len(kept) == len(objects) and all(one() is other for one, other in zip(kept, objects, strict=True))
