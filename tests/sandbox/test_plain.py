from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from agentcore.testing.workspace_contract import WorkspaceContract
from agentcore.workspace import Workspace
from boxes_plain import open_plain


class TestPlainBox(WorkspaceContract):
    @pytest.fixture
    async def workspace(self, tmp_path: Path) -> AsyncGenerator[Workspace]:
        async with open_plain(tmp_path) as workspace:
            yield workspace
