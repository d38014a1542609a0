"""A small SQLite database: one connection, used by one worker thread at a time, off the event loop."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

import anyio
from anyio.to_thread import run_sync

T = TypeVar("T")

_BUSY_SECONDS: Final = 10.0


class Database:
    """A database at a path, or in memory. Its functions run in a thread, one after the other, each in one transaction.

    Args:
        path: The file; None keeps it in memory.
        schema: The statements that make its tables where they are not there yet.
        durable: True if what was committed has to survive a loss of power.
    """

    def __init__(self, path: Path | None, schema: str, *, durable: bool) -> None:
        self._path = path
        self._schema = schema
        self._durable = durable
        self._connection: sqlite3.Connection | None = None
        self._limiter = anyio.CapacityLimiter(1)

    async def open(self) -> None:
        """Open it, and make its tables.

        Raises:
            sqlite3.Error: It is no database, or can't be opened.
        """
        await self._in_thread(self._open)

    async def run(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function on the connection: all that it changes is kept, or nothing of it where it raises."""
        return await self._in_thread(lambda: self._run(function))

    async def read(self, function: Callable[[sqlite3.Connection], T]) -> T:
        """Run a function that only reads, in no transaction: one costs as much as a small query does."""

        def read() -> T:
            assert self._connection is not None, "the database is not open"
            return function(self._connection)

        return await self._in_thread(read)

    async def close(self) -> None:
        """Close it. Closing twice is fine."""
        with anyio.CancelScope(shield=True):
            await self._in_thread(self._close)

    async def _in_thread(self, function: Callable[[], T]) -> T:
        return await run_sync(function, limiter=self._limiter)

    def _open(self) -> None:
        if self._path is not None:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            # Readable by its user alone from the first moment: who owns what, and the hashes of keys.
            # Only where it is not there yet: closing a file drops all locks of this process on it, those of SQLite included,
            # and the next process that closes the database would delete the log that this one still writes to.
            with suppress(FileExistsError):
                os.close(os.open(self._path, os.O_CREAT | os.O_EXCL | os.O_RDWR | os.O_CLOEXEC, 0o600))
        # The threads change, and only one at a time uses it: the limiter sees to that.
        connection = sqlite3.connect(
            ":memory:" if self._path is None else self._path,
            timeout=_BUSY_SECONDS,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute(f"PRAGMA synchronous={'FULL' if self._durable else 'NORMAL'}")
            connection.executescript(self._schema)
        except BaseException:
            connection.close()
            raise
        self._connection = connection

    def _run(self, function: Callable[[sqlite3.Connection], T]) -> T:
        assert self._connection is not None, "the database is not open"
        self._connection.execute("BEGIN IMMEDIATE")
        try:
            answer = function(self._connection)
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")
        return answer

    def _close(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
