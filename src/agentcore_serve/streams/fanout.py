"""Waking many watchers without holding up the event loop: a slice at a time, with a checkpoint between."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice
from time import perf_counter
from typing import Protocol

from anyio.lowlevel import checkpoint

SLICE_SECONDS = 0.005
"""The time that the watchers of one slice may take of the event loop."""

_FEWEST, _MOST = 8, 512


class Wakes(Protocol):
    """Somebody who waits for news."""

    def wake(self) -> None:
        """Go and look."""
        ...


class FanOut:
    """Wakes watchers. How many make a slice is learned from how long they take."""

    def __init__(self, slice_seconds: float = SLICE_SECONDS) -> None:
        self._slice_seconds = slice_seconds
        self._size = 32

    @property
    def size(self) -> int:
        """How many watchers make a slice."""
        return self._size

    async def wake(self, watchers: Iterable[Wakes]) -> float:
        """Wake all of them; return the seconds that it took."""
        began = last = perf_counter()
        rest = iter(tuple(watchers))
        while part := tuple(islice(rest, self._size)):
            for watcher in part:
                watcher.wake()
            if len(part) < self._size:
                break  # the rest, which is less than a slice
            # The woken ones run before this task does again.
            await checkpoint()
            now = perf_counter()
            fitting = int(self._size * self._slice_seconds / max(now - last, 1e-6))
            # At most twice as many as before: one quick slice says little.
            self._size = min(max(fitting, _FEWEST), 2 * self._size, _MOST)
            last = now
        return last - began
