"""A program of its own: it ends what was started by a program that was killed. See `guard`.

It is run by its path, in a Python that has the standard library and nothing else, so it imports nothing of this package.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress

_GRACE_SECONDS = 0.3
_LIMIT_SECONDS = 10.0
_PAUSE = 0.02


def end_all(variable: str, mark: str) -> None:
    """End all processes that have the mark in this variable of their environment, with those that descend from them.

    SIGTERM, after 0.3 s SIGKILL, until two looks find none.
    """
    began = time.monotonic()
    signalled: set[int] = set()
    empty = 0
    while empty < 2 and time.monotonic() < began + _LIMIT_SECONDS:
        found = _marked(variable, mark) - {0, 1, os.getpid()}
        empty = 0 if found else empty + 1
        late = time.monotonic() > began + _GRACE_SECONDS
        for pid in found:
            if late or pid not in signalled:
                signalled.add(pid)
                with suppress(OSError):
                    os.kill(pid, signal.SIGKILL if late else signal.SIGTERM)
                    os.kill(pid, signal.SIGCONT)
        time.sleep(_PAUSE)


def _marked(variable: str, mark: str) -> set[int]:
    pattern = re.compile(rf"(?:^|\0|\s){variable}[=\0][^\0\s]*{mark}".encode())
    if sys.platform != "linux":
        # Shows the environment behind the command.
        shown = subprocess.run(["ps", "-axwwE", "-o", "pid=,command="], stdout=subprocess.PIPE, check=False).stdout
        return {int(line.split(None, 1)[0]) for line in shown.splitlines() if pattern.search(line)}
    parents: dict[int, tuple[int, int]] = {}
    found: set[int] = set()
    for pid in _listed():
        with suppress(OSError, ValueError):
            state, parent, _, session = _content(pid, "stat").rpartition(b")")[2].split()[:4]
            if state not in {b"Z", b"X"}:
                parents[pid] = (int(parent), int(session))
                if pattern.search(_content(pid, "environ")):
                    found.add(pid)
    # Those that threw their environment away: by the parent, or by the session where its first process has the mark, since
    # nobody else can join that.
    sessions = frozenset(found)
    size = -1
    while size != len(found):
        size = len(found)
        found |= {pid for pid, (parent, session) in parents.items() if parent in found or session in sessions}
    return found


def _listed() -> Iterator[int]:
    return (int(name) for name in os.listdir("/proc") if name.isdigit())


def _content(pid: int, name: str) -> bytes:
    with open(f"/proc/{pid}/{name}", "rb") as file:
        return file.read()


if __name__ == "__main__":
    end_all(*sys.argv[1:3])
