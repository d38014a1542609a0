"""`serve.sqlite`, as far as authentication goes: one connection, used in one worker thread at a time."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Final, TypeVar, final

from agentcore._threads import Threads

T = TypeVar("T")

DATABASE: Final = "serve.sqlite"
"""The name of the file, in the folder of the conversations."""

_THREADS: Final = Threads("serve_auth", 1)

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS keys (
    id TEXT PRIMARY KEY, digest BLOB NOT NULL, name TEXT NOT NULL, owner TEXT NOT NULL, scopes TEXT NOT NULL,
    created REAL NOT NULL, last_used REAL, expires REAL, revoked REAL
) STRICT;
CREATE TABLE IF NOT EXISTS page_sessions (
    digest BLOB PRIMARY KEY, key_id TEXT NOT NULL, key_digest BLOB NOT NULL, expires REAL NOT NULL
) STRICT;
"""


@final
class AuthDatabase:
    """The tables of keys and page sessions. Made by `open_auth_database`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    async def run(self, work: Callable[[sqlite3.Connection], T]) -> T:
        """Run statements in one transaction, in a worker thread."""

        def in_transaction() -> T:
            with self._connection:
                return work(self._connection)

        return await _THREADS.run(in_transaction)


@asynccontextmanager
async def open_auth_database(path: str) -> AsyncGenerator[AuthDatabase]:
    """Open the database, and make it where it is missing: readable by its user alone.

    Raises:
        OSError: The file cannot be made.
        sqlite3.DatabaseError: The file is no database, or is locked for long.
    """
    connection = await _THREADS.run(_connect, path)
    try:
        yield AuthDatabase(connection)
    finally:
        # Without a thread: none may be had where everything is being cancelled, and closing waits for nobody.
        connection.close()


def _connect(path: str) -> sqlite3.Connection:
    os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o600))
    connection = sqlite3.connect(path, timeout=10, check_same_thread=False)
    try:
        # `agentcore keys` writes while a server reads.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.executescript(_TABLES)
    except BaseException:
        connection.close()
        raise
    return connection
