"""`Children`: the processes that the helper started, and those that were left to it; who is there, who has ended."""

from __future__ import annotations

import os
import signal
import time

from agentcore_sandbox.helper.loop import Flag, Loop, Task
from agentcore_sandbox.helper.table import Process, descendants, read_processes, read_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from agentcore_sandbox.helper.loop import Steps

GRACE_SECONDS = 0.2
"""How long a process has, from the first signal to SIGKILL."""
CLOSE_SECONDS = 5.0
"""After so long, ending a process is given up: what is left then can't be killed (it waits for a dead disk, say)."""
# Within that, to find out and say that something is left.
KILL_SECONDS = CLOSE_SECONDS - GRACE_SECONDS - 0.8
_PAUSE = 0.002
_LONGEST_PAUSE = 0.03
_AGREEING = 2
_COLLECT_SECONDS = 1.0


class Children:
    """Collects those that have ended, but not those that are held: their numbers stay theirs."""

    def __init__(self, loop: Loop, mark: str, is_subreaper: bool) -> None:
        self.loop = loop
        self.mark = mark
        """The mark of everything that this helper started."""
        self._own = os.getpid()
        self._is_subreaper = is_subreaper
        self._held: dict[int, Flag] = {}
        self._codes: dict[int, int] = {}
        self._latest: dict[int, Process] = {}
        self._looking: Task | None = None
        self._collecting: Task | None = None

    def hold(self, pid: int) -> Flag:
        """Do not collect a process until `release`. The flag is fired when it ends."""
        flag = self._held[pid] = Flag()
        self._note_end(pid)
        return flag

    def code(self, pid: int) -> int | None:
        """Return the exit code of one that is held, or None while it runs."""
        if pid in self._held and pid not in self._codes:
            self._note_end(pid)
        return self._codes.get(pid)

    def release(self, pid: int) -> None:
        """Collect it, if it has ended, or as soon as it does."""
        self._held.pop(pid, None)
        self._codes.pop(pid, None)
        _collect(pid)

    def has_left_nothing(self, pid: int) -> bool:
        """Return True if one that is held has ended and nothing that descends from it can be there; False if that takes a look at all.

        What loses its parent becomes a child of the helper, at once: so if it has no children but those that are held, all that any
        of them left behind is gone.
        """
        if not self._is_subreaper or self.code(pid) is None:
            return False
        while True:
            try:
                listed = [int(each) for each in read_text(f"/proc/self/task/{self._own}/children").split()]
            except OSError:
                return False  # a kernel that has no such file
            others = [each for each in listed if each not in self._held]
            if not others:
                return True
            # One that has ended may have left children itself; only then they are listed.
            if not any(_collect(each) for each in others):
                return False

    def child_ended(self) -> None:
        """Look for those that have ended; called at each SIGCHLD."""
        for pid in list(self._held):
            if pid not in self._codes:
                self._note_end(pid)
        while True:
            try:
                ended = os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            except ChildProcessError:
                return
            if ended is None:
                return
            if ended.si_pid in self._held:
                # It may hide others, which a look at all processes finds.
                if self._collecting is None:
                    self._collecting = self.loop.start(self._collect_later())
                return
            _collect(ended.si_pid)

    def snapshot(self) -> Steps[dict[int, Process]]:
        """Return the processes that run, looked at after this was called. Those who call in the same moment share the look."""
        if self._looking is None:
            self._looking = self.loop.start(self._look())
        task = self._looking
        while not task.done:
            yield task.ended
        return self._latest

    def everything(self, seen: dict[int, Process]) -> set[int]:
        """Find all that this helper started, and what descends from that."""
        mark = self.mark.encode()
        found = descendants(seen, [self._own, *(pid for pid, each in seen.items() if mark in each.marks)])
        return found - {0, 1, self._own}

    def members(self, seen: dict[int, Process], root: int | None, mark: str) -> set[int]:
        """Find a process that leads its session, and all its descendants.

        Without `root` (its number may be somebody else's by now), they are found by the mark alone.
        """
        wanted = mark.encode()
        # Whatever was marked by mistake, this process and its own session are never part of it.
        never, no_session = {0, 1, self._own}, {0, 1, os.getsid(0)}
        found = {pid for pid, each in seen.items() if root in (pid, each.session) or wanted in each.marks} - never
        size = -1
        while size != len(found):
            size = len(found)
            # A session is made by its first process and joined by nobody else, so all in it descend from that one.
            sessions = {seen[pid].session for pid in found} - no_session
            found |= {pid for pid, each in seen.items() if each.parent in found or each.session in sessions} - never
        return found

    def until_gone(
        self,
        who: Callable[[dict[int, Process]], set[int]],
        act: Callable[[int, Process], bool],
        seconds: float,
    ) -> Steps[set[int]]:
        """Do something to these processes, looked up again and again, until none is left or the time is over.

        Returns those that are left. Those that can't be signalled are not waited for.
        """
        beyond: set[int] = set()
        pause = _PAUSE
        # A process that is about to be another program shows no mark, and its parent may have ended. Where there were any to begin
        # with, or one can't be told, another look has to find that none is left.
        empty, needed = 0, 1
        deadline = time.monotonic() + seconds
        while True:
            seen = yield from self.snapshot()
            left = who(seen)
            beyond |= {pid for pid in left - beyond if not act(pid, seen[pid])}
            if left - beyond:
                empty, needed = 0, _AGREEING
                if time.monotonic() >= deadline:
                    return left
            else:
                empty += 1
                if any(each.uncertain for each in seen.values()):
                    needed = _AGREEING
                if empty >= needed or time.monotonic() >= deadline + CLOSE_SECONDS:
                    return left
            yield pause
            pause = min(pause * 2, _LONGEST_PAUSE)

    def kill_all(self, who: Callable[[dict[int, Process]], set[int]]) -> Steps[set[int]]:
        """Kill these processes. Returns what could not be killed.

        They are stopped first, until there is no other one: where there may be no more processes, what forks for ever would have another
        in the place of each that is killed.
        """
        began = time.monotonic()
        stopped: set[tuple[int, int]] = set()
        while time.monotonic() < began + KILL_SECONDS / 2:
            seen = yield from self.snapshot()
            found = {(pid, seen[pid].start) for pid in who(seen)}
            if found <= stopped:
                break
            for pid, _ in found - stopped:
                send_signal(pid, signal.SIGSTOP)
            stopped |= found
        return (yield from self.until_gone(who, kill, began + KILL_SECONDS - time.monotonic()))

    def end_all(self) -> Steps[set[int]]:
        """End everything: SIGTERM, after a while SIGKILL. Returns what could not be ended."""
        signalled: set[int] = set()

        def ask(pid: int, _: Process) -> bool:
            if pid in signalled:
                return True
            signalled.add(pid)
            return send_signal(pid, signal.SIGTERM) and send_signal(pid, signal.SIGCONT)

        left = yield from self.until_gone(self.everything, ask, GRACE_SECONDS)
        if left:
            left = yield from self.kill_all(self.everything)
        return left

    def _note_end(self, pid: int) -> None:
        try:
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
        except ChildProcessError:
            # The system was told to forget children: how it ended is lost.
            self._codes[pid] = 255
        else:
            if ended is None:
                return
            status = ended.si_status
            self._codes[pid] = status if ended.si_code == os.CLD_EXITED else 128 + status
        self._held[pid].fire()

    def _look(self) -> Steps[None]:
        yield None
        self._looking = None
        seen = read_processes(self._suspects)
        for pid, each in list(seen.items()):
            if each.ended:
                del seen[pid]
                if each.parent == self._own and pid not in self._held:
                    _collect(pid)
        self._latest = seen

    def _suspects(self, seen: dict[int, Process]) -> set[int]:
        if self._is_subreaper:
            return descendants(seen, [self._own]) - {self._own}
        # What is older than this program is nobody's descendant here.
        own = seen.get(self._own)
        return {pid for pid, each in seen.items() if own is not None and each.start >= own.start} - {self._own}

    def _collect_later(self) -> Steps[None]:
        yield _COLLECT_SECONDS
        self._collecting = None
        yield from self.snapshot()


def kill(pid: int, _: Process) -> bool:
    return send_signal(pid, signal.SIGKILL)


def spare(_pid: int, _process: Process) -> bool:
    return True


def send_signal(pid: int, number: int) -> bool:
    """Send a signal; False if it may not be sent there."""
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        pass
    except PermissionError:
        return False
    return True


def signal_group(group: int, number: int) -> None:
    try:
        os.killpg(group, number)
    except (ProcessLookupError, PermissionError):
        pass


def _collect(pid: int) -> bool:
    """Collect a child if it has ended, and return whether it had."""
    try:
        return os.waitpid(pid, os.WNOHANG)[0] == pid
    except ChildProcessError:
        return False
