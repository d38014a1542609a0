"""One writer at a time, across processes: an flock on a file that names its holder."""

from __future__ import annotations

import fcntl
import os
import socket
from datetime import UTC, datetime

from agentcore.errors import ConversationLocked

__all__ = ["lock_file"]


def lock_file(path: str, conversation_id: str) -> int:
    """Take the lock and give its descriptor; closing that lets go. Blocks on the disk only, never on the lock.

    Raises:
        ConversationLocked: somebody has it.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise ConversationLocked(conversation_id, _holder(descriptor)) from None
        name = f"process {os.getpid()} on {socket.gethostname()} since {datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, name.encode(), 0)
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


def _holder(descriptor: int) -> str:
    # The holder writes its name just after it has the lock, so for a moment there may be none.
    return os.pread(descriptor, 400, 0).decode(errors="replace") or "another process"
