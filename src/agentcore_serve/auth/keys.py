"""Keys: 256 random bits each, of which the server keeps a SHA-256.

No slow hash: there is nothing to guess in a random key, and a slow one would let strangers keep the server busy.
"""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
import sqlite3
import time
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, final

from pydantic import SecretStr

from agentcore_serve.auth.identity import DEFAULT_OWNER, LOCAL, SCOPES, Identity, Scope, parse_scopes
from agentcore_serve.database import Database

FILE_KEY_ID: Final = "file"
"""The id of the one key that a file holds."""

SHORTEST_FILE_KEY: Final = 32

_KEY: Final = re.compile(r"(ac_[0-9a-f]{12})_[0-9a-f]{64}")
_FILE_KEY: Final = re.compile(rf"[!-~]{{{SHORTEST_FILE_KEY},512}}")
_ANY_SECRET: Final = re.compile(r"(ac[pst]?_[0-9a-f]{12})_?[0-9a-f]+")
_TOUCH_SECONDS: Final = 60.0


class KeyRecord(NamedTuple):
    """A key as lists show it."""

    id: str
    name: str
    owner: str
    scopes: frozenset[Scope]
    created: datetime
    last_used: datetime | None
    expires: datetime | None
    revoked: datetime | None


class ValidKey(NamedTuple):
    """A key that is neither revoked nor expired."""

    identity: Identity
    digest: bytes

    def __repr__(self) -> str:
        return f"ValidKey({self.identity.key_id!r})"


def digest_of(secret: str) -> bytes:
    """Return what the server keeps of a secret."""
    return hashlib.sha256(secret.encode("utf-8", "surrogatepass")).digest()


def contains_key(text: str) -> bool:
    """Return whether a key stands in a text, such as a URL."""
    return _KEY.search(text) is not None


def mask_keys(text: str) -> str:
    """Replace the secret part of every key, code, ticket and cookie in a text."""
    return _ANY_SECRET.sub(r"\1_***", text)


def check_file_key(text: str) -> SecretStr:
    """Return the key that a file holds.

    Raises:
        ValueError: It is too short, or has characters that no header can hold.
    """
    key = text.strip()
    if _FILE_KEY.fullmatch(key) is None:
        raise ValueError(
            f"The key file must hold one key of {SHORTEST_FILE_KEY} to 512 visible ASCII characters, and nothing else. "
            "Make one: openssl rand -hex 32"
        )
    return SecretStr(key)


