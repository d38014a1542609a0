"""Which processes run, by their numbers."""

from __future__ import annotations

import anyio
import psutil


def still_running(*pids: int) -> list[int]:
    """Give those of the processes that run; one that only waits to be collected does not."""
    found: list[int] = []
    for pid in pids:
        try:
            if psutil.Process(pid).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
        except psutil.NoSuchProcess:
            pass
    return found


async def until_gone(*pids: int) -> None:
    """Wait until none of the processes runs."""
    with anyio.fail_after(30):
        while still_running(*pids):
            await anyio.sleep(0.01)
