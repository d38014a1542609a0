"""The contract of every workspace, in a container."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from agentcore.testing.workspace_contract import WorkspaceContract
from agentcore_sandbox import DockerWorkspace
from boxes_docker import find_image, on_asyncio
from contract_smoke import SmokeContract

IMAGE = find_image()
pytestmark = on_asyncio


@pytest.fixture(scope="module")
async def box(docker_image: str) -> AsyncIterator[DockerWorkspace]:
    """One container for all tests: starting one takes most of a second."""
    async with DockerWorkspace(docker_image, labels={"owner": "agentcore tests"}) as workspace:
        yield workspace


class _DockerWorkspace:
    @pytest.fixture
    async def workspace(self, box: DockerWorkspace) -> AsyncIterator[DockerWorkspace]:
        yield box
        await box.run("find . -mindepth 1 -delete")


class TestSmoke(_DockerWorkspace, SmokeContract):
    pass


@pytest.mark.slow
class TestDockerWorkspace(_DockerWorkspace, WorkspaceContract):
    pass
