"""What tests of containers share: looking at the engine from beside."""

from __future__ import annotations

import os
import secrets
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any, Final, final

import anyio
import pytest
from anyio.abc import ByteStream
from anyio.to_thread import run_sync

from agentcore_sandbox import DockerWorkspace
from agentcore_sandbox.bootstrap import BOOT_COMMAND
from agentcore_sandbox.box import BoxSpec, Inside, LostReason, Progress, ReportProgress
from agentcore_sandbox.docker.box import DockerBox
from agentcore_sandbox.docker.config import container_config, first_command
from agentcore_sandbox.docker.connect import open_engine
from agentcore_sandbox.docker.labels import BOX, OWNER, fingerprint_of, make_labels, name_of
from agentcore_sandbox.docker.mounts import place
from agentcore_sandbox.docker.options import OWN, ROOT, DockerOptions, parse_options

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


on_asyncio: Final = pytest.mark.parametrize("anyio_backend", ["asyncio"], scope="module")
"""Of a whole module: aiodocker runs nowhere else."""


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


@asynccontextmanager
async def open_container_over(image: str, folder: Path) -> AsyncGenerator[DockerBox]:
    """Start a box whose folder is at the same path inside as here, as tests want it that look from both sides."""
    options = make_options(image=image, mount=str(folder), user="0:0")
    box, free = secrets.token_hex(8), {"owner": f"tests {os.urandom(4).hex()}"}
    labels = make_labels(box, free, fingerprint=fingerprint_of(options.bounds()), seconds=options.idle_seconds)
    async with open_engine() as engine:
        found = await engine.find_image(image)
        assert found is not None
        config = container_config(
            options,
            engine.facts,
            await run_sync(place, options, engine.facts),
            image=found.digest,
            labels=labels,
            volumes={},
            command=await run_sync(first_command, options.idle_seconds),
        )
        (mount,) = config["HostConfig"]["Mounts"]
        assert mount["Target"] == ROOT
        mount["Target"] = str(folder)
        config["HostConfig"]["Tmpfs"][OWN] = "rw,exec,nosuid,nodev,mode=700"
        await engine.create_container(name_of(box), config)
    started = DockerBox(options, command=BOOT_COMMAND, labels=free, box=box)
    try:
        await started.start(_ignore)
        yield started
    finally:
        await started.stop()
        await remove_all(free["owner"])


async def _ignore(_: Progress) -> None:
    pass


@final
class FolderInContainer:
    """A folder in a container that is there already, as a box of its own."""

    def __init__(self, container: DockerBox, folder: Path, env: Mapping[str, str]) -> None:
        self._container = container
        self._folder = folder
        self._env = dict(env)

    @property
    def spec(self) -> BoxSpec:
        return self._container.spec

    @property
    def inside(self) -> Inside:
        inside = self._container.inside
        return inside.model_copy(update={"root": str(self._folder), "env": {**inside.env, **self._env}})

    async def start(self, progress: ReportProgress) -> None:
        await progress(Progress(phase="ready"))

    async def stop(self) -> None:
        """Leave the container to who made it."""

    async def find(self, labels: Mapping[str, str]) -> bool:
        return False

    def open_stream(self) -> AbstractAsyncContextManager[ByteStream]:
        return self._container.open_stream()

    async def reason_lost(self) -> LostReason:
        return await self._container.reason_lost()

    def last_words(self) -> str:
        return self._container.last_words()
