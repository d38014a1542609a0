"""The file operations a log stands on, as a seam: tests put a disk here that is slow, full, or loses what was not synced.

All of them block: they are called in worker threads. Looking (whether a file is there, what is in a folder) and the lock
are not among them.
"""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import stat
from typing import Final, Protocol

from agentcore.errors import StoreError

_NO_FILE: Final = (errno.ENXIO, errno.EISDIR, errno.EOPNOTSUPP)
"""The errors of opening a pipe without a reader, a socket, or a folder for writing."""

# On macOS, fsync leaves the data in the drive's own cache.
_FULL_SYNC: int | None = getattr(fcntl, "F_FULLFSYNC", None)


class Disk(Protocol):
    """The file operations of a file store."""

    def open_append(self, path: str) -> int:
        """Open a file for appending, made if missing, readable by its owner alone."""
        ...

    def write(self, descriptor: int, data: bytes) -> None:
        """Append all of it."""
        ...

    def sync(self, descriptor: int) -> None:
        """Return when all that was written to the file would survive a loss of power."""
        ...

    def truncate(self, descriptor: int, length: int) -> None:
        """Cut the file."""
        ...

    def replace(self, source: str, target: str) -> None:
        """Rename a file to its final name, in one step."""
        ...

    def sync_folder(self, path: str) -> None:
        """Return when the names in the folder would survive a loss of power."""
        ...

    def read(self, path: str, start: int = 0) -> bytes:
        """Return all bytes of a file from this one on; none where it is not that long."""
        ...

    def make_folder(self, path: str) -> None:
        """Make a folder that its owner alone can read; one that is there is fine."""
        ...

    def remove_folder(self, path: str) -> None:
        """Remove a folder and all that is in it."""
        ...


class RealDisk:
    """The operating system's own files."""

    def open_append(self, path: str) -> int:
        """Open a file for appending."""
        return _open_regular(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)

    def write(self, descriptor: int, data: bytes) -> None:
        """Append all of it."""
        written = os.write(descriptor, data)
        while written < len(data):
            written += os.write(descriptor, data[written:])

    def sync(self, descriptor: int) -> None:
        """Sync the file's data."""
        if _FULL_SYNC is not None:
            fcntl.fcntl(descriptor, _FULL_SYNC)
        else:
            os.fdatasync(descriptor)

    def truncate(self, descriptor: int, length: int) -> None:
        """Cut the file."""
        os.ftruncate(descriptor, length)

    def replace(self, source: str, target: str) -> None:
        """Rename over whatever has the name."""
        os.replace(source, target)

    def sync_folder(self, path: str) -> None:
        """Sync the folder's entries."""
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def read(self, path: str, start: int = 0) -> bytes:
        """Return all bytes of a file from this one on."""
        with open(_open_regular(path, os.O_RDONLY), "rb") as file:
            file.seek(start)
            return file.read()

    def make_folder(self, path: str) -> None:
        """Make a folder, unless it is there."""
        try:
            os.mkdir(path, 0o700)
        except FileExistsError:
            if not os.path.isdir(path):
                raise

    def remove_folder(self, path: str) -> None:
        """Remove a folder and all that is in it."""
        shutil.rmtree(path)


def _open_regular(path: str, flags: int) -> int:
    """Open a file; a pipe, whose other end may never come, and a device, which keeps nothing, are refused at once."""
    try:
        descriptor = os.open(path, flags | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC, 0o600)
    except OSError as error:
        if error.errno in _NO_FILE:
            raise _not_regular(path) from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise _not_regular(path)
    return descriptor


def _not_regular(path: str) -> StoreError:
    return StoreError(
        f"{path!r} is not a regular file but a pipe, a socket, a device or a folder: no log can be kept in it, and nothing "
        "can be read. Put the log's own file back there, from a backup."
    )
