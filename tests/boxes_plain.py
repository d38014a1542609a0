"""A workspace whose helper is a plain process of this machine."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from agentcore_sandbox.plain import PlainBox
from agentcore_sandbox.workspace import BoxWorkspace


@asynccontextmanager
async def open_plain(folder: Path, *, env: Mapping[str, str] | None = None) -> AsyncGenerator[BoxWorkspace]:
    """Open the folder "project" below one of the test; what is kept aside is in "state"."""
    (folder / "project").mkdir(exist_ok=True)
    async with BoxWorkspace(PlainBox(folder / "project", env=env, state=folder / "state")) as workspace:
        yield workspace
