"""`serve.sqlite`, as far as authentication goes: its tables, and its opening for a server or for `agentcore keys`."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from agentcore.errors import AgentcoreError
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


class DatabaseDamaged(AgentcoreError):
    """`serve.sqlite` is damaged, or not a database."""

    def __init__(self, path: str, error: sqlite3.DatabaseError) -> None:
        super().__init__(
            f"{path} cannot be used: {error}. It has the keys, and the owners of the conversations: put a copy of it in its "
            "place. Removed, the server begins without keys, and the conversations that are there can only be watched."
        )


@asynccontextmanager
async def open_auth_database(path: str) -> AsyncGenerator[Database]:
    """Open the database, and make it where it is missing: readable by its user alone.

    Raises:
        OSError: The file cannot be made.
        DatabaseDamaged: The file is not a database.
        sqlite3.OperationalError: It is locked for long, or cannot be opened.
    """
    # A key that was revoked has to stay so.
    database = Database(Path(path), _TABLES, durable=True)
    try:
        await database.open()
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError as error:
        raise DatabaseDamaged(path, error) from error
    try:
        yield database
    finally:
        await database.close()  # noqa: ASYNC102 shielded there, and closing waits for nobody
