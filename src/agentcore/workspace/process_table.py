"""The table of this machine's processes: which there are, and which belong together."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final, NamedTuple, final

import anyio
from anyio.lowlevel import RunVar

from agentcore._threads import Threads

MARKS: Final = "AGENTCORE_PROCESSES"
"""Inherited by all descendants of a process, so that they are found wherever they went: the marks of the processes around
them, the outermost first, with colons between."""


class ProcessInfo(NamedTuple):
    """One process, as it was when it was looked at. One that has ended and only waits to be collected is not seen."""

    parent: int
    group: int
    session: int
    age: float
    """Seconds since it was started."""
    marks: tuple[bytes, ...]
    """Of the processes it descends from, the outermost first."""
    uncertain: bool = False
    """True if it may have marks that could not be read, because it was replacing its program all the time."""


def tree_members(seen: Mapping[int, ProcessInfo], root: int | None, mark: bytes) -> set[int]:
    """Find a process that leads its session, and all its descendants, among those that were seen.

    Without `root` (its number may be somebody else's by now), they are found by the mark alone.
    """
    found = {pid for pid, each in seen.items() if root in {pid, each.session} or mark in each.marks}
    # A session is made by its first process and joined by nobody else, so all in it descend from that one.
    _grow(seen, found, lambda: {seen[pid].session for pid in found})
    return found


def descendants(seen: Mapping[int, ProcessInfo], start: Iterable[int]) -> set[int]:
    """Find some processes and their descendants that are linked to them by parents, or by a session they made."""
    found = {pid for pid in start if pid in seen}
    _grow(seen, found, lambda: found)
    return found


def _grow(seen: Mapping[int, ProcessInfo], found: set[int], sessions: Callable[[], set[int]]) -> None:
    # Whatever was marked by mistake, this process and its own session are never part of it.
    never, own_session = {0, 1, os.getpid()}, os.getsid(0)
    found -= never
    size = -1
    while size != len(found):
        size = len(found)
        theirs = sessions() - {0, 1, own_session}
        found |= {pid for pid, each in seen.items() if each.parent in found or each.session in theirs} - never


_THREAD = Threads("process_table", 1)

# A shell that is starting has the = of each variable overwritten for the moment in which it reads it.
_VARIABLE = re.compile(rb"(?:^|\0)%s[=\0]([^\0]+)" % MARKS.encode())
# Fields of /proc/PID/stat, counted from the third, the state.
_STATE, _PARENT, _GROUP, _SESSION, _FLAGS, _START, _ENV_START, _ENV_END = 0, 1, 2, 3, 6, 19, 47, 48
_KERNEL_THREAD = 0x00200000
_TIMES_EMPTY = 20
_PAUSE = 0.0005
_PATIENCE = 1.0


def read_processes() -> dict[int, ProcessInfo]:
    """Look at all processes. Those of other users show no marks, and on some systems not even themselves."""
    return read_from_proc() if sys.platform == "linux" else read_by_psutil()


def gather(listed: Callable[[], Iterable[int]], read: Callable[[int], ProcessInfo | None]) -> dict[int, ProcessInfo]:
    """Read all processes that are listed, those included that come up meanwhile."""
    seen: dict[int, ProcessInfo] = {}
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


def read_by_psutil() -> dict[int, ProcessInfo]:
    """Look on any system."""
    # Here and not above: importing it takes time, and on Linux nothing needs it.
    import psutil  # noqa: PLC0415

    now = time.time()

    def read(pid: int) -> ProcessInfo | None:
        try:
            process = psutil.Process(pid)
            if process.status() == psutil.STATUS_ZOMBIE:
                return None
            marks: tuple[bytes, ...] = ()
            with suppress(psutil.AccessDenied):
                marks = tuple(os.fsencode(mark) for mark in process.environ().get(MARKS, "").split(":") if mark)
            return ProcessInfo(process.ppid(), os.getpgid(pid), os.getsid(pid), now - process.create_time(), marks)
        except (psutil.Error, OSError):
            return None

    return gather(psutil.pids, read)


def read_from_proc() -> dict[int, ProcessInfo]:
    """Look on Linux: straight from /proc, which takes a quarter of the time that psutil takes for the same."""
    second = os.sysconf("SC_CLK_TCK")
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    own = _stat(os.getpid())
    own_start = int(own[_START]) if own else 0

    def listed() -> Iterable[int]:
        # Not by Path, which makes an object of each.
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]

    def read(pid: int) -> ProcessInfo | None:
        fields = _stat(pid)
        if fields is None:
            return None
        start = int(fields[_START])
        # What is older than this program is nobody's descendant here.
        marks = _marks(pid, fields) if start >= own_start else ()
        age = now - start / second
        return ProcessInfo(
            int(fields[_PARENT]), int(fields[_GROUP]), int(fields[_SESSION]), age, marks or (), uncertain=marks is None
        )

    seen = gather(listed, read)
    for pid in _without.keys() - seen.keys():
        _without.pop(pid, None)
    return seen


def _stat(pid: int) -> list[bytes] | None:
    try:
        stat = _content(f"/proc/{pid}/stat")
    except OSError:
        return None
    # The second field is the program's name in parentheses, which may itself hold spaces and parentheses.
    fields = stat[stat.rindex(b")") + 2 :].split()
    return None if fields[_STATE] in {b"Z", b"X"} else fields


# Processes that have no environment, or do not let even their own user see it (ssh-agent, parts of browsers), and when they
# were started: so that it is found out once.
_without: dict[int, int] = {}


def _marks(pid: int, fields: list[bytes]) -> tuple[bytes, ...] | None:
    """Read them; None where that takes too long, so that it stays unknown."""
    start = int(fields[_START])
    if _without.get(pid) == start or int(fields[_FLAGS]) & _KERNEL_THREAD:
        return ()
    # While a process replaces its program, its environment may not be looked at, or is not there, or is there in part. That
    # takes far less than a millisecond where the machine is not busy, but a process that was missed would live on. So what was
    # read counts only if it has the right length, at a place that did not change meanwhile. That there is nothing counts if
    # it is so again and again, and either has a place or the process is asleep, as it is not in the middle of that.
    empty = 0
    deadline = time.monotonic() + _PATIENCE
    while empty < _TIMES_EMPTY:
        try:
            variables = _content(f"/proc/{pid}/environ")
        except PermissionError:
            if not _is_ours(pid):
                return ()
            variables = b""
        except OSError:
            return ()
        before, after = fields, _stat(pid)
        if after is None:
            return ()
        fields = after
        start_of, end_of = int(fields[_ENV_START]), int(fields[_ENV_END])
        stays = (start_of, end_of) == (int(before[_ENV_START]), int(before[_ENV_END]))
        if variables and stays and len(variables) == end_of - start_of:
            return _marks_in(variables)
        empty += not variables and start_of == end_of and (start_of != 0 or fields[_STATE] not in {b"R", b"D"})
        if time.monotonic() > deadline:
            return None
        time.sleep(_PAUSE)
    _without[pid] = start
    return ()


def _is_ours(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def _marks_in(variables: bytes) -> tuple[bytes, ...]:
    found = _VARIABLE.search(variables)
    return tuple(found[1].split(b":")) if found else ()


def _content(path: str) -> bytes:
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        pieces: list[bytes] = []
        while piece := os.read(descriptor, 65536):
            pieces.append(piece)
        return b"".join(pieces)
    finally:
        os.close(descriptor)


@final
class _Table:
    """A look serves all who asked before it began: a hundred commands that end together cost two looks, not a hundred."""

    def __init__(self) -> None:
        self._turn = anyio.Lock()
        self._begun = 0
        self._done = 0
        self._latest: Mapping[int, ProcessInfo] = {}

    async def take(self) -> Mapping[int, ProcessInfo]:
        asked_after = self._begun
        async with self._turn:
            if self._done <= asked_after:
                self._begun += 1
                self._latest = await _THREAD.run(read_processes)
                self._done = self._begun
            return self._latest


_table: RunVar[_Table] = RunVar("agentcore_process_table")


async def snapshot() -> Mapping[int, ProcessInfo]:
    """Return the table of all processes, read after this was called."""
    try:
        table = _table.get()
    except LookupError:
        table = _Table()
        _table.set(table)
    return await table.take()
