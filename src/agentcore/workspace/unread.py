"""`UnreadBytes`: what came of a stream and was not read yet, for processes whose output arrives in messages."""

from __future__ import annotations

from typing import final

import anyio
from anyio.lowlevel import checkpoint


@final
class UnreadBytes:
    """The unread bytes of one stream: never more than `limit`. Added by one task, taken by another."""

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._data = bytearray()
        self._over: Exception | None = None
        self._closed = False
        self._news = anyio.Event()

    def add(self, data: bytes) -> None:
        """Add what came.

        Raises:
            OverflowError: It is more than there is room for: the other side does not keep to what it may send.
        """
        if len(self._data) + len(data) > self._limit:
            raise OverflowError("it sent more than was asked for")
        self._data += data
        self._news.set()

    def end(self, error: Exception | None = None) -> None:
        """Raise this, or `anyio.EndOfStream`, when all has been taken. The first end counts."""
        if self._over is None:
            self._over = error or anyio.EndOfStream()
        self._news.set()

    def close(self) -> None:
        """Raise `anyio.ClosedResourceError` from now on."""
        self._closed = True
        self._data.clear()
        self._news.set()

    async def take(self, max_bytes: int) -> bytes:
        """Wait for bytes, and take at most so many."""
        await checkpoint()
        while True:
            if self._closed:
                raise anyio.ClosedResourceError
            if self._data:
                data = bytes(self._data[:max_bytes])
                del self._data[:max_bytes]
                return data
            if self._over is not None:
                raise self._over
            self._news = anyio.Event()
            await self._news.wait()
