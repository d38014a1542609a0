"""What tests of containers share: looking at the engine from beside."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, Final

import anyio
import pytest

from agentcore_sandbox import DockerWorkspace
from agentcore_sandbox.docker.connect import open_engine
from agentcore_sandbox.docker.labels import BOX, OWNER
from agentcore_sandbox.docker.options import DockerOptions, parse_options

HOW = 'start one with `eval "$(scripts/docker-engine.sh up)"` (as root, on Debian), or set DOCKER_HOST and TEST_IMAGE (with bash, git, Python)'


DEFAULTS: dict[str, Any] = {
    "image": "image:1",
    "mount": None,
    "copy": None,
    "network": "none",
    "memory": "2g",
    "cpus": 2,
    "pids": 512,
    "disk": None,
    "user": None,
    "keep": False,
    "pull": "missing",
    "runtime": None,
    "env": None,
    "idle_seconds": 1800,
    "tmp_size": "512m",
}


needs_docker: Final = pytest.mark.skipif(
    not (os.environ.get("DOCKER_HOST") and os.environ.get("TEST_IMAGE")), reason=f"needs a Docker engine: {HOW}"
)


def make_options(**changes: Any) -> DockerOptions:
    """Return options as a `DockerWorkspace` has them, but for what is passed."""
    return parse_options(**{**DEFAULTS, **changes})


def find_image() -> str:
    """Return the image for tests at the engine of `DOCKER_HOST`; skip the whole module where there is none."""
    image = os.environ.get("TEST_IMAGE")
    if not os.environ.get("DOCKER_HOST") or not image:
        pytest.skip(f"needs a Docker engine: {HOW}", allow_module_level=True)
    return image


async def left_behind(owner: str) -> list[str]:
    """Return the names of all containers and volumes of an owner."""
    async with open_engine() as engine:
        containers = [str(row["Names"][0]) for row in await engine.list_containers([BOX, f"{OWNER}={owner}"])]
        volumes = [str(row["Name"]) for row in await engine.list_volumes() if row["Labels"].get(OWNER) == owner]
    return sorted(containers + volumes)


async def remove_all(owner: str) -> None:
    """Remove what a test left on purpose."""
    async with open_engine() as engine:
        for name in [
            str(row["Names"][0]).lstrip("/") for row in await engine.list_containers([BOX, f"{OWNER}={owner}"])
        ]:
            await engine.remove_container(name)
        for name in [str(row["Name"]) for row in await engine.list_volumes() if row["Labels"].get(OWNER) == owner]:
            await engine.remove_volume(name)


def container_of(workspace: DockerWorkspace) -> str:
    """Return the name of a workspace's container."""
    return f"agentcore-{workspace.record().params['box']}"


async def inspect(name: str) -> dict[str, Any]:
    """Return what the engine says of a container."""
    async with open_engine() as engine:
        return await engine.inspect_container(name)


async def wait_until(name: str, test: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Wait until the engine says so of a container."""
    async with open_engine() as engine:
        with anyio.fail_after(30):
            while True:
                found = await engine.inspect_container(name)
                if test(found):
                    return found
                await anyio.sleep(0.05)
