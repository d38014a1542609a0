"""The conversations of a server in `serve.sqlite`: whose each is, and how it is opened again.

Not a cache: a log has no owner, no id of a workspace, and no profile. A row is written before its log is made, so that no
log is ever nobody's; a row whose log was never made is removed at the next start.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Collection, Sequence
from typing import Final, NamedTuple

from agentcore_serve.database import Database

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS conversations (
    id TEXT PRIMARY KEY, owner TEXT NOT NULL, digest TEXT NOT NULL, spec TEXT NOT NULL, profile TEXT, workspace TEXT,
    is_local INTEGER NOT NULL, created REAL NOT NULL, is_made INTEGER NOT NULL DEFAULT 0,
    is_open INTEGER NOT NULL DEFAULT 0, restarts INTEGER NOT NULL DEFAULT 0, last_reply INTEGER NOT NULL DEFAULT 0
) STRICT;
"""


class ConversationRow(NamedTuple):
    """One conversation of the server's."""

    id: str
    owner: str
    digest: str
    """Of what it was created with: the same id again has to come with the same."""
    spec: str
    """The spec that it was created with, as JSON, without secrets and keys."""
    profile: str | None
    """The server's agent that works in it; None where a client brought it."""
    workspace: str | None
    """The id of its workspace."""
    is_local: bool
    """True if it works on this machine, as the server's user."""
    created: float
    is_made: bool = False
    """True once its log is there, with all that it was created with."""
    is_open: bool = False
    """True while it is open. Still so at a start: the server was killed, or ended while it worked."""
    restarts: int = 0
    """How often it was continued after a crash since the model last replied."""
    last_reply: int = 0
    """The seq of the model's newest reply when it was last continued."""


class ConversationRecords:
    """The rows, each call in a transaction that is durable when it returns."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def find(self, conversation_id: str) -> ConversationRow | None:
        """Return the row of a conversation."""
        found = await self._select("id = ?", conversation_id)
        return found[0] if found else None

    async def all(self) -> Sequence[ConversationRow]:
        """Return all rows."""
        return await self._select("TRUE")

    async def insert(self, row: ConversationRow, *, shared_user: bool) -> str | None:
        """Add a conversation, or return the other owner of a conversation on this machine and add nothing."""

        def insert(connection: sqlite3.Connection) -> str | None:
            if row.is_local and not shared_user:
                other = connection.execute(
                    "SELECT owner FROM conversations WHERE is_local AND owner <> ? LIMIT 1", (row.owner,)
                ).fetchone()
                if other is not None:
                    return str(other[0])
            places = ", ".join("?" * len(row))
            connection.execute(f"INSERT INTO conversations ({', '.join(row._fields)}) VALUES ({places})", row)  # noqa: S608 names of fields
            return None

        return await self._database.run(insert)

    async def update(self, conversation_id: str, **fields: str | float | None) -> None:
        """Change fields of a row, by their names."""
        changes = ", ".join(f"{name} = ?" for name in fields)
        statement = f"UPDATE conversations SET {changes} WHERE id = ?"  # noqa: S608 names of fields
        await self._execute(statement, *fields.values(), conversation_id)

    async def mark_closed(self, *, but: Collection[str]) -> None:
        """Note that the server ended in peace: nothing has to be continued, except for these."""

        def mark(connection: sqlite3.Connection) -> None:
            connection.execute("UPDATE conversations SET is_open = 0 WHERE is_open")
            connection.executemany("UPDATE conversations SET is_open = 1 WHERE id = ?", [(each,) for each in but])

        await self._database.run(mark)

    async def delete(self, conversation_id: str) -> None:
        """Remove a row; nothing where there is none."""
        await self._execute("DELETE FROM conversations WHERE id = ?", conversation_id)

    async def _execute(self, statement: str, *values: str | float | None) -> None:
        await self._database.run(lambda connection: connection.execute(statement, values))

    async def _select(self, condition: str, *values: str) -> list[ConversationRow]:
        statement = f"SELECT {', '.join(ConversationRow._fields)} FROM conversations WHERE {condition}"  # noqa: S608 not a user's

        def select(connection: sqlite3.Connection) -> list[ConversationRow]:
            return [_read(row) for row in connection.execute(statement, values)]

        return await self._database.read(select)


def _read(row: tuple[object, ...]) -> ConversationRow:
    found = ConversationRow(*row)  # pyright: ignore[reportArgumentType] - STRICT tables keep the types
    return found._replace(is_local=bool(found.is_local), is_made=bool(found.is_made), is_open=bool(found.is_open))
