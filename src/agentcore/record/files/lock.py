"""One writer at a time, across processes: an flock on a file that names its holder."""

from __future__ import annotations

import fcntl
import os
import time
from contextlib import suppress
from datetime import UTC, datetime
from typing import Final

from agentcore.errors import ConversationLocked

__all__ = ["find_holder", "lock_file", "unlock"]

_TRIES: Final = 500
_PAUSE: Final = 0.002
"""Seconds between tries to take a lock that somebody only looks at, which takes him microseconds."""


def lock_file(path: str, conversation_id: str) -> int:
    """Take the lock and return its descriptor, for `unlock`. Blocks on the disk only, never on the lock.

    Raises:
        ConversationLocked: somebody has it.
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
    """Return the name of who has the lock, or None where nobody has.

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
        # A writer shares it with nobody: where it can be shared, somebody only looks.
        if not _try(descriptor, fcntl.LOCK_SH):
            raise ConversationLocked(conversation_id, _name(descriptor))
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        time.sleep(_PAUSE)
    raise ConversationLocked(conversation_id, "nobody, but a process that looks at its lock does not go on")


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
