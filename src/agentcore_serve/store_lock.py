"""One server for each store: a lock that its process holds, with its process id in the file."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

from agentcore.errors import AgentcoreError


class StoreInUse(AgentcoreError):
    """Another server works on the store."""

    def __init__(self, store: Path, holder: str) -> None:
        super().__init__(
            f"{str(store)!r} is served by {holder} already. Stop that server first, or pass another --store."
        )


@contextmanager
def hold_store(store: Path) -> Generator[None]:
    """Hold a store for this process for as long as the block lasts. It may touch the disk: not on an event loop.

    Raises:
        StoreInUse: Another server holds it.
    """
    store.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(store / "serve.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 64).decode(errors="replace").strip()
            raise StoreInUse(store, f"process {holder}" if holder else "another process") from None
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, str(os.getpid()).encode(), 0)
        yield
    finally:
        os.close(descriptor)
