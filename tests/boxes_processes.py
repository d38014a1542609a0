"""Processes in boxes that a test has open, by the numbers that they have inside."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import psutil


def number_in_bubblewrap(inside: int) -> int | None:
    """Return the number on this machine of what has this number in the bubblewrap box of this program."""
    below = {each.pid for each in psutil.Process().children(recursive=True)}
    return _find(inside, lambda pid: pid in below)


def numbers_in_container(container: str) -> Callable[[int], int | None]:
    """Return a function that does so for a container, by the id that the engine has for it."""
    return partial(_find, belongs=lambda pid: container in Path(f"/proc/{pid}/cgroup").read_text())


def _find(inside: int, belongs: Callable[[int], bool]) -> int | None:
    for pid in psutil.pids():
        with suppress(OSError):
            lines = Path(f"/proc/{pid}/status").read_text().splitlines()
            _, *numbers = next((line for line in lines if line.startswith("NSpid:")), "").split() or [""]
            if len(numbers) > 1 and int(numbers[-1]) == inside and belongs(pid):
                return pid
    return None
