"""A store that lasts as long as the process: nothing is written anywhere, nothing is ever evicted."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from datetime import UTC, datetime

from anyio.lowlevel import checkpoint

from agentcore.errors import (
    BlobLost,
    ConversationExists,
    ConversationLocked,
    ConversationNotFound,
    StoreError,
)
from agentcore.ids import check_conversation_id
from agentcore.record.store import LogInfo, Record, check_append

__all__ = ["MemoryStore"]


class _Shelf:
    """What is kept of one conversation, open or not."""

    __slots__ = ("blobs", "conversation_id", "created", "format_version", "held", "modified", "records")

    def __init__(self, conversation_id: str, format_version: int) -> None:
        self.conversation_id = conversation_id
        self.format_version = format_version
        self.created = self.modified = datetime.now(UTC)
        self.records: list[Record] = []
        self.blobs: dict[str, bytes] = {}
        self.held = False


class _MemoryLog:
    def __init__(self, shelf: _Shelf, *, write: bool) -> None:
        self._shelf = shelf
        self._write = write
        self._open = True
        if write:
            shelf.held = True

    @property
    def conversation_id(self) -> str:
        return self._shelf.conversation_id

    @property
    def format_version(self) -> int:
        return self._shelf.format_version

    @property
    def repaired(self) -> str | None:
        return None

    async def read(self) -> Sequence[Record]:
        await checkpoint()
        return tuple(self._shelf.records)

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
        try:
            return self._shelf.blobs[digest]
        except KeyError:
            raise BlobLost(f"conversation {self.conversation_id!r}", digest, "is missing") from None

    async def close(self) -> None:
        # First of all: whoever closes it may be cancelled.
        if self._open and self._write:
            self._shelf.held = False
        self._open = False
        await checkpoint()

    def _writable(self) -> _Shelf:
        if not (self._open and self._write):
            raise StoreError(f"The log of conversation {self.conversation_id!r} is not open for writing.")
        return self._shelf


class MemoryStore:
    """Keeps logs in memory, encoded as they would be on disk, until the store itself is gone."""

    location = "memory"

    def __init__(self) -> None:
        self._shelves: dict[str, _Shelf] = {}

    async def create(self, conversation_id: str, *, format_version: int) -> _MemoryLog:
        """Begin a log and hold it for writing."""
        check_conversation_id(conversation_id)
        await checkpoint()
        if conversation_id in self._shelves:
            raise ConversationExists(conversation_id, self.location)
        shelf = self._shelves[conversation_id] = _Shelf(conversation_id, format_version)
        return _MemoryLog(shelf, write=True)

    async def open(self, conversation_id: str, *, write: bool = True) -> _MemoryLog:
        """Hold a log, for writing or for reading."""
        check_conversation_id(conversation_id)
        await checkpoint()
        shelf = self._find(conversation_id)
        if write and shelf.held:
            raise ConversationLocked(conversation_id, "another handle of this process")
        return _MemoryLog(shelf, write=write)

    async def list(self) -> Sequence[LogInfo]:
        """Tell of all logs, the newest first."""
        await checkpoint()
        return [
            LogInfo(
                conversation_id=shelf.conversation_id,
                created=shelf.created,
                modified=shelf.modified,
                format_version=shelf.format_version,
            )
            for shelf in reversed(self._shelves.values())
        ]

    async def delete(self, conversation_id: str) -> None:
        """Remove a log and its blobs."""
        check_conversation_id(conversation_id)
        await checkpoint()
        if self._find(conversation_id).held:
            raise ConversationLocked(conversation_id, "another handle of this process")
        del self._shelves[conversation_id]

    def _find(self, conversation_id: str) -> _Shelf:
        try:
            return self._shelves[conversation_id]
        except KeyError:
            raise ConversationNotFound(conversation_id, self.location) from None
