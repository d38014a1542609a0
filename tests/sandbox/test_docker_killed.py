"""Containers whose making is cancelled, and what is left when a client, a helper, a container or the engine is killed."""

from __future__ import annotations

import asyncio  # noqa: TID251 - its own cancellation goes through anyio's shields
import os
import random
import signal
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import anyio
import pytest

from agentcore.errors import WorkspaceLost
from agentcore_sandbox import DockerWorkspace
from agentcore_sandbox.docker import prune
from agentcore_sandbox.docker.connect import open_engine
from boxes_docker import container_of, find_image, inspect, left_behind, on_asyncio, wait_until
from boxes_engine import OwnEngine, start_engine
from rounds import rounds

IMAGE = find_image()
pytestmark = on_asyncio
HERE = Path(__file__).parent


async def open_for_a_while(owner: str) -> None:
    async with DockerWorkspace(IMAGE, labels={"owner": owner}) as workspace:
        await workspace.run("sleep 1000")


async def cancel_after(seconds: float, owner: str, *, own_kind: bool) -> None:
    """Cancel the opening or the use of a box after a while, by anyio or by asyncio itself."""
    if own_kind:
        task = asyncio.create_task(open_for_a_while(owner))
        await asyncio.wait([task], timeout=seconds)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return
    with anyio.move_on_after(seconds):
        await open_for_a_while(owner)


async def cancel_often(owner: str, count: int, seed: int) -> None:
    moments = random.Random(seed)
    await cancel_after(0.5, owner, own_kind=False)  # what is made once is made
    files, tasks, threads = len(os.listdir("/proc/self/fd")), len(asyncio.all_tasks()), threading.active_count()
    for number in range(count):
        with anyio.fail_after(60):
            await cancel_after(moments.uniform(0, 1.5), owner, own_kind=number % 2 == 0)
        assert await left_behind(owner) == []
    assert len(asyncio.all_tasks()) == tasks
    assert len(os.listdir("/proc/self/fd")) <= files + 2
    assert threading.active_count() <= threads + 5  # idle workers of anyio


@pytest.mark.slow
async def test_cancelling_at_any_moment_leaves_no_container_and_no_volume(owner: str) -> None:
    await cancel_often(owner, 5, seed=1)


@pytest.mark.slow
async def test_fifty_cancellations_leave_nothing(owner: str) -> None:
    await cancel_often(owner, rounds(50), seed=2)


async def kill_client(owner: str, folder: Path) -> None:
    command = [sys.executable, str(HERE / "docker_program.py"), IMAGE, owner, str(folder)]
    async with await anyio.open_process(command, stderr=None) as client:
        assert client.stdout is not None
        with anyio.fail_after(60):
            box = (await client.stdout.receive()).decode().strip()
        client.send_signal(signal.SIGKILL)
    # The helper ends with its stream, and the container when nobody has come for a while.
    stopped = await wait_until(f"agentcore-{box}", lambda found: not found["State"]["Running"])
    assert stopped["State"]["ExitCode"] == 0
    assert [each.id for each in await prune(owner=owner, expired_only=False)] == [box]
    assert await left_behind(owner) == []


@pytest.mark.slow
async def test_a_killed_client_leaves_a_container_that_stops_and_is_pruned_and_its_files(
    owner: str, tmp_path: Path
) -> None:
    await kill_client(owner, tmp_path)
    async with DockerWorkspace(IMAGE, mount=tmp_path, user="0:0", labels={"owner": owner}) as workspace:
        assert await workspace.read("file") == b"here\n"


@pytest.mark.slow
async def test_ten_clients_are_killed(owner: str, tmp_path: Path) -> None:
    for _ in range(rounds(10)):
        await kill_client(owner, tmp_path)


@pytest.mark.slow
async def test_ten_helpers_are_killed(owner: str) -> None:
    async with DockerWorkspace(IMAGE, labels={"owner": owner}) as workspace:
        for number in range(rounds(10)):
            with anyio.fail_after(60), pytest.raises(WorkspaceLost) as lost:
                await workspace.run(f"setsid sleep 100{number} & kill -9 $PPID; sleep 1000")
            assert lost.value.reason == "exited"
            # What it may have left behind is ended when the box is taken over.
            await workspace.fence(number + 1, "c")
            assert f"sleep 100{number}" not in (await workspace.run("ps -eo args")).stdout


@pytest.mark.slow
async def test_ten_containers_are_killed(owner: str) -> None:
    for _ in range(rounds(10)):
        async with DockerWorkspace(IMAGE, labels={"owner": owner}) as workspace:
            with anyio.fail_after(60), pytest.raises(WorkspaceLost) as lost:
                async with workspace.open_process("echo here; sleep 1000") as process:
                    await process.receive()
                    os.kill((await inspect(container_of(workspace)))["State"]["Pid"], signal.SIGKILL)
                    await process.wait()
            assert lost.value.reason == "exited"
        assert await left_behind(owner) == []


@pytest.fixture
def own_engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[OwnEngine]:
    """Start an engine of our own, with the image."""
    with start_engine(IMAGE) as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.address)
        yield engine


@pytest.mark.slow
async def test_the_engine_is_killed_ten_times(own_engine: OwnEngine) -> None:
    for number in range(rounds(10) + 1):
        owner = f"tests {number}"
        async with DockerWorkspace(IMAGE, keep=number == 0, labels={"owner": owner}) as workspace:
            await workspace.write("note", "on a volume")
            box = str(workspace.record().params["box"])
            with anyio.fail_after(60), pytest.raises(WorkspaceLost) as lost:
                async with workspace.open_process("echo here; sleep 1000") as process:
                    await process.receive()
                    own_engine.kill()
                    await process.wait()
            assert lost.value.reason == "engine"
            assert "systemctl start docker" in str(lost.value)
            with pytest.raises(WorkspaceLost):
                await workspace.run("true")
        await anyio.to_thread.run_sync(own_engine.run, "engine")
        if number == 0:
            # What was kept is there again.
            async with DockerWorkspace(IMAGE, box=box, keep=True, labels={"owner": owner}) as again:
                assert await again.read("note") == b"on a volume"
        assert [each.id for each in await prune(owner=owner, expired_only=False)] == [box]
        assert await left_behind(owner) == []


@pytest.mark.slow
async def test_when_the_engine_dies_the_helper_ends_what_it_runs(own_engine: OwnEngine) -> None:
    async with DockerWorkspace(IMAGE, labels={"owner": "tests"}) as workspace:
        async with open_engine() as engine:
            main = int((await engine.inspect_container(container_of(workspace)))["State"]["Pid"])
        with anyio.fail_after(90), pytest.raises(WorkspaceLost):
            async with workspace.open_process(["sleep", "1234"]) as process:
                while not any(b"1234" in each for each in commands_beside(main)):
                    await anyio.sleep(0.05)
                own_engine.kill()
                await process.wait()
        with anyio.fail_after(60):
            while any(b"1234" in each for each in commands_beside(main)):
                await anyio.sleep(0.1)


def commands_beside(main: int) -> list[bytes]:
    """Return the command lines of all processes of a container, seen from outside."""
    found: list[bytes] = []
    with_same = os.readlink(f"/proc/{main}/ns/pid")
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            if os.readlink(f"/proc/{name}/ns/pid") == with_same:
                found.append(Path(f"/proc/{name}/cmdline").read_bytes())
        except OSError:
            continue
    return found
