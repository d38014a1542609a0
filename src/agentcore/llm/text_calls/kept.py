"""What messages were written as, kept as long as they live.

A conversation shows its model the same message objects in each call, and a few more. What they are written as has to be the
same objects too: whoever sends them keeps, in turn, what it encoded of each.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from weakref import ref

from agentcore.messages import Message

__all__ = ["Kept"]


class Kept:
    """Messages by the very objects that they were made of."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[tuple[ref[Any], ...], Message]] = {}

    def __call__(self, made_of: tuple[object, ...], make: Callable[[], Message]) -> Message:
        """Give what was made of these objects, or make it."""
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
