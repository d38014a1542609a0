"""`serve.sqlite`, as far as authentication goes: its tables, and its opening for a server or for `agentcore keys`."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from agentcore_serve.database import Database

DATABASE: Final = "serve.sqlite"
"""The name of the file, in the folder of the conversations."""

_TABLES: Final = """
CREATE TABLE IF NOT EXISTS keys (
    id TEXT PRIMARY KEY, digest BLOB NOT NULL, name TEXT NOT NULL, owner TEXT NOT NULL, scopes TEXT NOT NULL,
    created REAL NOT NULL, last_used REAL, expires REAL, revoked REAL
) STRICT;
CREATE TABLE IF NOT EXISTS page_sessions (
    digest BLOB PRIMARY KEY, key_id TEXT NOT NULL, key_digest BLOB NOT NULL, expires REAL NOT NULL
) STRICT;
"""


@asynccontextmanager
async def open_auth_database(path: str) -> AsyncGenerator[Database]:
    """Open the database, and make it where it is missing: readable by its user alone.

    Raises:
        OSError: The file cannot be made.
        sqlite3.DatabaseError: The file is no database, or is locked for long.
    """
    # A key that was revoked has to stay so.
    database = Database(Path(path), _TABLES, durable=True)
    await database.open()
    try:
        yield database
    finally:
        await database.close()  # noqa: ASYNC102 shielded there, and closing waits for nobody
