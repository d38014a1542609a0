"""The files of a log's folder other than its lines: `meta.json`, `blobs/`, `epoch` and `lock`."""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
import re
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from agentcore.errors import BlobLost, ConversationLocked, StoreError
from agentcore.record.files.disk import Disk
from agentcore.record.store import LogInfo


def has_meta(folder: str) -> bool:
    """Return whether there is a log in this folder."""
    return os.path.exists(_meta_path(folder))


def write_meta(disk: Disk, folder: str, conversation_id: str, format_version: int, *, sync: bool) -> None:
    """Write it: from here on the folder is a log. Blocks."""
    meta = {"id": conversation_id, "created": datetime.now(UTC).isoformat(), "format_version": format_version}
    unfinished = f"{_meta_path(folder)}.part"
    descriptor = disk.open_append(unfinished)
    try:
        disk.truncate(descriptor, 0)
        disk.write(descriptor, json.dumps(meta).encode() + b"\n")
        if sync:
            disk.sync(descriptor)
    finally:
        os.close(descriptor)
    disk.replace(unfinished, _meta_path(folder))
    if sync:
        disk.sync_folder(folder)


def read_info(disk: Disk, folder: str, conversation_id: str) -> LogInfo:
    """Return the description of the log in a folder. Blocks.

    Raises:
        FileNotFoundError: there is none.
    """
    path = _meta_path(folder)
    try:
        meta = json.loads(disk.read(path))
        created = datetime.fromisoformat(meta["created"])
        version = int(meta["format_version"])
        if created.tzinfo is None or version < 1:
            raise ValueError(f"created {created}, format_version {version}")  # noqa: TRY301
        problem = None
    except StoreError as error:
        problem = str(error)
        created, version = _changed(path), 0
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        problem = f"{path!r} is damaged ({error!r}): it should hold id, created (with its offset) and format_version."
        created, version = _changed(path), 0
    try:
        modified = _changed(os.path.join(folder, "events.jsonl"))
    except FileNotFoundError:
        modified = created
    return LogInfo(
        conversation_id=conversation_id, created=created, modified=modified, format_version=version, problem=problem
    )


def _changed(path: str) -> datetime:
    return datetime.fromtimestamp(os.stat(path).st_mtime, UTC)


def _meta_path(folder: str) -> str:
    return os.path.join(folder, "meta.json")


_DIGEST = re.compile("[0-9a-f]{64}")


def write_blob(disk: Disk, folder: str, data: bytes, *, sync: bool) -> str:
    """Keep a piece below the log's folder and give its digest. Blocks."""
    digest = hashlib.sha256(data).hexdigest()
    blobs = os.path.join(folder, "blobs")
    path = os.path.join(blobs, digest)
    disk.make_folder(blobs)
    # A file of that name may have been cut short by a loss of power, or may not have been synced by its writer.
    if _read_if_there(disk, path) != data:
        _write_whole(disk, f"{path}.part", data, sync=sync)
        disk.replace(f"{path}.part", path)
    elif sync:
        _write_whole(disk, path, b"", sync=True)
    if sync:
        disk.sync_folder(blobs)
        disk.sync_folder(folder)
    return digest


def read_blob(disk: Disk, folder: str, digest: str) -> bytes:
    """Return a piece, checked against its digest. Blocks.

    Raises:
        BlobLost: it is not there, or not what was written.
    """
    if not _DIGEST.fullmatch(digest):
        raise BlobLost(folder, digest, "can't be one: the name is not a SHA-256")
    data = _read_if_there(disk, os.path.join(folder, "blobs", digest))
    if data is None:
        raise BlobLost(folder, digest, "is missing")
    if hashlib.sha256(data).hexdigest() != digest:
        raise BlobLost(folder, digest, "is not what was written: its hash is another one")
    return data


def _read_if_there(disk: Disk, path: str) -> bytes | None:
    try:
        return disk.read(path)
    except FileNotFoundError:
        return None


