"""`agentcore sandbox views`: looking into a box that another program works in."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import anyio
import httpx
import pytest
from anyio.streams.text import TextReceiveStream

from agentcore_sandbox import DockerWorkspace
from boxes_docker import needs_docker
from boxes_views import image_with_views

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

OWNER = "agentcore tests of views"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.slow
@needs_docker
async def test_a_box_that_works_is_looked_into_and_works_on() -> None:
    with anyio.fail_after(120):
        async with (
            image_with_views() as image,
            DockerWorkspace(image, labels={"owner": OWNER}, pull="never") as box,
            box.open_process("sleep 1000") as working,
            await anyio.open_process(
                [sys.executable, "-m", "agentcore", "sandbox", "views", str(box.record().params["box"]), "--json"],
                stdin=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
            ) as looking,
            httpx.AsyncClient(trust_env=False, timeout=30) as browser,
        ):
            assert looking.stdout is not None
            line = await anext(aiter(TextReceiveStream(looking.stdout)))
            found = json.loads(line)
            assert found["name"] == "app"
            address: str = found["url"]
            assert (await browser.get(address)).status_code == 200
            origin = f"http://{urlsplit(address).netloc}"
            answer = await browser.get(f"{origin}/x", headers={"Sec-Fetch-Site": "same-origin"})
            assert answer.json()["headers"]["host"] == "localhost:8000"
            assert await box.read("started") == b"x"
            looking.send_signal(signal.SIGINT)
            assert await looking.wait() == 130
            # What served the view is gone with it, and nothing else is.
            with pytest.raises(httpx.TransportError):
                await browser.get(f"{origin}/x")
            shown = await box.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '")
            assert "sleep 1000" in shown.stdout
            assert "socketserver" not in shown.stdout
            assert working.returncode is None


@needs_docker
def test_a_box_that_is_not_there_is_one_sentence(cli: Cli) -> None:
    env = {"DOCKER_HOST": os.environ["DOCKER_HOST"]}
    ended = cli.run("sandbox", "views", "abcdefgh", env=env)
    assert (ended.code, "`agentcore sandbox list` shows" in ended.err) == (1, True), ended.err


@pytest.mark.slow
@needs_docker
async def test_a_box_whose_image_has_no_views_says_how_to_build_one() -> None:
    with anyio.fail_after(120):
        async with DockerWorkspace(os.environ["TEST_IMAGE"], labels={"owner": OWNER}, pull="never") as box:
            command = [sys.executable, "-m", "agentcore", "sandbox", "views", str(box.record().params["box"])]
            env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
            ended = await anyio.run_process(command, check=False, env=env)
            assert ended.returncode == 2
            assert b"agentcore sandbox build --with" in ended.stderr
            assert (await box.run("echo fine")).stdout == "fine\n"
