"""The same workspace in each kind of box, as one fixture: `box_kind` has a test run in all that there are here."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, Literal

import pytest

from agentcore_sandbox.bootstrap import BOOT_COMMAND
from agentcore_sandbox.bubblewrap.box import BubblewrapBox, BubblewrapOptions
from agentcore_sandbox.docker.box import DockerBox
from agentcore_sandbox.network.policy import Allow
from agentcore_sandbox.network.proxy import Proxy
from agentcore_sandbox.networking import MakeProxy
from agentcore_sandbox.plain import PlainBox
from agentcore_sandbox.workspace import BoxWorkspace
from boxes_bubblewrap import needs_bubblewrap
from boxes_docker import HOW, make_options

Kind = Literal["plain", "bubblewrap", "docker"]

needs_docker: Final = pytest.mark.skipif(
    not (os.environ.get("DOCKER_HOST") and os.environ.get("TEST_IMAGE")), reason=f"needs a Docker engine: {HOW}"
)
CONFINED: Final = (
    pytest.param("bubblewrap", marks=needs_bubblewrap),
    pytest.param("docker", marks=needs_docker),
)
"""Those that have a network of their own."""
CONFINED_QUICK: Final = (CONFINED[0], pytest.param("docker", marks=[needs_docker, pytest.mark.slow]))
"""The same, in a container in slow tests only."""
KINDS: Final = ("plain", *(pytest.param(*each.values, marks=[*each.marks, pytest.mark.slow]) for each in CONFINED))
"""All; outside of slow tests only what needs no box of the system, and is the same for each."""


def skip_trio(kind: str, backend_name: str) -> None:
    """Docker is on asyncio only."""
    if kind == "docker" and backend_name != "asyncio":
        pytest.skip("aiodocker is on asyncio only")


@asynccontextmanager
async def open_box(
    kind: Kind,
    folder: Path,
    *,
    allow: Allow | None = None,
    make_proxy: MakeProxy = Proxy,
    env: Mapping[str, str] | None = None,
) -> AsyncGenerator[BoxWorkspace]:
    """Open a box over an empty folder; the test makes the proxy, since its servers are on this machine."""
    project = folder / "project"
    project.mkdir(exist_ok=True)
    match kind:
        case "plain":
            box = PlainBox(project, env=env, state=folder / "state")
        case "bubblewrap":
            box = BubblewrapBox(BubblewrapOptions(str(project), allow or "none", env or {}), {}, BOOT_COMMAND)
        case "docker":
            options = make_options(image=os.environ["TEST_IMAGE"], env=env, network=allow or "none")
            box = DockerBox(options, command=BOOT_COMMAND, labels={"owner": "agentcore tests"})
    async with BoxWorkspace(box, network=allow or "none", make_proxy=make_proxy) as workspace:
        yield workspace
