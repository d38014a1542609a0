"""Which processes belong together, wherever they went.

A descendant is known by a mark in its environment, by its session, or by its parent: who leaves the group is still in the
session, who leaves the session (setsid, a daemon) still has the mark, and who throws its environment away still has a
parent. All of this is one look at the processes there are; it blocks, so see `Census` for how to take one.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import NamedTuple

from agentcore.workspace.environment import MARKS

__all__ = ["Seen", "descendants", "gather", "look", "look_by_psutil", "look_in_proc", "offspring"]

_VARIABLE = f"{MARKS}=".encode()
_KERNEL_THREAD = 0x00200000


class Seen(NamedTuple):
    """One process, as it was when it was looked at. One that has ended and only waits to be collected is not seen."""

    parent: int
    group: int
    session: int
    age: float
    """Seconds since it was started."""
    marks: tuple[bytes, ...]
    """Of the processes it descends from, the outermost first."""


def look() -> dict[int, Seen]:
    """Look at all processes; those of other users show neither marks nor, on some systems, themselves."""
    return look_in_proc() if sys.platform == "linux" else look_by_psutil()


def descendants(seen: Mapping[int, Seen], root: int | None, mark: bytes) -> set[int]:
    """Find a process that leads its session, and all its descendants, among those that were seen.

    Without `root` (its number may be somebody else's by now), they are found by the mark alone.
    """
    found = {pid for pid, each in seen.items() if root in {pid, each.session} or mark in each.marks}
    # A session is made by its first process and joined by nobody else, so all in it descend from that one.
    _grow(seen, found, lambda: {seen[pid].session for pid in found})
    return found


def offspring(seen: Mapping[int, Seen], start: Iterable[int]) -> set[int]:
    """Find some processes and their descendants that are linked to them by parents, or by a session they made."""
    found = {pid for pid in start if pid in seen}
    _grow(seen, found, lambda: found)
    return found


def _grow(seen: Mapping[int, Seen], found: set[int], sessions: Callable[[], set[int]]) -> None:
    # Whatever was marked by mistake, this process and its own session are never part of it.
    never, own_session = {0, 1, os.getpid()}, os.getsid(0)
    found -= never
    size = -1
    while size != len(found):
        size = len(found)
        theirs = sessions() - {0, 1, own_session}
        found |= {pid for pid, each in seen.items() if each.parent in found or each.session in theirs} - never


def gather(listed: Callable[[], Iterable[int]], read: Callable[[int], Seen | None]) -> dict[int, Seen]:
    """Read all processes that are listed, those included that come up meanwhile."""
    seen: dict[int, Seen] = {}
    known: set[int] = set()
    # A process that forks and ends while this goes on would not be seen, nor would its child. The child is in the next
    # list; so list until nothing is new. Bounded, for where something is new all the time.
    for _ in range(10):
        new = [pid for pid in listed() if pid not in known]
        if not new:
            break
        known.update(new)
        for pid in new:
            if (each := read(pid)) is not None:
                seen[pid] = each
    return seen


def look_in_proc() -> dict[int, Seen]:
    """Look on Linux: straight from /proc, which takes a quarter of the time that psutil takes for the same."""
    ticks = os.sysconf("SC_CLK_TCK")
    now = time.clock_gettime(time.CLOCK_BOOTTIME)

    def listed() -> Iterable[int]:
        # Not by Path, which makes an object of each.
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]

    def read(pid: int) -> Seen | None:
        fields = _fields(pid)
        if fields is None:
            return None
        return Seen(
            int(fields[1]), int(fields[2]), int(fields[3]), now - int(fields[19]) / ticks, _marks_of(pid, fields)
        )

    return gather(listed, read)


def _fields(pid: int) -> list[bytes] | None:
    """Give the fields of /proc/PID/stat from the third on, the state; None if it has ended."""
    try:
        stat = _content(f"/proc/{pid}/stat")
    except OSError:
        return None
    # The second field is the program's name in parentheses, which may itself hold spaces and parentheses.
    fields = stat[stat.rindex(b")") + 2 :].split()
    return None if fields[0] in {b"Z", b"X"} else fields


def _marks_of(pid: int, fields: list[bytes] | None) -> tuple[bytes, ...]:
    # While a process replaces its program, it has no environment to be seen: not even an empty one, which has an address.
    # That takes well under a millisecond, but a process that was missed then would live on.
    for _ in range(100):
        if fields is None or int(fields[6]) & _KERNEL_THREAD:
            return ()
        try:
            variables = _content(f"/proc/{pid}/environ")
        except OSError:
            return ()
        if variables:
            return _marks(variables)
        fields = _fields(pid)
        if fields is None or fields[47] == b"0":
            time.sleep(0.0005)
        elif fields[47] == fields[48]:
            return ()
    return ()


def _content(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        pieces: list[bytes] = []
        while piece := os.read(descriptor, 65536):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(descriptor)


def _marks(variables: bytes) -> tuple[bytes, ...]:
    start = 0 if variables.startswith(_VARIABLE) else variables.find(b"\0" + _VARIABLE) + 1
    if not variables.startswith(_VARIABLE, start):
        return ()
    return tuple(variables[start + len(_VARIABLE) :].split(b"\0", 1)[0].split(b":"))


def look_by_psutil() -> dict[int, Seen]:
    """Look on any system."""
    # Here and not above: importing it takes time, and on Linux nothing needs it.
    import psutil  # noqa: PLC0415

    now = time.time()

    def read(pid: int) -> Seen | None:
        try:
            process = psutil.Process(pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                return None
            marks: tuple[bytes, ...] = ()
            with suppress(psutil.AccessDenied):
                marks = tuple(os.fsencode(mark) for mark in process.environ().get(MARKS, "").split(":") if mark)
            return Seen(process.ppid(), os.getpgid(pid), os.getsid(pid), now - process.create_time(), marks)
        except (psutil.Error, OSError):
            return None

    return gather(psutil.pids, read)