@final
class KeyStore:
    """Adds, lists, revokes and verifies keys."""

    def __init__(
        self, database: Database, *, file_key: SecretStr | None = None, clock: Callable[[], float] = time.time
    ) -> None:
        self._database = database
        self._file_digest = None if file_key is None else digest_of(file_key.get_secret_value())
        self._clock = clock
        self._touched: dict[str, float] = {}

    async def add(
        self,
        name: str,
        *,
        owner: str = DEFAULT_OWNER,
        scopes: Iterable[str] = SCOPES,
        expires: datetime | None = None,
    ) -> tuple[KeyRecord, SecretStr]:
        """Make a key. The secret is returned this once.

        Raises:
            ValueError: A scope is unknown, a name is empty or too long, or the key would have expired already.
        """
        now = self._clock()
        record = KeyRecord(
            f"ac_{secrets.token_hex(6)}",
            _check_name("name", name),
            _check_name("owner", owner),
            parse_scopes(scopes),
            _moment(now),
            None,
            expires,
            None,
        )
        if expires is not None and expires.timestamp() <= now:
            raise ValueError("The key would have expired already.")
        secret = f"{record.id}_{secrets.token_hex(32)}"
        row = (
            record.id,
            digest_of(secret),
            record.name,
            record.owner,
            " ".join(sorted(record.scopes)),
            now,
            None if expires is None else expires.timestamp(),
        )
        await self._database.run(
            lambda db: db.execute(
                "INSERT INTO keys (id, digest, name, owner, scopes, created, expires) VALUES (?, ?, ?, ?, ?, ?, ?)", row
            )
        )
        return record, SecretStr(secret)

    async def records(self, *, owner: str | None = None) -> list[KeyRecord]:
        """Return the keys, oldest first, those that are revoked or expired included; `owner` leaves out those of others."""
        rows = await self._database.run(
            lambda db: db.execute(
                "SELECT id, name, owner, scopes, created, last_used, expires, revoked FROM keys"
                " WHERE :owner IS NULL OR owner = :owner ORDER BY created, id",
                {"owner": owner},
            ).fetchall()
        )
        return [_record(row) for row in rows]

    async def revoke(self, key_id: str) -> bool:
        """Revoke a key for ever, and end its page sessions. Return False where there is no such key."""

        def revoke(db: sqlite3.Connection) -> bool:
            db.execute("DELETE FROM page_sessions WHERE key_id = ?", (key_id,))
            done = db.execute("UPDATE keys SET revoked = coalesce(revoked, ?) WHERE id = ?", (self._clock(), key_id))
            return done.rowcount > 0

        return await self._database.run(revoke)

    async def verify(self, key: str) -> ValidKey | None:
        """Return whose key this is, or None where it is wrong, revoked or expired."""
        digest = digest_of(key)
        if self._file_digest is not None and hmac.compare_digest(digest, self._file_digest):
            return await self.find(FILE_KEY_ID)
        shape = _KEY.fullmatch(key)
        valid = None if shape is None else await self.find(shape[1])
        if valid is None or not hmac.compare_digest(digest, valid.digest):
            return None
        await self._touch(valid.identity.key_id)
        return valid

    async def find(self, key_id: str) -> ValidKey | None:
        """Return a key by its id, or None where there is none, or it is revoked or expired."""
        if key_id == FILE_KEY_ID:
            return (
                None
                if self._file_digest is None
                else ValidKey(Identity(FILE_KEY_ID, DEFAULT_OWNER, frozenset(SCOPES)), self._file_digest)
            )
        if key_id == LOCAL.key_id:
            return ValidKey(LOCAL, b"")
        row = await self._database.run(
            lambda db: db.execute(
                "SELECT owner, scopes, digest FROM keys"
                " WHERE id = ? AND revoked IS NULL AND (expires IS NULL OR expires > ?)",
                (key_id, self._clock()),
            ).fetchone()
        )
        return None if row is None else ValidKey(Identity(key_id, row[0], parse_scopes(row[1].split())), row[2])

    async def has_any(self) -> bool:
        """Return whether anybody could come in: a key of a file, or one that is neither revoked nor expired."""
        if self._file_digest is not None:
            return True
        found = await self._database.run(
            lambda db: db.execute(
                "SELECT 1 FROM keys WHERE revoked IS NULL AND (expires IS NULL OR expires > ?) LIMIT 1",
                (self._clock(),),
            ).fetchone()
        )
        return found is not None

    async def find_first(self) -> str | None:
        """Return the id of the key that whoever starts the server has: the file's, else the oldest that may do everything."""
        if self._file_digest is not None:
            return FILE_KEY_ID
        for record in await self.records(owner=DEFAULT_OWNER):
            if record.scopes == frozenset(SCOPES) and await self.find(record.id) is not None:
                return record.id
        return None

    async def _touch(self, key_id: str) -> None:
        """Record the use of a key, to the minute: a write for each request would be the slowest part of it."""
        now = self._clock()
        if 0 <= now - self._touched.get(key_id, -_TOUCH_SECONDS) < _TOUCH_SECONDS:
            return
        self._touched[key_id] = now
        await self._database.run(lambda db: db.execute("UPDATE keys SET last_used = ? WHERE id = ?", (now, key_id)))


def _check_name(what: str, name: str) -> str:
    name = name.strip()
    if not (1 <= len(name) <= 200 and name.isprintable()):
        raise ValueError(f"The {what} of a key has 1 to 200 printable characters.")
    return name


def _moment(seconds: float) -> datetime:
    return datetime.fromtimestamp(seconds, UTC)


def _record(row: tuple[Any, ...]) -> KeyRecord:
    key_id, name, owner, scopes, created, *others = row
    last_used, expires, revoked = (None if each is None else _moment(each) for each in others)
    return KeyRecord(key_id, name, owner, parse_scopes(scopes.split()), _moment(created), last_used, expires, revoked)
