"""One writer at a time, across processes: an flock on a file that names its holder."""

from __future__ import annotations

import fcntl
import os
from datetime import UTC, datetime

from agentcore.errors import ConversationLocked

__all__ = ["lock_file"]


def lock_file(path: str, conversation_id: str) -> int:
    """Take the lock and give its descriptor; closing that lets go. Blocks on the disk only, never on the lock.

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
            os.close(descriptor)
            raise
        # The conversation was deleted between the two calls: this is the lock of nothing anymore.
        os.close(descriptor)


def _take(descriptor: int, conversation_id: str) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        # The holder writes its name just after it has the lock, so for a moment there may be none.
        holder = os.pread(descriptor, 400, 0).decode(errors="replace") or "another process"
        raise ConversationLocked(conversation_id, holder) from None


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
