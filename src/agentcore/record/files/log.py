"""One conversation's folder, held open: `events.jsonl`, `meta.json`, `blobs/`, `lock`."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal, TypeVar, TypeVarTuple, Unpack, final

from agentcore.errors import ConversationNotFound, LogDamaged, StoreError
from agentcore.record.files.disk import Disk
from agentcore.record.files.layout import has_meta, read_blob, unlock, write_blob
from agentcore.record.files.line import Scan, encode_line, scan
from agentcore.record.files.thread import ThreadWork, run_bounded
from agentcore.record.store import Record, check_append

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
        epoch: int,
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
        self._epoch = epoch
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
        self._writing = False
        # The last write; its thread may outlive the task that waits, and owns the descriptors while it runs.
        self._work: ThreadWork[Any] | None = None

    @property
    def conversation_id(self) -> str:
        """The conversation of the log."""
        return self._id

    @property
    def format_version(self) -> int:
        """The version the log was begun with."""
        return self._format_version

    @property
    def epoch(self) -> int:
        """How often it was opened for writing."""
        return self._epoch

    @property
    def repaired(self) -> str | None:
        """The bytes cut off the end on opening, described."""
        return self._repaired

    async def read(self, after: int = 0) -> Sequence[Record]:
        """Return the records behind this seq, in order."""
        # What opening read is given away once, and not kept in memory twice.
        records, self._records = self._records, None
        if records is None:
            what = f"Reading {self._folder!r}"
            _, found = await run_bounded(self._seconds, what, read_lines, self._disk, self._folder, self._id)
            records = found.records
        return records[after:] if after > 0 else records

    async def append(self, records: Sequence[Record]) -> None:
        """Keep more records in one write and one sync."""
        if not records:
            return
        self._refuse_if_poisoned()
        check_append(self._id, records, self._last)
        self._records = None
        await self._write("Writing to", self._append, records)

    async def write_blob(self, data: bytes) -> str:
        """Keep a large piece under its hash."""
        self._refuse_if_poisoned()
        sync = self._durability == "sync"
        return await self._write("Writing a blob to", partial(write_blob, sync=sync), self._disk, self._folder, data)

    async def read_blob(self, digest: str) -> bytes:
        """Return a large piece, checked against its hash."""
        what = f"Reading a blob in {self._folder!r}"
        return await run_bounded(self._seconds, what, read_blob, self._disk, self._folder, digest)

    async def close(self) -> None:
        """Let go of files and lock."""
        if self._closed:
            return
        self._closed = True
        self._poison = self._poison or "it is closed"
        # A thread that still uses the descriptor closes it, and lets go of the lock, when it ends.
        if self._work is None or not self._work.hand_over(self.close_files):
            await run_bounded(self._seconds, f"Closing {self._folder!r}", self.close_files, begin_always=True)

    def close_files(self) -> None:
        """Close what is open. For the thread that owns it now."""
        descriptor, lock = self._descriptor, self._lock
        self._descriptor = self._lock = None
        with contextlib.suppress(OSError):
            if descriptor is not None:
                os.close(descriptor)
        with contextlib.suppress(OSError):
            if lock is not None:
                unlock(lock)

    def _refuse_if_poisoned(self) -> None:
        if self._poison is not None:
            raise StoreError(f"The log in {self._folder!r} takes no more events: {self._poison}")

    async def _write(self, what: str, function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
        if self._writing:
            raise StoreError(f"The log in {self._folder!r} is being written to: append one after the other.")
        self._writing = True
        work = self._work = ThreadWork(partial(function, *args))
        try:
            return await work.wait(self._seconds, f"{what} {self._folder!r}")
        except BaseException as error:
            # asyncio's own cancellation may have come before it began, or when it was done: then the log is in order.
            if isinstance(error, Exception) or work.running or work.failed:
                # Never tried again: after a failed sync the system may have dropped the pages it could not write.
                self._poison = str(error) or type(error).__name__
            raise
        finally:
            self._writing = False
            if not work.running:
                self._work = None

    def _append(self, records: Sequence[Record]) -> None:
        data = b"".join(map(encode_line, records))
        descriptor = self._descriptor
        assert descriptor is not None
        try:
            self._disk.write(descriptor, data)
            if self._durability == "sync":
                self._disk.sync(descriptor)
        except OSError:
            # What was not acknowledged goes, where that is still possible. After a failed sync it may be in memory only
            # and look as if it were kept: the next writer would build on it.
            with contextlib.suppress(OSError):
                self._disk.truncate(descriptor, self._length)
            raise
        # Here and not in the task that waits: that may be cancelled, and the records count all the same.
        self._length += len(data)
        self._last = records[-1].seq


@final
class FileTail:
    """The records appended to the log in a folder. Made by `FileStore.tail`; it holds nothing open."""

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
        """Return the records of all complete groups since the last time; None where the log was cut back behind what was read.

        After that the next time begins at the first event.

        Raises:
            LogDamaged: a line in the middle is not what was written.
        """
        return await run_bounded(self._seconds, f"Reading {self._folder!r}", self._read)

    async def read_blob(self, digest: str) -> bytes:
        """Return a large piece, checked against its hash."""
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
