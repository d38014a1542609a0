"""Waiting in the order of coming."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio

__all__ = ["Turns"]


class Turns:
    """A line in which one stands in front. Who gives up leaves it, and the one behind moves up."""

    def __init__(self) -> None:
        self._line: deque[anyio.Event] = deque()

    def __len__(self) -> int:
        return len(self._line)

    @asynccontextmanager
    async def front(self) -> AsyncGenerator[None]:
        """Wait until one stands in front, and stay there for the block."""
        mine = anyio.Event()
        self._line.append(mine)
        try:
            if self._line[0] is not mine:
                await mine.wait()
            yield
        finally:
            self._line.remove(mine)
            if self._line:
                self._line[0].set()
