"""Networks of containers: allowed hosts through the proxy, and ports inside on this machine."""

from __future__ import annotations

from typing import Any

import anyio
import pytest

from agentcore_sandbox import Allow, DockerWorkspace
from boxes_docker import find_image, on_asyncio

IMAGE = find_image()
pytestmark = on_asyncio


@pytest.mark.slow
async def test_a_port_inside_is_published_on_this_machine(docker_image: str, owner: str) -> None:
    async with DockerWorkspace(docker_image, labels={"owner": owner}) as workspace:
        await workspace.write("page", "from inside\n")
        async with workspace.open_process(["python3", "-u", "-m", "http.server", "-b", "127.0.0.1", "8000"]) as process:
            with anyio.fail_after(30):
                assert b"Serving" in await process.receive()
                exposed = await workspace.expose(8000)
                async with await anyio.connect_tcp("127.0.0.1", exposed.port) as stream:
                    await stream.send(b"GET /page HTTP/1.0\r\n\r\n")
                    seen = b""
                    with pytest.raises(anyio.EndOfStream):
                        while True:
                            seen += await stream.receive()
                assert seen.endswith(b"from inside\n")


@pytest.mark.slow
async def test_only_allowed_hosts_are_asked_for_and_others_are_refused_with_a_reason(
    docker_image: str, owner: str
) -> None:
    asking = "import urllib.request as u; print(u.urlopen('http://{}/').status)"
    async with DockerWorkspace(docker_image, labels={"owner": owner}, network=Allow("allowed.invalid")) as workspace:
        with anyio.fail_after(60):
            assert (await workspace.run("ls /sys/class/net")).stdout == "lo\n"
            refused = await workspace.run(["python3", "-c", asking.format("other.invalid")])
            assert "403" in refused.stderr
            metadata = await workspace.run(["python3", "-c", asking.format("169.254.169.254")])
            assert "403" in metadata.stderr
            # It is looked up outside, where there is none of that name.
            unknown = await workspace.run(["python3", "-c", asking.format("allowed.invalid")])
            assert "502" in unknown.stderr
        record: Any = workspace.record().params
    assert record["network"] == {"hosts": ["allowed.invalid"], "ports": [443, 80]}
    assert DockerWorkspace.from_record(**record).record().params["network"] == record["network"]
