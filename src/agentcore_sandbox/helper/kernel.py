"""The kernel's part, for which the standard library has no functions: orphans, looking into the helper, and who dies first without memory."""

from __future__ import annotations

import ctypes
import os

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

    def fork(self) -> int:
        """Fork a process that is ended sooner than this one when memory runs out."""
        self._set_score(min(self._score + _MORE_LIKELY, _MOST_LIKELY))
        try:
            pid = os.fork()
        except BaseException:
            self._set_score(self._score)
            raise
        if pid:
            self._set_score(self._score)
        return pid

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
