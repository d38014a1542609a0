"""Reading on in a log, beside its writer: what was read once is not read again."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import final

from agentcore.errors import ConversationNotFound, LogDamaged, StoreError
from agentcore.record.files.blob import read_blob
from agentcore.record.files.disk import Disk
from agentcore.record.files.line import scan
from agentcore.record.files.meta import has_meta
from agentcore.record.files.thread import run_bounded
from agentcore.record.store import Record

__all__ = ["FileTail"]


@final
class FileTail:
    """What is appended to the log in a folder. Made by `FileStore.tail`; it holds nothing open."""

    def __init__(self, disk: Disk, folder: str, conversation_id: str, format_version: int, seconds: float) -> None:
        self._disk = disk
        self._folder = folder
        self._seconds = seconds
        self._offset = 0
        self.conversation_id = conversation_id
        self.format_version = format_version
        self.seq = 0
        """The last event that was read."""

    async def read(self) -> Sequence[Record] | None:
        """Give the records of all complete groups since the last time; None where the log was cut back behind what was read.

        After that the next time begins at the first event.

        Raises:
            LogDamaged: a line in the middle is not what was written.
        """
        return await run_bounded(self._seconds, f"Reading {self._folder!r}", self._read)

    async def read_blob(self, digest: str) -> bytes:
        """Give a large piece, checked against its hash."""
        what = f"Reading a blob in {self._folder!r}"
        return await run_bounded(self._seconds, what, read_blob, self._disk, self._folder, digest)

    def _read(self) -> Sequence[Record] | None:
        path = os.path.join(self._folder, "events.jsonl")
        try:
            # The newline before it as well: without that, the log is not the one that was read.
            data = self._disk.read(path, max(self._offset - 1, 0))
        except FileNotFoundError:
            if not has_meta(self._folder):
                raise ConversationNotFound(self.conversation_id, os.path.dirname(self._folder)) from None
            raise StoreError(f"{path!r} is missing: the events are gone. Restore it from a backup.") from None
        if self._offset:
            if not data.startswith(b"\n"):
                self._offset = self.seq = 0
                return None
            data = data[1:]
        found = scan(data, self.seq)
        if found.damage is not None:
            line, reason = found.damage
            raise LogDamaged(path, line, reason, f"agentcore log repair {self.conversation_id}")
        self._offset += found.length
        self.seq += len(found.records)
        return found.records
