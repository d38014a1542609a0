"""The table of the processes in the box, as `agentcore/workspace/process_table.py` reads it on a machine."""

from __future__ import annotations

import os
import re
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterable

MARKS = "AGENTCORE_PROCESSES"
"""Inherited by all descendants of a process: the marks of the processes around them, the outermost first, with colons between."""

# A shell that is starting has the = of each variable overwritten for the moment in which it reads it.
_VARIABLE = re.compile(rb"(?:^|\0)%s[=\0]([^\0]+)" % MARKS.encode())
# Fields of /proc/PID/stat, counted from the third, the state.
_STATE, _PARENT, _GROUP, _SESSION, _FLAGS, _START, _ENV_START, _ENV_END = 0, 1, 2, 3, 6, 19, 47, 48
_KERNEL_THREAD = 0x00200000
_TIMES_EMPTY = 20
_PAUSE = 0.0005
# Nothing else goes on meanwhile; what is not known after that is looked at again.
_PATIENCE = 0.1
_ROUNDS = 10
_TICKS = os.sysconf("SC_CLK_TCK")


class Process:
    """One process, as it was when it was looked at."""

    __slots__ = ("ended", "fields", "group", "marks", "parent", "pid", "session", "start", "uncertain")

    def __init__(self, pid: int, fields: list[bytes]) -> None:
        self.pid = pid
        self.fields = fields
        self.parent = int(fields[_PARENT])
        self.group = int(fields[_GROUP])
        self.session = int(fields[_SESSION])
        self.start = int(fields[_START])
        """In ticks since the machine started."""
        self.ended = fields[_STATE] in (b"Z", b"X")
        """True if it only waits to be collected."""
        self.marks: tuple[bytes, ...] = ()
        """Of the processes it descends from, the outermost first."""
        self.uncertain = False
        """True if it may have marks that could not be read, because it was replacing its program all the time."""

    @property
    def is_kernel_thread(self) -> bool:
        return bool(int(self.fields[_FLAGS]) & _KERNEL_THREAD)

    def age(self) -> float:
        """Return the seconds since it was started."""
        return time.clock_gettime(time.CLOCK_BOOTTIME) - self.start / _TICKS


def read_processes(marked: Callable[[dict[int, Process]], set[int]]) -> dict[int, Process]:
    """Look at all processes, and at the marks of those that `marked` chooses; ended ones among them."""
    seen: dict[int, Process] = {}
    known: set[int] = set()
    # A process that forks and ends while this goes on would not be seen, nor would its child. The child is in the next list; so list
    # until nothing is new. Bounded, for where something is new all the time.
    for _ in range(_ROUNDS):
        try:
            new = [int(name) for name in os.listdir("/proc") if name.isdigit() and int(name) not in known]
        except OSError:
            break
        if not new:
            break
        known.update(new)
        for pid in new:
            fields = _stat(pid)
            if fields is not None:
                seen[pid] = Process(pid, fields)
    for pid in marked(seen):
        each = seen[pid]
        if not each.ended:
            marks = _marks(pid, each.fields)
            each.marks, each.uncertain = marks or (), marks is None
    return seen


def read_process(pid: int) -> Process | None:
    """Look at one process; None if it is not there or has ended."""
    fields = _stat(pid)
    if fields is None:
        return None
    found = Process(pid, fields)
    return None if found.ended else found


def descendants(seen: dict[int, Process], start: Iterable[int]) -> set[int]:
    """Find some processes and their descendants that are linked to them by parents, or by a session that one of them made."""
    found = {pid for pid in start if pid in seen}
    children: dict[int, list[int]] = {}
    for pid, each in seen.items():
        children.setdefault(each.parent, []).append(pid)
        if each.session not in (pid, 0, 1):
            children.setdefault(each.session, []).append(pid)
    waiting = list(found)
    while waiting:
        for child in children.get(waiting.pop(), ()):
            if child not in found:
                found.add(child)
                waiting.append(child)
    return found


def ancestors(seen: dict[int, Process], pid: int) -> set[int]:
    """Find a process and those it descends from."""
    found: set[int] = set()
    while pid in seen and pid not in found:
        found.add(pid)
        pid = seen[pid].parent
    return found


def _stat(pid: int) -> list[bytes] | None:
    try:
        stat = read_text(f"/proc/{pid}/stat")
    except OSError:
        return None
    # The second field is the program's name in parentheses, which may itself hold spaces and parentheses.
    fields = stat[stat.rfind(b")") + 2 :].split()
    return fields if len(fields) > _ENV_END else None


def _marks(pid: int, fields: list[bytes]) -> tuple[bytes, ...] | None:
    """Read them; None where that takes too long, so that it stays unknown."""
    if int(fields[_FLAGS]) & _KERNEL_THREAD:
        return ()
    # While a process replaces its program, its environment may not be looked at, or is not there, or is there in part. So what was
    # read counts only if it has the right length, at a place that did not change meanwhile. That there is nothing counts if it is so
    # again and again, and either has a place or the process is asleep, as it is not in the middle of that.
    empty = 0
    deadline = time.monotonic() + _PATIENCE
    while empty < _TIMES_EMPTY:
        try:
            variables = read_text(f"/proc/{pid}/environ")
        except PermissionError:
            if not _is_ours(pid):
                return ()
            variables = b""
        except OSError:
            return ()
        before, after = fields, _stat(pid)
        if after is None or after[_STATE] in (b"Z", b"X"):
            return ()
        fields = after
        start_of, end_of = int(fields[_ENV_START]), int(fields[_ENV_END])
        stays = (start_of, end_of) == (int(before[_ENV_START]), int(before[_ENV_END]))
        if variables and stays and len(variables) == end_of - start_of:
            found = _VARIABLE.search(variables)
            return tuple(found.group(1).split(b":")) if found else ()
        empty += not variables and start_of == end_of and (start_of != 0 or fields[_STATE] not in (b"R", b"D"))
        if time.monotonic() > deadline:
            return None
        time.sleep(_PAUSE)
    return ()


def _is_ours(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True


def read_text(path: str) -> bytes:
    """Read a file of /proc."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        pieces: list[bytes] = []
        while True:
            piece = os.read(descriptor, 65536)
            if not piece:
                return b"".join(pieces)
            pieces.append(piece)
    finally:
        os.close(descriptor)
