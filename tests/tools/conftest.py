"""Open tools for the tests of this folder."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from agentcore_tools import run_tool
from opened_tool import Editor, Run, Terminal, open_editor, open_terminal, open_tool


@pytest.fixture
async def terminal(tmp_path: Path) -> AsyncGenerator[Terminal]:
    async with open_terminal(tmp_path) as opened:
        yield opened


@pytest.fixture
async def hasty(tmp_path: Path) -> AsyncGenerator[Terminal]:
    """A terminal that soon answers without the command's end."""
    async with open_terminal(tmp_path, quiet=0.3) as opened:
        yield opened


@pytest.fixture
async def editor(tmp_path: Path) -> AsyncGenerator[Editor]:
    async with open_editor(tmp_path) as opened:
        yield opened


@pytest.fixture
async def run(tmp_path: Path) -> AsyncGenerator[Run]:
    async with open_tool(run_tool(), tmp_path) as opened:
        yield opened
