"""Ending processes with everything that descends from them."""

from __future__ import annotations

import logging
import os
import signal
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Final, final

import anyio

from agentcore.workspace.process_table import ProcessInfo, descendants, read_processes, snapshot, tree_members

GRACE_SECONDS: Final = 0.2
"""How long a process has, from the first signal to SIGKILL."""
CLOSE_SECONDS: Final = 5.0
"""After so long, ending a process is given up: what is left then can't be killed (it waits for a dead disk, say)."""

# Within that, to find out and say that something is left.
_KILL_SECONDS: Final = CLOSE_SECONDS - GRACE_SECONDS - 0.8
_PAUSE: Final = 0.002
_AGREEING: Final = 2
_log = logging.getLogger(__name__)


@final
class ProcessTree:
    """A process that leads a session, all that descends from it, and its terminal if it has one.

    Until the process is collected (its parent's `wait`) its number, and that of its group and session, stay its own.
    So it is collected last, and said so here: then a signal can't hit a stranger.
    """

    def __init__(self, pid: int, mark: str, terminal: int | None) -> None:
        self.pid = pid
        self.mark = mark
        self._terminal = terminal
        self._gone = False
        self._collected = False

    def collected(self) -> None:
        """Note that the process was collected and its terminal closed."""
        self._collected = True
        self._terminal = None

    def foreground(self) -> int:
        """Return the group that is in the foreground: the process's own, if there is no terminal."""
        group = None if self._terminal is None else foreground_group(self._terminal)
        return self.pid if group is None else group

    async def terminate(self) -> None:
        """End all of it: SIGTERM to the groups, then to the processes that left them, and after a while SIGKILL."""
        if self._gone or self._collected:
            return
        groups = {self.pid, self.foreground()}
        for group in groups:
            _signal_group(group, signal.SIGTERM)
            if self._terminal is not None:
                # An interactive shell takes no notice of SIGTERM. This is what it gets when its window is closed.
                _signal_group(group, signal.SIGHUP)
            _signal_group(group, signal.SIGCONT)
        signalled: set[int] = set()

        def tell(pid: int, each: ProcessInfo) -> bool:
            if pid in signalled or each.group in groups:
                return True
            signalled.add(pid)
            return _signal(pid, signal.SIGTERM)

        left = await _until_gone(self._members, tell, GRACE_SECONDS)
        if left:
            left = await _until_gone(self._members, _kill, _KILL_SECONDS)
        self._gone = not left
        if left:
            _log.warning("Started by process %d and could not be ended: %s", self.pid, sorted(left))

    async def interrupt(self, started_within: float | None) -> bool:
        """End what is in the foreground of the terminal, and what was started lately; see `Process.interrupt`."""
        began = anyio.current_time()

        def lately(seen: Mapping[int, ProcessInfo]) -> set[int]:
            if started_within is None:
                return set()
            limit = started_within + anyio.current_time() - began
            return {pid for pid in self._members(seen) if pid != self.pid and seen[pid].age <= limit}

        def end(pid: int, each: ProcessInfo) -> bool:
            # The shell first: while it read its input or started this, it may have lost what it was told.
            if not self._collected:
                _signal_group(self.pid, signal.SIGINT)
            return _kill(pid, each)

        if self.foreground() == self.pid:
            _signal_group(self.pid, signal.SIGINT)
            await _until_gone(lately, end, _KILL_SECONDS)
            return False
        # The shell too, and first: a person's Ctrl-C tells it by way of a job that dies of it, and this job may need more than
        # that. A shell that was not told would go on to what stands behind the job, as the second one in `pytest; git push`.
        _signal_group(self.pid, signal.SIGINT)
        await self._end_group(self.foreground(), (signal.SIGINT, signal.SIGTERM))
        await _until_gone(lately, end, _KILL_SECONDS)
        for _ in range(3):
            if await self._is_in_foreground():
                return True
            # The shell went on to something else: it is in a loop, which SIGINT ends.
            if self._collected:
                return True
            _signal_group(self.pid, signal.SIGINT)
            await self._end_group(self.foreground(), ())
        return await self._is_in_foreground()

    def _members(self, seen: Mapping[int, ProcessInfo]) -> set[int]:
        return tree_members(seen, None if self._collected else self.pid, self.mark.encode())

    async def _end_group(self, group: int, first: tuple[signal.Signals, ...]) -> None:
        affected: set[int] = set()

        def left(seen: Mapping[int, ProcessInfo]) -> set[int]:
            # A child is linked to its parent only while both live, so what was found once is kept.
            affected.update(descendants(seen, [*affected, *(pid for pid in seen if seen[pid].group == group)]))
            affected.discard(self.pid)
            return affected & seen.keys()

        left(await snapshot())
        for number in first:
            if not self._collected:
                # Again each time: it may have been starting this job, and have lost the first one.
                _signal_group(self.pid, signal.SIGINT)
                # A job inherits its shell's handlers until it replaces its program: what comes before that may be lost on it.
                # One that is well begun dies of its SIGINT on the spot, so a SIGTERM behind it changes nothing any more.
                _signal_group(group, signal.SIGINT)
                _signal_group(group, number)
                _signal_group(group, signal.SIGCONT)
            if not await _until_gone(left, _spare, GRACE_SECONDS / len(first)):
                return
        await _until_gone(left, _kill, _KILL_SECONDS)

    async def _is_in_foreground(self) -> bool:
        # A shell takes a moment to notice that its job has ended, and to take its terminal back.
        deadline = anyio.current_time() + GRACE_SECONDS / 2
        while self.foreground() != self.pid:
            if anyio.current_time() >= deadline:
                return False
            await anyio.sleep(0.005)
        return True


