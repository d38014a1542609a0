from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from agentcore.remote.workspace import RemoteWorkspace
from agentcore.testing.workspace_contract import WorkspaceContract
from agentcore.workspace import Workspace
from contract_smoke import SmokeContract
from workspace_server import KEY, serve_workspaces


class _RemoteWorkspace:
    @pytest.fixture
    async def workspace(self, tmp_path: Path) -> AsyncGenerator[Workspace]:
        async with (
            serve_workspaces(tmp_path) as server,
            RemoteWorkspace(server.url, api_key=KEY, path="project") as workspace,
        ):
            yield workspace


class TestSmoke(_RemoteWorkspace, SmokeContract):
    pass


@pytest.mark.slow
class TestRemoteWorkspace(_RemoteWorkspace, WorkspaceContract):
    pass
