"""Looking at the processes there are. It blocks; `take_census` does it in a thread."""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress

from agentcore.workspace.environment import MARKS
from agentcore.workspace.tree import Seen

__all__ = ["gather", "look", "look_by_psutil", "look_in_proc"]

# A shell that is starting has the = of each variable overwritten for the moment in which it reads it.
_VARIABLE = re.compile(rb"(?:^|\0)%s[=\0]([^\0]+)" % MARKS.encode())
# Fields of /proc/PID/stat, counted from the third, the state.
_STATE, _PARENT, _GROUP, _SESSION, _FLAGS, _START, _ENV_START, _ENV_END = 0, 1, 2, 3, 6, 19, 47, 48
_KERNEL_THREAD = 0x00200000
_TIMES_EMPTY = 20
_PAUSE = 0.0005
_PATIENCE = 1.0


def look() -> dict[int, Seen]:
    """Look at all processes. Those of other users show no marks, and on some systems not even themselves."""
    return look_in_proc() if sys.platform == "linux" else look_by_psutil()


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


def look_in_proc() -> dict[int, Seen]:
    """Look on Linux: straight from /proc, which takes a quarter of the time that psutil takes for the same."""
    second = os.sysconf("SC_CLK_TCK")
    now = time.clock_gettime(time.CLOCK_BOOTTIME)
    own = _stat(os.getpid())
    own_start = int(own[_START]) if own else 0

    def listed() -> Iterable[int]:
        # Not by Path, which makes an object of each.
        return [int(name) for name in os.listdir("/proc") if name.isdigit()]

    def read(pid: int) -> Seen | None:
        fields = _stat(pid)
        if fields is None:
            return None
        start = int(fields[_START])
        # What is older than this program is nobody's descendant here.
        marks = _marks(pid, fields) if start >= own_start else ()
        age = now - start / second
        return Seen(
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
    """Read them; None where that takes too long, so that nobody can know."""
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
