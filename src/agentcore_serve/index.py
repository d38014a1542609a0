"""`index.sqlite`: the list of conversations with its filters and its search. A cache: deleted, it is made again.

Above: the hub, which puts in what changed. What is true is in the logs and in `serve.sqlite`.
"""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from anyio.to_thread import run_sync

from agentcore.wire.requests import ConversationInfo, ConversationPage
from agentcore_serve.database import Database
from agentcore_serve.refused import Refused

_VERSION: Final = 1
"""Of the tables, and of what is in them. An index of another version is made anew."""

_SCHEMA: Final = f"""
CREATE TABLE IF NOT EXISTS listed (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, owner TEXT NOT NULL, created REAL NOT NULL, status TEXT NOT NULL,
    modified REAL NOT NULL, seen REAL NOT NULL, info TEXT NOT NULL
) STRICT;
CREATE INDEX IF NOT EXISTS newest ON listed (owner, created DESC, id DESC);
CREATE INDEX IF NOT EXISTS newest_of_status ON listed (owner, status, created DESC, id DESC);
CREATE INDEX IF NOT EXISTS oldest ON listed (modified);
CREATE TABLE IF NOT EXISTS tags (number INTEGER NOT NULL, tag TEXT NOT NULL, PRIMARY KEY (tag, number)) STRICT, WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS tags_of ON tags (number);
CREATE VIRTUAL TABLE IF NOT EXISTS words USING fts5 (text, tokenize = 'unicode61 remove_diacritics 2');
PRAGMA user_version = {_VERSION};
"""

NOBODY: Final = ""
"""The owner of conversations that another program made."""


class Listed(NamedTuple):
    """A conversation as the index takes it."""

    info: ConversationInfo
    seen: float
    """When its log was looked at. One that changed since is read again."""
    text: str | None = None
    """The words that can be searched; None leaves them as they are."""


class Page(NamedTuple):
    """A page of the list, the newest first."""

    bodies: Sequence[str]
    """Each conversation's `ConversationInfo`, as JSON."""
    next: str | None
    """The cursor of the next page."""

    def encode(self) -> bytes:
        """Return a `ConversationPage` as JSON, without reading what is in it."""
        return f'{{"items":[{",".join(self.bodies)}],"next":{json.dumps(self.next)}}}'.encode()

    def read(self) -> ConversationPage:
        """Return it as a value."""
        return ConversationPage(
            items=tuple(ConversationInfo.model_validate_json(body) for body in self.bodies), next=self.next
        )


class ConversationIndex:
    """The index of all conversations of a store.

    Args:
        path: The file; None keeps it in memory.
    """

    def __init__(self, path: Path | None) -> None:
        self._path = path
        self._database = Database(path, _SCHEMA, durable=False)

    async def open(self) -> None:
        """Open it, empty where there is none, where it is of another version, or where it is damaged."""
        path = self._path
        if path is not None and not await run_sync(_is_usable, path):
            await run_sync(_remove, path)
        await self._database.open()

    async def close(self) -> None:
        """Close it."""
        await self._database.close()

    async def put(self, listed: Sequence[Listed]) -> None:
        """Add conversations, or take what changed of them."""

        def put(connection: sqlite3.Connection) -> None:
            for each in listed:
                _put(connection, each)

        if listed:
            await self._database.run(put)

    async def remove(self, conversation_id: str) -> None:
        """Forget a conversation."""

        def remove(connection: sqlite3.Connection) -> None:
            found = connection.execute("SELECT number FROM listed WHERE id = ?", (conversation_id,)).fetchone()
            if found is not None:
                connection.execute("DELETE FROM listed WHERE number = ?", found)
                connection.execute("DELETE FROM tags WHERE number = ?", found)
                connection.execute("DELETE FROM words WHERE rowid = ?", found)

        await self._database.run(remove)

    async def seen(self) -> dict[str, float]:
        """Return when the log of each conversation was looked at."""
        return await self._database.read(lambda connection: dict(connection.execute("SELECT id, seen FROM listed")))

    async def older_than(self, modified: float) -> list[str]:
        """Return the conversations in which nothing happened since."""
        return await self._database.read(
            lambda connection: [
                row[0] for row in connection.execute("SELECT id FROM listed WHERE modified < ?", (modified,))
            ]
        )

    async def page(
        self,
        owners: Sequence[str],
        *,
        cursor: str | None = None,
        limit: int = 50,
        status: str | None = None,
        tag: str | None = None,
        text: str | None = None,
    ) -> Page:
        """Return a page of the conversations of these owners.

        Args:
            owners: Whose.
            cursor: `Page.next` of the page before.
            limit: How many at most.
            status: Only those of this status.
            tag: Only those with this tag: its name, or `name=value`.
            text: Only those in which all of these words are, or words that begin with them.

        Raises:
            Refused: The cursor is not one (422).
        """
        conditions = [f"owner IN ({', '.join('?' * len(owners))})"]
        values: list[str | float] = [*owners]
        if cursor is not None:
            conditions.append("(created, id) < (?, ?)")
            values += _read_cursor(cursor)
        if status is not None:
            conditions.append("status = ?")
            values.append(status)
        if tag is not None:
            conditions.append("number IN (SELECT number FROM tags WHERE tag = ?)")
            values.append(tag)
        if text is not None:
            conditions.append("number IN (SELECT rowid FROM words WHERE words MATCH ?)")
            values.append(_match(text))
        statement = (
            f"SELECT info, created, id FROM listed WHERE {' AND '.join(conditions)} "  # noqa: S608 values are bound
            f"ORDER BY created DESC, id DESC LIMIT {int(limit) + 1}"
        )
        rows = await self._database.read(lambda connection: connection.execute(statement, values).fetchall())
        following = None
        if len(rows) > limit:
            rows = rows[:limit]
            following = f"{rows[-1][1]!r}~{rows[-1][2]}" if rows else None
        return Page([row[0] for row in rows], following)


