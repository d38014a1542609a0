"""Bubblewrap boxes: the contract of workspaces, their options, and that nothing of them is left."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from agentcore.testing.workspace_contract import WorkspaceContract
from agentcore.workspace import Workspace
from agentcore_sandbox.bubblewrap import BubblewrapWorkspace
from boxes_bubblewrap import needs_bubblewrap

pytestmark = needs_bubblewrap


class TestBubblewrapWorkspace(WorkspaceContract):
    @pytest.fixture
    async def workspace(self, tmp_path: Path) -> AsyncGenerator[Workspace]:
        async with BubblewrapWorkspace(tmp_path) as workspace:
            yield workspace
