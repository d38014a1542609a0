"""`ProcessTree`: a process that leads a session, all that descends from it, and its terminal; as `agentcore.workspace` ends them."""

from __future__ import annotations

import os
import signal
import sys
import time

from agentcore_sandbox.helper.children import (
    GRACE_SECONDS,
    KILL_SECONDS,
    Children,
    kill,
    send_signal,
    signal_group,
    spare,
)
from agentcore_sandbox.helper.table import Process, descendants

TYPE_CHECKING = False
if TYPE_CHECKING:
    from agentcore_sandbox.helper.loop import Steps


class ProcessTree:
    """The process is held (see `Children`) until it is noted here as collected: then a signal can't hit a stranger."""

    def __init__(self, children: Children, pid: int, mark: str, terminal: int | None) -> None:
        self.pid = pid
        self._children = children
        self._mark = mark
        self._terminal = terminal
        self._gone = False
        self._collected = False

    def collected(self) -> None:
        """Note that the process was collected and its terminal closed."""
        self._collected = True
        self._terminal = None

    def foreground(self) -> int:
        """Return the group that is in the foreground: the process's own, if there is no terminal."""
        if self._terminal is None:
            return self.pid
        try:
            group = os.tcgetpgrp(self._terminal)
        except OSError:
            return self.pid
        # Signalling group 0 or 1 would mean this program's own group, or everything.
        return group if group > 1 else self.pid

    def terminate(self) -> Steps[None]:
        """End all of it: SIGTERM to the groups, then to the processes that left them, and after a while SIGKILL."""
        self._gone = self._gone or self._children.has_left_nothing(self.pid)
        if self._gone or self._collected:
            return
        known: dict[int, int] = {}

        def members(seen: dict[int, Process]) -> set[int]:
            # One that left its session and threw its environment away is linked by its parent alone, which may be gone in a moment. So
            # what was found once is kept, with the time of its start, as numbers are used again.
            still = [pid for pid, start in known.items() if pid in seen and seen[pid].start == start]
            found = self._members(seen) | descendants(seen, still)
            known.update((pid, seen[pid].start) for pid in found)
            return found

        members((yield from self._children.snapshot()))
        groups = {self.pid, self.foreground()}
        for group in groups:
            signal_group(group, signal.SIGTERM)
            if self._terminal is not None:
                # An interactive shell takes no notice of SIGTERM. This is what it gets when its window is closed.
                signal_group(group, signal.SIGHUP)
            signal_group(group, signal.SIGCONT)
        signalled: set[int] = set()

        def ask(pid: int, each: Process) -> bool:
            if pid in signalled or each.group in groups:
                return True
            signalled.add(pid)
            return send_signal(pid, signal.SIGTERM)

        left = yield from self._children.until_gone(members, ask, GRACE_SECONDS)
        if left:
            left = yield from self._children.kill_all(members)
        self._gone = not left
        if left:
            print(f"started by process {self.pid} and could not be ended: {sorted(left)}", file=sys.stderr)  # noqa: T201

    def interrupt(self, started_within: float | None) -> Steps[bool]:
        """End what is in the foreground of the terminal, and what was started lately; see `Process.interrupt`."""
        began = time.monotonic()

        def lately(seen: dict[int, Process]) -> set[int]:
            if started_within is None:
                return set()
            limit = started_within + time.monotonic() - began
            return {pid for pid in self._members(seen) if pid != self.pid and seen[pid].age() <= limit}

        def end(pid: int, each: Process) -> bool:
            # The shell first: while it read its input or started this, it may have lost what it was sent.
            self._signal_shell()
            return kill(pid, each)

        self._signal_shell()
        if self.foreground() == self.pid:
            yield from self._children.until_gone(lately, end, KILL_SECONDS)
            return False
        # The shell too, and first: a person's Ctrl-C reaches it by way of a job that dies of it, and this job may need more than that.
        # Otherwise it would go on to what stands behind the job, as the second one in `pytest; git push`.
        yield from self._end_group(self.foreground(), (signal.SIGINT, signal.SIGTERM))
        yield from self._children.until_gone(lately, end, KILL_SECONDS)
        for _ in range(3):
            if (yield from self._is_in_foreground()):
                return True
            # The shell went on to something else: it is in a loop, which SIGINT ends.
            if self._collected:
                return True
            self._signal_shell()
            yield from self._end_group(self.foreground(), ())
        return (yield from self._is_in_foreground())

    def _members(self, seen: dict[int, Process]) -> set[int]:
        return self._children.members(seen, None if self._collected else self.pid, self._mark)

    def _signal_shell(self) -> None:
        if not self._collected:
            signal_group(self.pid, signal.SIGINT)

    def _end_group(self, group: int, first: tuple[int, ...]) -> Steps[None]:
        affected: set[int] = set()

        def left(seen: dict[int, Process]) -> set[int]:
            # A child is linked to its parent only while both live, so what was found once is kept.
            affected.update(descendants(seen, [*affected, *(pid for pid in seen if seen[pid].group == group)]))
            affected.difference_update((0, 1, self.pid, os.getpid()))
            return affected & seen.keys()

        left((yield from self._children.snapshot()))
        for number in first:
            # Again each time: it may have been starting this job, and have lost the first one.
            self._signal_shell()
            # A job inherits its shell's handlers until it replaces its program: what comes before that may be lost on it. One that is
            # well begun dies of its SIGINT on the spot, so a SIGTERM behind it changes nothing any more.
            signal_group(group, signal.SIGINT)
            signal_group(group, number)
            signal_group(group, signal.SIGCONT)
            if not (yield from self._children.until_gone(left, spare, GRACE_SECONDS / len(first))):
                return
        yield from self._children.until_gone(left, kill, KILL_SECONDS)

    def _is_in_foreground(self) -> Steps[bool]:
        # A shell takes a moment to notice that its job has ended, and to take its terminal back.
        deadline = time.monotonic() + GRACE_SECONDS / 2
        while self.foreground() != self.pid:
            if time.monotonic() >= deadline:
                return False
            yield 0.005
        return True
