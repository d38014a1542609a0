from __future__ import annotations

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from anyio.to_thread import run_sync

from agentcore.workspace.process_table import read_by_psutil


@pytest.fixture
def processes_here(tmp_path: Path) -> Callable[[], Awaitable[list[int]]]:
    """Tell which processes have the test's folder, or one below, as their current one."""

    def here() -> list[int]:
        return [pid for pid in read_by_psutil() if Path(current_folder(pid)).is_relative_to(tmp_path)]

    def current_folder(pid: int) -> str:
        try:
            return os.readlink(f"/proc/{pid}/cwd")
        except OSError:
            return ""

    async def ask() -> list[int]:
        return await run_sync(here)

    return ask
