from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from agentcore.testing.workspace_contract import WorkspaceContract
from agentcore.workspace import LocalWorkspace


class TestLocalWorkspace(WorkspaceContract):
    @pytest.fixture
    async def workspace(self, tmp_path: Path) -> AsyncGenerator[LocalWorkspace]:
        async with LocalWorkspace(tmp_path) as workspace:
            yield workspace
