"""The large pieces of a log: files in `blobs/`, named by the SHA-256 of what they hold."""

from __future__ import annotations

import hashlib
import os
import re

from agentcore.errors import BlobLost
from agentcore.record.files.disk import Disk

__all__ = ["read_blob", "write_blob"]

_DIGEST = re.compile("[0-9a-f]{64}")


def write_blob(disk: Disk, folder: str, data: bytes, *, sync: bool) -> str:
    """Keep a piece below the log's folder and give its digest. Blocks."""
    digest = hashlib.sha256(data).hexdigest()
    blobs = os.path.join(folder, "blobs")
    path = os.path.join(blobs, digest)
    disk.make_folder(blobs)
    # A file of that name may have been cut short by a loss of power, or may not have been synced by whoever made it.
    if _read(disk, path) != data:
        _write(disk, f"{path}.part", data, sync=sync)
        disk.replace(f"{path}.part", path)
    elif sync:
        _write(disk, path, b"", sync=True)
    if sync:
        disk.sync_folder(blobs)
        disk.sync_folder(folder)
    return digest


def read_blob(disk: Disk, folder: str, digest: str) -> bytes:
    """Give a piece back, checked against its digest. Blocks.

    Raises:
        BlobLost: it is not there, or not what was written.
    """
    if not _DIGEST.fullmatch(digest):
        raise BlobLost(folder, digest, "can't be one: that is no SHA-256")
    data = _read(disk, os.path.join(folder, "blobs", digest))
    if data is None:
        raise BlobLost(folder, digest, "is missing")
    if hashlib.sha256(data).hexdigest() != digest:
        raise BlobLost(folder, digest, "is not what was written: its hash is another one")
    return data


def _read(disk: Disk, path: str) -> bytes | None:
    try:
        return disk.read(path)
    except FileNotFoundError:
        return None


def _write(disk: Disk, path: str, data: bytes, *, sync: bool) -> None:
    descriptor = disk.open_append(path)
    try:
        if data:
            disk.truncate(descriptor, 0)  # what an earlier attempt left
            disk.write(descriptor, data)
        if sync:
            disk.sync(descriptor)
    finally:
        os.close(descriptor)
