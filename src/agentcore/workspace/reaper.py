"""Ending what this program started when this program was killed, and can't do it any more.

A small process waits at the end of a pipe. If the pipe is closed before it was told that all is well, nobody is left to end
what runs: it becomes `reap.py`, which does. What has no terminal would otherwise never hear of it, and what has one may
have left it, or not care.
"""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import threading
from typing import Final, final

from agentcore.workspace import reap
from agentcore.workspace.process_table import MARKS

_SCRIPT: Final = 'IFS= read -r word && exit; exec "$@"'
_ALL_IS_WELL: Final = b"all is well\n"
_END_SECONDS: Final = 2.0
_log = logging.getLogger(__name__)


@final
class _Reaper:
    """One for this program, as long as anybody holds it. Its calls block, for a few milliseconds."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._begin()

    @property
    def mark(self) -> str:
        """The mark of all that this program starts."""
        if self._owner != os.getpid():
            self._begin()  # a fork: what the other one started is the other one's
        return self._mark

    def hold(self, holder: object) -> None:
        """Have it there until `release`."""
        mark = self.mark
        with self._lock:
            if self._process is None:
                self._process = self._start(mark)
            self._holders.add(id(holder))

    def release(self, holder: object) -> None:
        """Release it: nothing that this holder started is left."""
        with self._lock:
            if self._owner != os.getpid() or id(holder) not in self._holders:
                return
            self._holders.discard(id(holder))
            if self._holders or self._process is None:
                return
            process, self._process = self._process, None
        try:
            process.communicate(_ALL_IS_WELL, timeout=_END_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()

    def _begin(self) -> None:
        self._owner = os.getpid()
        self._mark = os.urandom(8).hex()
        self._holders: set[int] = set()
        self._process: subprocess.Popen[bytes] | None = None

    def _start(self, mark: str) -> subprocess.Popen[bytes] | None:
        # Without the site-packages and the environment of this program: there is no time for them.
        reaping = [sys.executable, "-I", "-S", reap.__file__, MARKS, mark]
        try:
            return subprocess.Popen(
                ["/bin/sh", "-c", _SCRIPT, "agentcore-guard", *reaping],
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                cwd="/",
                # So that a parent that ends this program with all its children finds it, too.
                env={MARKS: os.environ[MARKS]} if MARKS in os.environ else {},
                # A Ctrl-C is meant for this program.
                start_new_session=True,
            )
        except OSError as error:
            _log.warning("What is started will not be ended if this program is killed: %s", error)
            return None


REAPER: Final = _Reaper()
