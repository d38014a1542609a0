"""One conversation's folder, held open: `events.jsonl`, `meta.json`, `blobs/`, `lock`."""

from __future__ import annotations

import contextlib
import os
import threading
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar, TypeVarTuple, Unpack

from agentcore.errors import LogDamaged, StoreError
from agentcore.record.files.blob import read_blob, write_blob
from agentcore.record.files.disk import Disk
from agentcore.record.files.line import Scan, encode_line, scan
from agentcore.record.files.thread import run_bounded
from agentcore.record.store import Record, check_append

__all__ = ["Durability", "FileLog", "read_lines"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

Durability = Literal["sync", "flush"]
"""`sync` survives a loss of power: one fdatasync per append. `flush` survives the end of the process, not the power."""


def read_lines(disk: Disk, folder: str, conversation_id: str) -> tuple[bytes, Scan]:
    """Read the log in a folder: its bytes, and what they hold. Blocks.

    Raises:
        LogDamaged: a line in the middle is not what was written.
        StoreError: there is no such file, though its conversation was begun.
    """
    path = os.path.join(folder, "events.jsonl")
    try:
        data = disk.read(path)
    except FileNotFoundError:
        raise StoreError(f"{path!r} is missing: the events are gone. Restore it from a backup.") from None
    found = scan(data)
    if found.damage is not None:
        line, reason = found.damage
        raise LogDamaged(path, line, reason, f"agentcore log repair {conversation_id}")
    return data, found


class FileLog:
    """A log on disk. Made by `FileStore`."""

    def __init__(
        self,
        *,
        disk: Disk,
        folder: str,
        conversation_id: str,
        format_version: int,
        durability: Durability,
        seconds: float,
        lock: int | None,
        descriptor: int | None,
        records: Sequence[Record],
        length: int,
        repaired: str | None,
    ) -> None:
        self._disk = disk
        self._folder = folder
        self._id = conversation_id
        self._format_version = format_version
        self._durability: Durability = durability
        self._seconds = seconds
        self._lock = lock
        self._descriptor = descriptor
        self._records: Sequence[Record] | None = records
        self._last = len(records)
        self._length = length
        self._repaired = repaired
        self._poison: str | None = None if descriptor is not None else "it was opened for reading"
        self._closed = False
        # Between the loop and a thread that may outlive its caller: who of the two closes the descriptors.
        self._handover = threading.Lock()
        self._busy = False

    @property
    def conversation_id(self) -> str:
        """Whose log it is."""
        return self._id

    @property
    def format_version(self) -> int:
        """The version the log was begun with."""
        return self._format_version

    @property
    def repaired(self) -> str | None:
        """What was cut off the end on opening."""
        return self._repaired

    async def read(self) -> Sequence[Record]:
        """Give all records in order."""
        if self._records is not None:
            # What opening read is given away once, and not kept in memory twice.
            records, self._records = self._records, None
            return records
        _, found = await run_bounded(
            self._seconds, f"Reading {self._folder!r}", read_lines, self._disk, self._folder, self._id
        )
        return found.records

    async def append(self, records: Sequence[Record]) -> None:
        """Keep more records in one write and one sync."""
        if not records:
            return
        self._refuse_if_poisoned()
        check_append(self._id, records, self._last)
        await self._in_thread("Writing to", self._append, b"".join(map(encode_line, records)))
        self._last = records[-1].seq
        self._records = None

    async def write_blob(self, data: bytes) -> str:
        """Keep a large piece under its hash."""
        self._refuse_if_poisoned()
        return await self._in_thread("Writing a blob to", self._write_blob, data)

    async def read_blob(self, digest: str) -> bytes:
        """Give a large piece back, checked against its hash."""
        what = f"Reading a blob in {self._folder!r}"
        return await run_bounded(self._seconds, what, read_blob, self._disk, self._folder, digest)

    async def close(self) -> None:
        """Let go of files and lock."""
        with self._handover:
            if self._closed:
                return
            self._closed = True
            # A thread that still uses the descriptor closes it, and lets go of the lock, when it ends.
            left_to_thread = self._busy
        self._poison = self._poison or "it is closed"
        if not left_to_thread:
            await run_bounded(self._seconds, f"Closing {self._folder!r}", self.close_files)

    def close_files(self) -> None:
        """Close what is open. For the thread that owns it now."""
        for descriptor in (self._descriptor, self._lock):
            if descriptor is not None:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        self._descriptor = self._lock = None

    def _refuse_if_poisoned(self) -> None:
        if self._poison is not None:
            raise StoreError(f"The log in {self._folder!r} takes no more events: {self._poison}")

    async def _in_thread(self, what: str, function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        try:
            return await run_bounded(self._seconds, f"{what} {self._folder!r}", self._guarded, function, *args)
        except BaseException as error:
            # Never tried again: after a failed sync the system may have dropped the pages it could not write.
            self._poison = str(error) or type(error).__name__
            raise

    def _guarded(self, function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        with self._handover:
            if self._closed:
                raise StoreError(f"The log in {self._folder!r} was closed before it was written to.")
            self._busy = True
        try:
            return function(*args)
        finally:
            with self._handover:
                self._busy = False
                orphaned = self._closed
            if orphaned:
                self.close_files()

    def _append(self, data: bytes) -> None:
        descriptor = self._descriptor
        assert descriptor is not None
        try:
            self._disk.write(descriptor, data)
            if self._durability == "sync":
                self._disk.sync(descriptor)
        except OSError:
            # What was not acknowledged goes, where that is still possible. After a failed sync it may be in memory only
            # and look as if it were kept: whoever opens the log next would build on it.
            with contextlib.suppress(OSError):
                self._disk.truncate(descriptor, self._length)
            raise
        self._length += len(data)

    def _write_blob(self, data: bytes) -> str:
        return write_blob(self._disk, self._folder, data, sync=self._durability == "sync")
