"""Whether bubblewrap boxes can be made here, for the tests that need them."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Final

import psutil
import pytest

from agentcore_sandbox.bubblewrap.limits import find_hierarchies


def _why_not() -> str | None:
    if shutil.which("bwrap") is None:
        return "needs bubblewrap: apt install bubblewrap"
    tried = subprocess.run(
        ["bwrap", "--unshare-user", "--unshare-pid", "--ro-bind", "/", "/", "--proc", "/proc", "true"],
        check=False,
        capture_output=True,
        text=True,
    )
    return f"bubblewrap makes no box here: {tried.stderr.strip()}" if tried.returncode else None


_reason = _why_not()
needs_bubblewrap: Final = pytest.mark.skipif(_reason is not None, reason=_reason or "")


def can_make_control_groups() -> bool:
    """Return whether memory, processes and processors can be limited for all processes of a box together."""
    found = {controller for hierarchy in find_hierarchies() for controller in hierarchy.controllers}
    return found >= {"memory", "pids", "cpu"}


def control_groups() -> list[str]:
    """Return the control groups of boxes of this program that are there."""
    return [
        str(folder)
        for hierarchy in find_hierarchies()
        for folder in hierarchy.folder.glob(f"agentcore-{os.getpid()}-*")
    ]


def processes_in(folder: Path) -> list[int]:
    """Return the processes whose current folder is this one or below, those inside of boxes too."""

    def current_folder(pid: int) -> str:
        try:
            return os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            return ""

    return [pid for pid in psutil.pids() if Path(current_folder(pid)).is_relative_to(folder)]
