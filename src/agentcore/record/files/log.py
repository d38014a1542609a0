"""One conversation's folder, held open: `events.jsonl`, `meta.json`, `blobs/`, `lock`."""

from __future__ import annotations

import contextlib
import hashlib
import os
import threading
from collections.abc import Callable, Sequence
from typing import Literal, TypeVar, TypeVarTuple, Unpack

from agentcore.errors import LogDamaged, SeqConflict, StoreError
from agentcore.record.files.disk import Disk
from agentcore.record.files.line import encode_line, scan
from agentcore.record.files.thread import run_bounded
from agentcore.record.store import Record

__all__ = ["Durability", "FileLog", "read_records"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

Durability = Literal["sync", "flush"]
"""`sync` survives a loss of power: one fdatasync per append. `flush` survives the end of the process, not the power."""


def read_records(disk: Disk, folder: str, conversation_id: str) -> tuple[Sequence[Record], int, str | None]:
    """Read the log in a folder: its records, how many bytes they are, and what follows them unfinished. Blocks.

    Raises:
        LogDamaged: a line in the middle is not what was written.
    """
    path = os.path.join(folder, "events.jsonl")
    try:
        data = disk.read(path)
    except FileNotFoundError:
        return (), 0, None
    found = scan(data)
    if found.damage is not None:
        line, reason = found.damage
        raise LogDamaged(path, line, reason, f"agentcore log repair {conversation_id}")
    return found.records, found.length, found.torn


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
        self._repaired = repaired
        self._poison: str | None = None if descriptor is not None else "it was opened for reading"
        self._closed = False
        # Between the loop and a thread that may outlive its caller: who of the two closes the descriptors.
        self._handover = threading.Lock()
        self._busy = False
        self._orphaned = False

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
        records, _, _ = await run_bounded(
            self._seconds, f"Reading {self._folder!r}", read_records, self._disk, self._folder, self._id
        )
        return records

    async def append(self, records: Sequence[Record]) -> None:
        """Keep more records in one write and one sync."""
        if not records:
            return
        if records[0].seq != self._last + 1:
            raise SeqConflict(self._id, records[0].seq, self._last + 1)
        await self._in_thread("Writing to", self._append, b"".join(map(encode_line, records)))
        self._last = records[-1].seq
        self._records = None

    async def write_blob(self, data: bytes) -> str:
        """Keep a large piece under its hash."""
        return await self._in_thread("Writing a blob to", self._write_blob, data)

    async def read_blob(self, digest: str) -> bytes:
        """Give a large piece back, checked against its hash."""
        path = os.path.join(self._folder, "blobs", digest)
        data = await run_bounded(self._seconds, f"Reading {path!r}", self._disk.read, path)
        if hashlib.sha256(data).hexdigest() != digest:
            raise StoreError(f"{path!r} is not what was written: its hash is another. Restore it from a backup.")
        return data

    async def close(self) -> None:
        """Let go of files and lock."""
        if self._closed:
            return
        self._closed = True
        self._poison = self._poison or "it is closed"
        with self._handover:
            if self._busy:
                # The thread still uses the descriptor: it closes it, and lets go of the lock, when it ends.
                self._orphaned = True
                return
        await run_bounded(self._seconds, f"Closing {self._folder!r}", self._close_files)

    async def _in_thread(self, what: str, function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        if self._poison is not None:
            raise StoreError(f"The log in {self._folder!r} takes no more events: {self._poison}")
        self._busy = True
        try:
            return await run_bounded(self._seconds, f"{what} {self._folder!r}", self._guarded, function, *args)
        except BaseException as error:
            # Never tried again: after a failed sync the system may have dropped the pages it could not write.
            self._poison = str(error)
            raise

    def _guarded(self, function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        try:
            return function(*args)
        finally:
            with self._handover:
                self._busy = False
                orphaned = self._orphaned
            if orphaned:
                self._close_files()

    def _append(self, data: bytes) -> None:
        descriptor = self._descriptor
        assert descriptor is not None
        self._disk.write(descriptor, data)
        if self._durability == "sync":
            self._disk.sync(descriptor)

    def _write_blob(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        folder = os.path.join(self._folder, "blobs")
        path = os.path.join(folder, digest)
        if os.path.exists(path):
            return digest
        os.makedirs(folder, mode=0o700, exist_ok=True)
        unfinished = f"{path}.part"
        with contextlib.suppress(FileNotFoundError):
            os.unlink(unfinished)
        descriptor = self._disk.open_append(unfinished)
        try:
            self._disk.write(descriptor, data)
            if self._durability == "sync":
                self._disk.sync(descriptor)
        finally:
            os.close(descriptor)
        self._disk.replace(unfinished, path)
        if self._durability == "sync":
            self._disk.sync_folder(folder)
            self._disk.sync_folder(self._folder)
        return digest

    def _close_files(self) -> None:
        for descriptor in (self._descriptor, self._lock):
            if descriptor is not None:
                with contextlib.suppress(OSError):
                    os.close(descriptor)
        self._descriptor = self._lock = None
