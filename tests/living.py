"""Which processes run, by their numbers."""

from __future__ import annotations

import os
from collections.abc import Callable

import anyio
import psutil


def _same(number: int) -> int | None:
    return number


class Numbers:
    """How a test's numbers of processes are this machine's: they are, unless a test has them from inside of a box."""

    of_machine: Callable[[int], int | None] = staticmethod(_same)


def still_running(*pids: int) -> list[int]:
    """Give those of the processes that run; one that only waits to be collected does not."""
    found: list[int] = []
    for pid in pids:
        here = Numbers.of_machine(pid)
        try:
            if here is not None and psutil.Process(here).status() != psutil.STATUS_ZOMBIE:
                found.append(pid)
        except psutil.NoSuchProcess:
            pass
    return found


def send_signal(pid: int, number: int) -> None:
    """Send a signal to one of them."""
    here = Numbers.of_machine(pid)
    assert here is not None, f"there is no process {pid}"
    os.kill(here, number)


async def until_gone(*pids: int) -> None:
    """Wait until none of the processes runs."""
    with anyio.fail_after(30):
        while still_running(*pids):
            await anyio.sleep(0.01)
