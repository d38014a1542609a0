"""Logs as folders of JSON Lines: what people grep, tail and diff."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from functools import cached_property
from typing import TypeVar, TypeVarTuple, Unpack

from agentcore.errors import (
    ConversationExists,
    ConversationNotFound,
    StoreError,
    UnsupportedPlatform,
)
from agentcore.ids import check_conversation_id
from agentcore.record.files.disk import Disk, RealDisk
from agentcore.record.files.lock import lock_file
from agentcore.record.files.log import Durability, FileLog, read_records
from agentcore.record.files.repair import RepairReport, repair_log
from agentcore.record.files.thread import run_bounded
from agentcore.record.store import LogInfo

__all__ = ["FileStore"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_DELETED = ".deleted-"


class FileStore:
    """Keeps each conversation in a folder of its own below `path`; the folder is made when the first one begins.

    Args:
        path: The folder. `~` is expanded.
        durability: "sync" (an acknowledged event survives a loss of power) or "flush" (the end of the process only).
        seconds: How long one file operation may take before the log is given up as dead.
        disk: The file operations; for tests.

    Raises:
        UnsupportedPlatform: on Windows.
    """

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
        # Made absolute by the first operation, in its thread: that asks the system for the current folder.
        self._given = os.fspath(path)
        self._durability: Durability = durability
        self._seconds = seconds
        self._disk: Disk = disk or RealDisk()

    def __repr__(self) -> str:
        return f"FileStore({self._given!r}, durability={self._durability!r})"

    @property
    def location(self) -> str:
        """The folder."""
        return self._path

    @cached_property
    def _path(self) -> str:
        if os.path.isabs(self._given):
            return os.path.normpath(self._given)
        return os.path.abspath(os.path.expanduser(self._given))

    def folder(self, conversation_id: str) -> str:
        """Give the folder of one conversation, there or not."""
        return os.path.join(self._path, check_conversation_id(conversation_id))

    async def create(self, conversation_id: str, *, format_version: int) -> FileLog:
        """Begin a log and hold it for writing."""
        return await self._run("Making", self._create, conversation_id, format_version)

    async def open(self, conversation_id: str, *, write: bool = True) -> FileLog:
        """Hold a log, for writing or for reading."""
        return await self._run("Opening", self._open, conversation_id, write)

    async def list(self) -> Sequence[LogInfo]:
        """Tell of all logs, the newest first."""
        return await run_bounded(self._seconds, f"Listing {self._given!r}", self._list)

    async def delete(self, conversation_id: str) -> None:
        """Remove a log and its blobs."""
        await self._run("Deleting", self._delete, conversation_id)

    async def verify(self, conversation_id: str) -> tuple[int, str | None]:
        """Read a whole log, beside its writer if there is one: how many events, and what unfinished end it has.

        Raises:
            LogDamaged: a line in the middle is not what was written.
        """
        return await self._run("Reading", self._verify, conversation_id)

    async def repair(self, conversation_id: str) -> RepairReport:
        """Cut a damaged log back to its sound beginning; what it was is kept beside it.

        Raises:
            ConversationLocked: somebody holds it for writing.
        """
        return await self._run("Repairing", self._repair, conversation_id)

    async def _run(
        self, what: str, function: Callable[[str, str, Unpack[Ts]], T], conversation_id: str, *args: *Ts
    ) -> T:
        """Call a function in a thread, with the conversation's folder and id."""
        check_conversation_id(conversation_id)

        def call() -> T:
            return function(self.folder(conversation_id), conversation_id, *args)

        return await run_bounded(self._seconds, f"{what} conversation {conversation_id!r} in {self._given!r}", call)

    def _create(self, folder: str, conversation_id: str, format_version: int) -> FileLog:
        self._refuse_existing(folder, conversation_id)
        os.makedirs(self._path, mode=0o700, exist_ok=True)
        os.makedirs(folder, mode=0o700, exist_ok=True)
        lock = lock_file(os.path.join(folder, "lock"), conversation_id)
        try:
            self._refuse_existing(folder, conversation_id)  # somebody may have been faster
            descriptor = self._disk.open_append(os.path.join(folder, "events.jsonl"))
            try:
                self._disk.truncate(descriptor, 0)  # a creation that was cut off before its meta.json
                self._write_meta(folder, conversation_id, format_version)
            except BaseException:
                os.close(descriptor)
                raise
        except BaseException:
            os.close(lock)
            raise
        return FileLog(
            disk=self._disk,
            folder=folder,
            conversation_id=conversation_id,
            format_version=format_version,
            durability=self._durability,
            seconds=self._seconds,
            lock=lock,
            descriptor=descriptor,
            records=(),
            repaired=None,
        )

    def _refuse_existing(self, folder: str, conversation_id: str) -> None:
        if os.path.exists(os.path.join(folder, "meta.json")):
            raise ConversationExists(conversation_id, self._path)

    def _write_meta(self, folder: str, conversation_id: str, format_version: int) -> None:
        meta = {"id": conversation_id, "created": datetime.now(UTC).isoformat(), "format_version": format_version}
        path = os.path.join(folder, "meta.json")
        descriptor = self._disk.open_append(f"{path}.part")
        try:
            self._disk.truncate(descriptor, 0)
            self._disk.write(descriptor, json.dumps(meta).encode() + b"\n")
            if self._durability == "sync":
                self._disk.sync(descriptor)
        finally:
            os.close(descriptor)
        self._disk.replace(f"{path}.part", path)
        if self._durability == "sync":
            self._disk.sync_folder(folder)
            self._disk.sync_folder(self._path)

    def _open(self, folder: str, conversation_id: str, write: bool) -> FileLog:
        info = self._info(folder, conversation_id)
        lock = lock_file(os.path.join(folder, "lock"), conversation_id) if write else None
        descriptor: int | None = None
        try:
            records, length, torn = read_records(self._disk, folder, conversation_id)
            if write:
                descriptor = self._disk.open_append(os.path.join(folder, "events.jsonl"))
                if torn is not None:
                    self._disk.truncate(descriptor, length)
                    self._disk.sync(descriptor)
        except BaseException:
            for opened in (descriptor, lock):
                if opened is not None:
                    os.close(opened)
            raise
        return FileLog(
            disk=self._disk,
            folder=folder,
            conversation_id=conversation_id,
            format_version=info.format_version,
            durability=self._durability,
            seconds=self._seconds,
            lock=lock,
            descriptor=descriptor,
            records=records,
            repaired=torn,
        )

    def _info(self, folder: str, conversation_id: str) -> LogInfo:
        path = os.path.join(folder, "meta.json")
        try:
            meta = json.loads(self._disk.read(path))
            created = datetime.fromisoformat(meta["created"])
            version = int(meta["format_version"])
        except FileNotFoundError:
            raise ConversationNotFound(conversation_id, self._path) from None
        except (ValueError, KeyError, TypeError) as error:
            raise StoreError(f"{path!r} is damaged ({error}): it should hold id, created and format_version.") from None
        try:
            changed = os.stat(os.path.join(folder, "events.jsonl")).st_mtime
        except FileNotFoundError:
            modified = created
        else:
            modified = datetime.fromtimestamp(changed, UTC)
        return LogInfo(conversation_id=conversation_id, created=created, modified=modified, format_version=version)

    def _list(self) -> list[LogInfo]:
        try:
            names = os.listdir(self._path)
        except FileNotFoundError:
            return []
        found: list[LogInfo] = []
        for name in names:
            folder = os.path.join(self._path, name)
            # A folder without meta.json is a creation that was cut off: nothing was ever acknowledged in it.
            if not name.startswith(".") and os.path.exists(os.path.join(folder, "meta.json")):
                found.append(self._info(folder, name))
        return sorted(found, key=lambda info: info.created, reverse=True)

    def _delete(self, folder: str, conversation_id: str) -> None:
        self._info(folder, conversation_id)
        lock = lock_file(os.path.join(folder, "lock"), conversation_id)
        try:
            doomed = os.path.join(self._path, f"{_DELETED}{conversation_id}-{os.getpid()}")
            os.rename(folder, doomed)
            shutil.rmtree(doomed)
        finally:
            os.close(lock)

    def _verify(self, folder: str, conversation_id: str) -> tuple[int, str | None]:
        self._info(folder, conversation_id)
        records, _, torn = read_records(self._disk, folder, conversation_id)
        return len(records), torn

    def _repair(self, folder: str, conversation_id: str) -> RepairReport:
        self._info(folder, conversation_id)
        lock = lock_file(os.path.join(folder, "lock"), conversation_id)
        try:
            return repair_log(self._disk, folder)
        finally:
            os.close(lock)
