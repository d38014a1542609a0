"""A store that lasts as long as the process: nothing is written anywhere, nothing is ever evicted."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

from anyio.lowlevel import checkpoint

from agentcore.errors import (
    BlobLost,
    ConversationExists,
    ConversationLocked,
    ConversationNotFound,
    StoreError,
)
from agentcore.ids import check_conversation_id
from agentcore.record.store import LogInfo, Record, check_append, page_logs

_HOLDER: Final = "another handle of this process"
_TICK: Final = timedelta(microseconds=1)


class _Shelf:
    __slots__ = ("blobs", "conversation_id", "created", "epoch", "format_version", "held", "modified", "records")

    def __init__(self, conversation_id: str, format_version: int, created: datetime) -> None:
        self.conversation_id = conversation_id
        self.format_version = format_version
        self.created = self.modified = created
        self.records: list[Record] = []
        self.blobs: dict[str, bytes] = {}
        self.held = False
        self.epoch = 0

    def read_blob(self, digest: str) -> bytes:
        try:
            return self.blobs[digest]
        except KeyError:
            raise BlobLost(f"conversation {self.conversation_id!r}", digest, "is missing") from None


class _MemoryLog:
    def __init__(self, shelf: _Shelf, *, write: bool) -> None:
        self._shelf = shelf
        self._write = write
        self._open = True
        if write:
            shelf.held = True
            shelf.epoch += 1
        self.epoch = shelf.epoch

    @property
    def conversation_id(self) -> str:
        return self._shelf.conversation_id

    @property
    def format_version(self) -> int:
        return self._shelf.format_version

    @property
    def repaired(self) -> str | None:
        return None

    async def read(self, after: int = 0) -> Sequence[Record]:
        await checkpoint()
        return tuple(self._shelf.records[max(after, 0) :])

    async def append(self, records: Sequence[Record]) -> None:
        await checkpoint()
        shelf = self._writable()
        check_append(shelf.conversation_id, records, len(shelf.records))
        shelf.records.extend(records)
        shelf.modified = datetime.now(UTC)

    async def write_blob(self, data: bytes) -> str:
        await checkpoint()
        digest = hashlib.sha256(data).hexdigest()
        self._writable().blobs[digest] = data
        return digest

    async def read_blob(self, digest: str) -> bytes:
        await checkpoint()
        return self._shelf.read_blob(digest)

    async def close(self) -> None:
        # First of all: the task that closes it may be cancelled.
        if self._open and self._write:
            self._shelf.held = False
        self._open = False
        await checkpoint()

    def _writable(self) -> _Shelf:
        if not (self._open and self._write):
            raise StoreError(f"The log of conversation {self.conversation_id!r} is not open for writing.")
        return self._shelf


class _MemoryTail:
    def __init__(self, shelves: Mapping[str, _Shelf], shelf: _Shelf, where: str) -> None:
        self._shelves = shelves
        self._shelf = shelf
        self._where = where
        self._seq = 0
        self.conversation_id = shelf.conversation_id
        self.format_version = shelf.format_version

    async def read(self) -> Sequence[Record]:
        await checkpoint()
        if self._shelves.get(self.conversation_id) is not self._shelf:
            raise ConversationNotFound(self.conversation_id, self._where)
        records = self._shelf.records[self._seq :]
        self._seq += len(records)
        return records

    async def read_blob(self, digest: str) -> bytes:
        await checkpoint()
        return self._shelf.read_blob(digest)


class MemoryStore:
    """Keeps logs in memory, encoded as they would be on disk, until the store itself is gone."""

    location = "memory"

    def __init__(self) -> None:
        self._shelves: dict[str, _Shelf] = {}
        self._newest = datetime.min.replace(tzinfo=UTC)

    async def create(self, conversation_id: str, *, format_version: int) -> _MemoryLog:
        """Begin a log and hold it for writing."""
        check_conversation_id(conversation_id)
        await checkpoint()
        if conversation_id in self._shelves:
            raise ConversationExists(conversation_id, self.location)
        # Later than all others, even if the clock does not say so: they are listed by it.
        self._newest = max(datetime.now(UTC), self._newest + _TICK)
        shelf = self._shelves[conversation_id] = _Shelf(conversation_id, format_version, self._newest)
        return _MemoryLog(shelf, write=True)

    async def open(self, conversation_id: str, *, write: bool = True) -> _MemoryLog:
        """Hold a log, for writing or for reading."""
        check_conversation_id(conversation_id)
        await checkpoint()
        shelf = self._find(conversation_id)
        if write and shelf.held:
            raise ConversationLocked(conversation_id, _HOLDER)
        return _MemoryLog(shelf, write=write)

    async def tail(self, conversation_id: str) -> _MemoryTail:
        """Find a log, to follow it."""
        check_conversation_id(conversation_id)
        await checkpoint()
        return _MemoryTail(self._shelves, self._find(conversation_id), self.location)

    async def list(self, *, after: str | None = None, limit: int | None = None) -> Sequence[LogInfo]:
        """List the logs, newest first."""
        await checkpoint()
        infos = (
            LogInfo(
                conversation_id=shelf.conversation_id,
                created=shelf.created,
                modified=shelf.modified,
                format_version=shelf.format_version,
            )
            for shelf in self._shelves.values()
        )
        return page_logs(infos, after, limit)

    async def holder(self, conversation_id: str) -> str | None:
        """Return who writes a log now."""
        check_conversation_id(conversation_id)
        await checkpoint()
        return _HOLDER if self._find(conversation_id).held else None

    async def delete(self, conversation_id: str) -> None:
        """Remove a log and its blobs."""
        check_conversation_id(conversation_id)
        await checkpoint()
        if self._find(conversation_id).held:
            raise ConversationLocked(conversation_id, _HOLDER)
        del self._shelves[conversation_id]

    def _find(self, conversation_id: str) -> _Shelf:
        try:
            return self._shelves[conversation_id]
        except KeyError:
            raise ConversationNotFound(conversation_id, self.location) from None