def kill_tree(pid: int, mark: str) -> None:
    """Kill a process that is not collected yet, with all that descends from it, at once. Blocks."""
    deadline = time.monotonic() + CLOSE_SECONDS
    while True:
        _signal_group(pid, signal.SIGKILL)
        seen = read_processes()
        left = [each for each in tree_members(seen, pid, mark.encode()) if _kill(each, seen[each])]
        if not left or time.monotonic() >= deadline:
            return
        time.sleep(_PAUSE)


def foreground_group(terminal: int) -> int | None:
    """Return the process group in the foreground of the terminal whose other end this is, or None."""
    try:
        group = os.tcgetpgrp(terminal)
    except OSError:
        return None
    # Signalling group 0 or 1 would mean this program's own group, or everything.
    return group if group > 1 else None


async def _until_gone(
    who: Callable[[Mapping[int, ProcessInfo]], set[int]], act: Callable[[int, ProcessInfo], bool], seconds: float
) -> set[int]:
    """Do something to these processes, looked up again and again, until none is left or the time is over.

    Gives those that are left. Those that can't be signalled are not waited for.
    """
    deadline = anyio.current_time() + seconds
    beyond: set[int] = set()
    pause = _PAUSE
    # A process that is about to be another program shows no mark, and its parent may have ended. Where there were any to
    # begin with, or one can't be told, another look has to find that none is left.
    empty, needed = 0, 1
    while True:
        seen = await snapshot()
        left = who(seen)
        beyond |= {pid for pid in left - beyond if not act(pid, seen[pid])}
        if left - beyond:
            empty, needed = 0, _AGREEING
            if anyio.current_time() >= deadline:
                return left
        else:
            empty += 1
            if any(each.uncertain for each in seen.values()):
                needed = _AGREEING
            if empty >= needed:
                return left
        await anyio.sleep(pause)
        pause = min(pause * 2, 0.03)


def _spare(_pid: int, _seen: ProcessInfo) -> bool:
    return True


def _kill(pid: int, _seen: ProcessInfo) -> bool:
    return _signal(pid, signal.SIGKILL)


def _signal(pid: int, number: signal.Signals) -> bool:
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
    except PermissionError:
        return False
    return True


def _signal_group(group: int, number: signal.Signals) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