def _put(connection: sqlite3.Connection, listed: Listed) -> None:
    info = listed.info
    created = info.created.timestamp() if info.created is not None else 0.0
    modified = info.modified.timestamp() if info.modified is not None else created
    (number,) = connection.execute(
        "INSERT INTO listed (id, owner, created, status, modified, seen, info) VALUES (?, ?, ?, ?, ?, ?, ?) ON CONFLICT (id) "
        "DO UPDATE SET owner = excluded.owner, created = excluded.created, status = excluded.status, "
        "modified = excluded.modified, seen = excluded.seen, info = excluded.info RETURNING number",
        (info.id, info.owner or NOBODY, created, info.status, modified, listed.seen, info.model_dump_json()),
    ).fetchone()
    tags = {tag for name, value in info.tags.items() for tag in (name, f"{name}={value}")}
    known = {row[0] for row in connection.execute("SELECT tag FROM tags WHERE number = ?", (number,))}
    if tags != known:
        connection.execute("DELETE FROM tags WHERE number = ?", (number,))
        connection.executemany("INSERT INTO tags (number, tag) VALUES (?, ?)", [(number, tag) for tag in tags])
    if listed.text is not None:
        connection.execute("DELETE FROM words WHERE rowid = ?", (number,))
        text = listed.text.encode(errors="replace").decode()  # SQLite takes no half of a surrogate pair
        connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (number, text))


def _match(text: str) -> str:
    """Return a query of FTS5 in which nothing that a person types is an operator."""
    words = [word.replace('"', '""') for word in text.replace("\0", " ").split()]
    return " ".join(f'"{word}"*' for word in words) or '""'


def _read_cursor(cursor: str) -> tuple[float, str]:
    created, _, conversation_id = cursor.partition("~")
    try:
        return float(created), conversation_id
    except ValueError:
        raise Refused(422, "bad_cursor", "The cursor is not the `next` of a page.") from None


def _is_usable(path: Path) -> bool:
    if not path.exists():
        return True
    try:
        connection = sqlite3.connect(path)
        try:
            (version,) = connection.execute("PRAGMA user_version").fetchone()
            (sound,) = connection.execute("PRAGMA quick_check(1)").fetchone()
        finally:
            connection.close()
    except sqlite3.DatabaseError:
        return False
    return version == _VERSION and sound == "ok"


def _remove(path: Path) -> None:
    for name in (path.name, f"{path.name}-wal", f"{path.name}-shm"):
        with suppress(FileNotFoundError):
            path.with_name(name).unlink()
