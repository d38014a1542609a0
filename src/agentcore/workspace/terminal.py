"""Pseudo-terminals: opening one, its size, and who is in its foreground."""

from __future__ import annotations

import os
import sys
from typing import Final

if sys.platform != "win32":
    import termios

__all__ = ["CLAIM", "foreground_group", "open_terminal", "set_size"]

# For bash, with the terminal's path as $0 and a program with its arguments behind. A terminal belongs to the session whose
# leader opens it without saying otherwise, and bash does not. Doing it between fork and exec would need Python code in the
# forked process, which is not safe where there are threads.
CLAIM: Final = ': <>"$0"; exec "$@"'


def open_terminal(size: tuple[int, int]) -> tuple[int, int]:
    """Make a terminal of so many columns and rows, and give this program's end of it and the other."""
    ours, theirs = os.openpty()
    try:
        set_size(theirs, *size)
    except BaseException:
        os.close(ours)
        os.close(theirs)
        raise
    return ours, theirs


def set_size(terminal: int, columns: int, rows: int) -> None:
    """Set its size; the foreground group gets SIGWINCH if that is another one than before."""
    termios.tcsetwinsize(terminal, (rows, columns))


def foreground_group(terminal: int) -> int | None:
    """Tell which process group is in the foreground of the terminal that this is our end of, if any is."""
    try:
        group = os.tcgetpgrp(terminal)
    except OSError:
        return None
    # Signalling group 0 or 1 would mean this program's own group, or everything.
    return group if group > 1 else None
