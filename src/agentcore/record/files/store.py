"""Logs as folders of JSON Lines: what people grep, tail and diff."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from typing import TypeVar, TypeVarTuple, Unpack, get_args

from agentcore._arguments import FOLDER, SECONDS, checked, object_with, one_of, optional
from agentcore.errors import (
    ConversationExists,
    ConversationNotFound,
    LogDamaged,
    LogReadOnly,
    StoreError,
    UnsupportedPlatform,
)
from agentcore.ids import check_conversation_id, is_conversation_id
from agentcore.record.codec import FORMAT_VERSION, other_format
from agentcore.record.files.disk import Disk, RealDisk
from agentcore.record.files.layout import (
    count_epoch,
    find_holder,
    has_meta,
    lock_file,
    read_epoch,
    read_info,
    unlock,
    write_meta,
)
from agentcore.record.files.line import Scan
from agentcore.record.files.log import Durability, FileLog, FileTail, read_lines
from agentcore.record.files.repair import RepairReport, examine, keep_copy, repair_log
from agentcore.record.files.thread import run_bounded
from agentcore.record.store import NO_EVENTS, LogInfo, page_logs

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_DELETED = ".deleted-"


class FileStore:
    """Keeps each conversation in a folder of its own below `path`; the folder is made when the first one begins.

    Args:
        path: The folder. `~` is expanded; a relative one is of the folder that is current when the store is made.
        durability: "sync" (an acknowledged event survives a loss of power) or "flush" (the end of the process only).
        seconds: How long one file operation may take before the log is given up as dead.
        disk: The file operations; for tests.

    Raises:
        UnsupportedPlatform: on Windows.
        TypeError: an argument is not what it has to be.
    """

    @checked(
        path=FOLDER,
        durability=one_of(*get_args(Durability)),
        seconds=SECONDS,
        disk=optional(object_with("open_append", "sync", description="a disk, as RealDisk()")),
    )
    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        durability: Durability = "sync",
        seconds: float = 30.0,
        disk: Disk | None = None,
    ) -> None:
        if sys.platform == "win32":
            raise UnsupportedPlatform("Windows")
        self._given = os.fspath(path)
        # Now: by its first use, the program may be in another folder.
        self._path = os.path.abspath(os.path.expanduser(self._given))
        self._durability: Durability = durability
        self._seconds = seconds
        self._disk: Disk = disk or RealDisk()

    def __eq__(self, other: object) -> bool:
        """True if it is a store in the same folder."""
        return isinstance(other, FileStore) and self.location == other.location

    def __hash__(self) -> int:
        return hash(self.location)

    def __repr__(self) -> str:
        return f"FileStore({self._given!r}, durability={self._durability!r})"

    @property
    def location(self) -> str:
        """The folder."""
        return self._path

    def folder(self, conversation_id: str) -> str:
        """Return the folder of one conversation, there or not."""
        return os.path.join(self._path, check_conversation_id(conversation_id))

    async def create(self, conversation_id: str, *, format_version: int) -> FileLog:
        """Begin a log and hold it for writing. It is removed if its caller is gone by the time that it is made."""
        return await self._run("Making", self._create, conversation_id, format_version, discard=self._undo)

    async def open(self, conversation_id: str, *, write: bool = True) -> FileLog:
        """Hold a log, for writing or for reading."""
        return await self._run("Opening", self._open, conversation_id, write, discard=FileLog.close_files)

    async def tail(self, conversation_id: str) -> FileTail:
        """Read a log beside its writer, and read on as it grows.

        Raises:
            ConversationNotFound: there is none of that id.
        """
        info = await self._run("Opening", self._sound_info, conversation_id)
        folder = self.folder(conversation_id)
        return FileTail(self._disk, folder, conversation_id, info.format_version, self._seconds)

    async def list(self, *, after: str | None = None, limit: int | None = None) -> Sequence[LogInfo]:
        """List the logs, newest first. Each page reads every log's `meta.json`."""
        return await run_bounded(self._seconds, f"Listing {self._given!r}", self._list, after, limit)

    async def holder(self, conversation_id: str) -> str | None:
        """Return who writes a log now."""
        return await self._run("Looking at", self._holder, conversation_id)

    async def delete(self, conversation_id: str) -> None:
        """Remove a log and its blobs."""
        await self._run("Deleting", self._delete, conversation_id)

    async def verify(self, conversation_id: str) -> tuple[int, str | None]:
        """Read a whole log with its blobs, beside its writer if there is one: how many events, and what is not whole.

        Raises:
            LogDamaged: a line in the middle, or a blob that one names, is not what was written.
        """
        return await self._run("Reading", self._verify, conversation_id)

    async def repair(self, conversation_id: str) -> RepairReport:
        """Cut a damaged log back to its sound beginning; what it was is kept beside it.

        Raises:
            ConversationLocked: another writer holds it.
        """
        return await self._run("Repairing", self._repair, conversation_id)

    async def _run(
        self,
        what: str,
        function: Callable[[str, str, Unpack[Ts]], T],
        conversation_id: str,
        *args: *Ts,
        discard: Callable[[T], None] | None = None,
    ) -> T:
        """Call a function in a thread, with the conversation's folder and id."""
        check_conversation_id(conversation_id)

        def call() -> T:
            return function(self.folder(conversation_id), conversation_id, *args)

        what = f"{what} conversation {conversation_id!r} in {self._given!r}"
        return await run_bounded(self._seconds, what, call, discard=discard)

    def _create(self, folder: str, conversation_id: str, format_version: int) -> FileLog:
        sync = self._durability == "sync"
        self._refuse_existing(folder, conversation_id)
        self._make_folders()
        self._disk.make_folder(folder)
        lock = lock_file(os.path.join(folder, "lock"), conversation_id)
        descriptor: int | None = None
        try:
            self._refuse_existing(folder, conversation_id)  # another process may have been faster
            descriptor = self._open_new(os.path.join(folder, "events.jsonl"))
            epoch = count_epoch(self._disk, folder, sync=sync, anew=True)
            write_meta(self._disk, folder, conversation_id, format_version, sync=sync)
            if sync:
                self._disk.sync_folder(self._path)
        except BaseException:
            _close(descriptor, lock)
            raise
        return self._log(folder, conversation_id, format_version, epoch, lock=lock, descriptor=descriptor)

    def _undo(self, log: FileLog) -> None:
        """Remove a log that no caller got: the one that made it was cancelled, or does not wait any more."""
        try:
            with contextlib.suppress(OSError):  # then it stays, complete and empty
                self._remove(self.folder(log.conversation_id))
        finally:
            log.close_files()

    def _open_new(self, path: str) -> int:
        if os.path.exists(path) and os.path.getsize(path):
            # A creation that was cut off leaves none: these were acknowledged, and have lost their meta.json.
            raise StoreError(f"{path!r} holds events, but its meta.json is gone. Restore it, or move them away.")
        return self._disk.open_append(path)

    def _make_folders(self) -> None:
        missing: list[str] = []
        path = self._path
        while not os.path.isdir(path):
            missing.append(path)
            path = os.path.dirname(path)
        for made in reversed(missing):
            self._disk.make_folder(made)
            if self._durability == "sync":
                self._disk.sync_folder(os.path.dirname(made))

    def _refuse_existing(self, folder: str, conversation_id: str) -> None:
        if has_meta(folder):
            raise ConversationExists(conversation_id, self._path)

    def _find(self, folder: str, conversation_id: str) -> None:
        if not has_meta(folder):
            raise ConversationNotFound(conversation_id, self._path)

    def _lock(self, folder: str, conversation_id: str) -> int:
        self._find(folder, conversation_id)
        try:
            return lock_file(os.path.join(folder, "lock"), conversation_id)
        except FileNotFoundError:
            # Deleted just now.
            raise ConversationNotFound(conversation_id, self._path) from None

    def _open(self, folder: str, conversation_id: str, write: bool) -> FileLog:
        info = self._sound_info(folder, conversation_id)
        if write and info.format_version != FORMAT_VERSION:
            # Before its end is looked at: nothing may be cut off a log whose lines this version does not know.
            raise LogReadOnly(conversation_id, other_format(info.format_version))
        lock = self._lock(folder, conversation_id) if write else None
        sync = self._durability == "sync"
        descriptor: int | None = None
        try:
            data, found = read_lines(self._disk, folder, conversation_id)
            repaired = found.torn
            if write:
                descriptor = self._disk.open_append(os.path.join(folder, "events.jsonl"))
                if found.doubtful:
                    copy = keep_copy(self._disk, os.path.join(folder, "events.jsonl.cut"), data[found.length :])
                    repaired = f"{found.torn}; kept in {copy!r}"
                if found.torn is not None:
                    self._disk.truncate(descriptor, found.length)
                if sync:
                    # A writer that was killed may have left lines that are in memory only: from here on they count.
                    self._disk.sync(descriptor)
            epoch = count_epoch(self._disk, folder, sync=sync) if write else read_epoch(self._disk, folder)
        except BaseException:
            _close(descriptor, lock)
            raise
        return self._log(
            folder,
            conversation_id,
            info.format_version,
            epoch,
            lock=lock,
            descriptor=descriptor,
            found=found,
            repaired=repaired,
        )

    def _log(
        self,
        folder: str,
        conversation_id: str,
        format_version: int,
        epoch: int,
        *,
        lock: int | None,
        descriptor: int | None,
        found: Scan | None = None,
        repaired: str | None = None,
    ) -> FileLog:
        return FileLog(
            disk=self._disk,
            folder=folder,
            conversation_id=conversation_id,
            format_version=format_version,
            epoch=epoch,
            durability=self._durability,
            seconds=self._seconds,
            lock=lock,
            descriptor=descriptor,
            records=found.records if found else (),
            length=found.length if found else 0,
            repaired=repaired,
        )

    def _sound_info(self, folder: str, conversation_id: str) -> LogInfo:
        try:
            info = read_info(self._disk, folder, conversation_id)
        except FileNotFoundError:
            raise ConversationNotFound(conversation_id, self._path) from None
        if info.problem is not None:
            raise StoreError(info.problem)
        return info

    def _list(self, after: str | None, limit: int | None) -> Sequence[LogInfo]:
        try:
            names = os.listdir(self._path)
        except FileNotFoundError:
            names = []
        found: list[LogInfo] = []
        for name in names:
            folder = os.path.join(self._path, name)
            # A folder without meta.json is a creation that was cut off: nothing was ever acknowledged in it.
            if is_conversation_id(name) and has_meta(folder):
                with contextlib.suppress(FileNotFoundError):  # deleted just now
                    found.append(read_info(self._disk, folder, name))
        return page_logs(found, after, limit)

    def _holder(self, folder: str, conversation_id: str) -> str | None:
        self._find(folder, conversation_id)
        return find_holder(os.path.join(folder, "lock"))

    def _delete(self, folder: str, conversation_id: str) -> None:
        lock = self._lock(folder, conversation_id)
        try:
            self._remove(folder)
        finally:
            unlock(lock)

    def _remove(self, folder: str) -> None:
        # In one step, so that a deletion that is cut off leaves no half of a log behind.
        doomed = os.path.join(self._path, f"{_DELETED}{os.urandom(8).hex()}")
        self._disk.replace(folder, doomed)
        if self._durability == "sync":
            self._disk.sync_folder(self._path)
        for name in os.listdir(self._path):
            if name.startswith(_DELETED):  # this one, and what deletions that were cut off have left
                with contextlib.suppress(FileNotFoundError):  # another process does the same
                    self._disk.remove_folder(os.path.join(self._path, name))

    def _verify(self, folder: str, conversation_id: str) -> tuple[int, str | None]:
        found = examine(self._disk, folder, self._sound_info(folder, conversation_id).format_version)
        if found.damage is not None:
            path = os.path.join(folder, "events.jsonl")
            raise LogDamaged(path, *found.damage, f"agentcore log repair {conversation_id}")
        return found.kept, found.torn or (None if found.kept else NO_EVENTS)

    def _repair(self, folder: str, conversation_id: str) -> RepairReport:
        version = self._sound_info(folder, conversation_id).format_version
        if version != FORMAT_VERSION:
            raise LogReadOnly(conversation_id, other_format(version))
        lock = self._lock(folder, conversation_id)
        try:
            return repair_log(self._disk, folder, version)
        finally:
            unlock(lock)


def _close(descriptor: int | None, lock: int | None) -> None:
    if descriptor is not None:
        os.close(descriptor)
    if lock is not None:
        unlock(lock)
