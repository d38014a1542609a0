"""Building images at a real engine: what comes of a base, and what is said when it fails."""

from __future__ import annotations

import os

import httpx
import pytest

from agentcore.errors import WorkspaceError
from agentcore_sandbox import DockerWorkspace
from agentcore_sandbox.docker.connect import open_engine
from agentcore_sandbox.docker.errors import EngineError
from agentcore_sandbox.images import build_image
from agentcore_sandbox.images.dockerfile import pack_context
from agentcore_sandbox.views.view import LABEL, format_views
from boxes_docker import find_image
from boxes_views import make_view

IMAGE = find_image()


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


async def test_a_base_without_packages_is_refused_in_a_sentence() -> None:
    with pytest.raises(
        WorkspaceError, match=r"has no apt-get, by which parts are installed\. Pass another base"
    ) as raised:
        await build_image(IMAGE, ["terminal"])
    assert "Step" not in str(raised.value)


async def test_a_container_has_the_views_of_its_image() -> None:
    tag = f"agentcore-tests:views-{os.getpid()}"
    label = format_views({"app": make_view(8000, python="/usr/bin/python3")})

    async def see(event: dict[str, object]) -> None:
        del event

    async with open_engine() as engine:
        await engine.build(pack_context(f"FROM {IMAGE}\n", [], b""), see, tag=tag, labels={LABEL: label})
        try:
            async with DockerWorkspace(tag, pull="never", labels={"owner": "tests"}) as workspace:
                async with httpx.AsyncClient(trust_env=False, timeout=30) as client:
                    address = (await workspace.views())["app"]
                    assert 'content="0;url=/first?a=b"' in (await client.get(address)).text
                    answer = await client.get(f"{address.rsplit('/', 2)[0]}/first?a=b")
                    assert answer.json()["headers"]["host"] == "localhost:8000"
        finally:
            await engine.remove_image(tag)


async def test_an_image_is_built_from_an_archive_with_its_labels() -> None:
    lines: list[str] = []
    tag = f"agentcore-tests:{os.getpid()}"

    async def see(event: dict[str, object]) -> None:
        lines.append(str(event.get("stream")))

    context = pack_context(f"FROM {IMAGE}\nARG WHO\nRUN echo made by $WHO\n", [], b"")
    async with open_engine() as engine:
        made = await engine.build(context, see, tag=tag, labels={"agentcore.views": "{}"}, args={"WHO": "tests"})
        try:
            found = await engine.find_image(tag)
            assert found is not None
            assert (found.digest, found.views) == (made, "{}")
            assert any("made by tests" in line for line in lines)
            failing = pack_context(f"FROM {IMAGE}\nRUN exit 7\n", [], b"")
            with pytest.raises(EngineError, match="non-zero code: 7"):
                await engine.build(failing, see)
        finally:
            await engine.remove_image(tag)
