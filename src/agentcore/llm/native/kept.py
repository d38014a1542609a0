"""What values were encoded to, kept as long as the values live.

A conversation shows its model the same messages in each request, and a few more. A view gives the same objects for them,
so what was written once is found by identity, for as long as somebody has the message: nothing grows, nothing expires.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, TypeVar
from weakref import ref

__all__ = ["Kept"]

T = TypeVar("T", bound=object)
R = TypeVar("R")


class Kept(Generic[T, R]):
    """A function of a frozen value that is computed once per object."""

    def __init__(self, make: Callable[[T], R]) -> None:
        self._make = make
        self._found: dict[int, tuple[ref[T], R]] = {}

    def __call__(self, value: T) -> R:
        """Give what the value makes."""
        key = id(value)
        found = self._found.get(key)
        if found is not None and found[0]() is value:
            return found[1]
        made = self._make(value)
        # Dropped before the id can be another object's.
        self._found[key] = (ref(value, lambda _: self._found.pop(key, None)), made)
        return made

    def __len__(self) -> int:
        return len(self._found)
