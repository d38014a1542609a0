"""Whether bubblewrap boxes can be made here, for the tests that need them."""

from __future__ import annotations

import shutil
import subprocess
from typing import Final

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
