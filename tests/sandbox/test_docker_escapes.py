"""Named attempts to get out of a container. What a command may do in the project's folder is no escape."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

import anyio
import pytest
from anyio.to_thread import run_sync

from agentcore.errors import WorkspaceLost
from agentcore_sandbox import DockerWorkspace
from boxes_docker import find_image, on_asyncio
from boxes_engine import make_namespace, start_engine, try_decoys
from boxes_escapes import ADDRESSES, ATTEMPTS, GATEWAYS, SHOWS, filled
from boxes_harm import FORKS

IMAGE = find_image()
pytestmark = on_asyncio


@pytest.mark.slow
async def test_no_attempt_gets_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, owner: str) -> None:
    monkeypatch.setenv("OF_THIS_PROGRAM", "secret")
    project, outside = tmp_path / "project", tmp_path / "outside"
    project.mkdir()
    outside.mkdir()
    (outside / "secret").write_text("secret\n")
    os.chown(project, 1000, 1000)
    escaped: list[str] = []
    async with await anyio.open_process(["sleep", "1000"]) as beside:
        try:
            async with DockerWorkspace(IMAGE, mount=project, labels={"owner": owner}) as workspace:
                for attempt in ATTEMPTS:
                    if not attempt.in_docker:
                        continue
                    script = filled(attempt, outside, project, beside.pid)
                    result = await workspace.run(["sh", "-c", script])
                    if SHOWS in result.stdout or "secret" in result.stdout:
                        escaped.append(f"{attempt.name}: {result.stdout}")
            assert escaped == []
            assert beside.returncode is None
        finally:
            beside.kill()
    assert sorted(each.name for each in outside.iterdir()) == ["secret"]
    assert (outside / "secret").read_text() == "secret\n"
    assert (outside / "secret").stat().st_nlink == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "line", [FORKS.script, "setsid sleep 1234 & kill -STOP $PPID; sleep 1000"], ids=["bomb", "stopped helper"]
)
async def test_a_box_whose_helper_cannot_run_is_used_again_without_what_kept_it(owner: str, line: str) -> None:
    async with DockerWorkspace(IMAGE, labels={"owner": owner}) as workspace:
        await workspace.write("note", "kept")
        # It depends on the machine's load whether the helper is found silent, or lives on and ends it all when this is cancelled.
        with anyio.move_on_after(30), suppress(WorkspaceLost):
            await workspace.run(line)
        with anyio.fail_after(120):
            with suppress(WorkspaceLost):
                await workspace.run("true")
            left = await workspace.run(["pgrep", "-f", "sleep 1234|^python3 -$"])
            assert left.stdout == ""
            assert await workspace.read("note") == b"kept"


@pytest.mark.slow
async def test_no_address_of_the_machine_is_reached(tmp_path: Path) -> None:
    # The machine is a network namespace of the test with an engine of its own, and decoys at its addresses.
    addresses = [each for each in ADDRESSES.values() if each != "{gateway}"]

    def look() -> dict[str, list[str]]:
        with make_namespace(addresses) as within, start_engine(IMAGE, within, has_bridge=True) as engine:
            return try_decoys(within, "docker", tmp_path, DOCKER_HOST=engine.address)

    shown = await run_sync(look)
    assert (shown["none"], shown["touched by none"]) == ([], [])
    # With a network, a container reaches each of them but what is on the machine's loopback, or has no address.
    gateway = GATEWAYS["docker"]
    assert set(shown["touched by full"]) == {
        f"name {gateway}",
        *(f"{way} {host}" for way in ("stream", "datagram") for host in (gateway, *addresses)),
    }