def _write_whole(disk: Disk, path: str, data: bytes, *, sync: bool) -> None:
    descriptor = disk.open_append(path)
    try:
        if data:
            disk.truncate(descriptor, 0)  # what an earlier attempt left
            disk.write(descriptor, data)
        if sync:
            disk.sync(descriptor)
    finally:
        os.close(descriptor)


_MARK = b"|"


def read_epoch(disk: Disk, folder: str) -> int:
    """Return how often the log in a folder was opened for writing. Blocks."""
    try:
        return len(disk.read(_epoch_path(folder)))
    except FileNotFoundError:
        return 0


def count_epoch(disk: Disk, folder: str, *, sync: bool, anew: bool = False) -> int:
    """Count one opening more, for the holder of the lock, and return the number. Blocks.

    Args:
        disk: The file operations.
        folder: Of the log.
        sync: Whether the number is to survive a loss of power.
        anew: Begin with 1: the folder is just made, or was left by a creation that was cut off.
    """
    before = 0 if anew else read_epoch(disk, folder)
    descriptor = disk.open_append(_epoch_path(folder))
    try:
        if anew:
            disk.truncate(descriptor, 0)
        disk.write(descriptor, _MARK)
        if sync:
            disk.sync(descriptor)
    finally:
        os.close(descriptor)
    if sync and not before and not anew:
        disk.sync_folder(folder)  # the file was not there: its name has to survive as well
    return before + 1


def _epoch_path(folder: str) -> str:
    return os.path.join(folder, "epoch")


_TRIES: Final = 500
_PAUSE: Final = 0.002
"""Seconds between tries to take a lock that another process only looks at, which takes microseconds."""


def lock_file(path: str, conversation_id: str) -> int:
    """Take the lock and return its descriptor, for `unlock`. Blocks on the disk only, never on the lock.

    Raises:
        ConversationLocked: another writer has it.
        FileNotFoundError: there is no such folder.
    """
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            _take(descriptor, conversation_id)
            if _is_still_at(path, descriptor):
                name = f"process {os.getpid()} on {os.uname().nodename} since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
                _write_over(descriptor, name.encode())
                return descriptor
        except BaseException:
            unlock(descriptor)
            raise
        # The conversation was deleted between the two calls: this is the lock of nothing anymore.
        unlock(descriptor)


def unlock(descriptor: int) -> None:
    """Let go of a lock and close its file."""
    # Closing alone is not enough: a child that another thread has forked, and that has not called exec yet, holds the
    # same open file, and would hold the lock with it.
    with suppress(OSError):
        fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def find_holder(path: str) -> str | None:
    """Return the name of who has the lock, or None.

    It is looked at by sharing it for a moment; `lock_file` does not take that for a writer.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return None if _try(descriptor, fcntl.LOCK_SH) else _name(descriptor)
    finally:
        unlock(descriptor)


def _take(descriptor: int, conversation_id: str) -> None:
    for _ in range(_TRIES):
        if _try(descriptor, fcntl.LOCK_EX):
            return
        # A writer shares it with nobody: where it can be shared, another process only looks.
        if not _try(descriptor, fcntl.LOCK_SH):
            raise ConversationLocked(conversation_id, _name(descriptor))
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        time.sleep(_PAUSE)
    raise ConversationLocked(conversation_id, "no writer, but a process that looks at its lock does not go on")


def _try(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _name(descriptor: int) -> str:
    # The holder writes its name just after it has the lock, so for a moment there may be none.
    return os.pread(descriptor, 400, 0).decode(errors="replace") or "another process"


def _is_still_at(path: str, descriptor: int) -> bool:
    try:
        return os.path.samestat(os.stat(path), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _write_over(descriptor: int, name: bytes) -> None:
    """Put a name in the place of the last holder's, which mostly is as long: cutting a file can take milliseconds."""
    if os.fstat(descriptor).st_size > len(name):
        os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, name, 0)
