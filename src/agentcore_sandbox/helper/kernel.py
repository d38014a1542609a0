"""The kernel's part, for which the standard library has no functions: orphans, looking into the helper, and who dies first without memory."""

from __future__ import annotations

import ctypes
import fcntl
import os
import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

_SET_DUMPABLE, _SET_CHILD_SUBREAPER = 4, 36
# A command that eats the memory goes before the helper, which could not report it otherwise.
_MORE_LIKELY = 300
_MOST_LIKELY = 1000


class Kernel:
    """Set up at the start of the helper."""

    def __init__(self) -> None:
        self._score_file, self._score = _open_score()
        self.is_subreaper = False
        """True if whatever loses its parent here becomes a child of the helper."""
        try:
            libc = ctypes.CDLL(None)
            self.is_subreaper = libc.prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0) == 0
            # Commands of the same user can neither read its memory, where the variables of other commands are, nor write to its
            # stream. It opened its own score before, as that is closed to it too now.
            libc.prctl(_SET_DUMPABLE, 0, 0, 0, 0)
        except (AttributeError, OSError):
            pass

    def as_child(self, make: Callable[[], Any]) -> Any:
        """Call what makes a process, which then is ended sooner than this one when memory runs out."""
        self._set_score(min(self._score + _MORE_LIKELY, _MOST_LIKELY))
        made: Any = None
        try:
            made = make()
        finally:
            # Not in the new process itself, where a fork returns 0.
            if made != 0:
                self._set_score(self._score)
        return made

    def _set_score(self, score: int) -> None:
        if self._score_file >= 0:
            try:
                os.pwrite(self._score_file, str(score).encode(), 0)
            except OSError:
                pass


def _open_score() -> tuple[int, int]:
    try:
        file = os.open("/proc/self/oom_score_adj", os.O_RDWR | os.O_CLOEXEC)
    except OSError:
        return -1, 0
    return file, int(os.read(file, 16))


def open_signals() -> int:
    """Return a descriptor from which the numbers of the signals that came are read."""
    wakes, sink = os.pipe()
    os.set_blocking(wakes, False)
    os.set_blocking(sink, False)
    signal.set_wakeup_fd(sink, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
        signal.signal(number, _wake_up)
    return wakes


def _wake_up(_number: int, _frame: object) -> None:
    """Have a signal written to the descriptor, and nothing else."""


def take_stream() -> tuple[int, int]:
    """Take the stream away from descriptors 0 and 1, so that nothing else writes there, and no command inherits it."""
    source, sink = (fcntl.fcntl(number, fcntl.F_DUPFD_CLOEXEC, 10) for number in (0, 1))
    null = os.open(os.devnull, os.O_RDWR)
    for number in (0, 1):
        os.dup2(null, number)
    for name in os.listdir("/proc/self/fd"):
        if int(name) > 2:
            try:
                os.set_inheritable(int(name), False)
            except OSError:
                pass  # that of the listing itself
    for descriptor in (source, sink):
        os.set_blocking(descriptor, False)
    return source, sink
