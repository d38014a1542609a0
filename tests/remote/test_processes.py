from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint
from anyio.to_thread import run_sync
from httpx_ws import aconnect_ws

from agentcore.errors import ConnectionLost, WorkspaceNotOpen
from agentcore.remote.workspace import RemoteWorkspace
from agentcore.testing.workspace_process_contract import still_alive, wait_for_lines
from agentcore.wire.workspaces import WINDOW, OpenProcess
from agentcore.workspace import LocalWorkspace
from agentcore_serve.workspaces import WorkspaceLimits
from workspace_server import KEY, ServedWorkspaces, serve_workspaces


@asynccontextmanager
async def _remote(
    folder: Path, **options: Any
) -> AsyncGenerator[tuple[ServedWorkspaces, RemoteWorkspace, LocalWorkspace]]:
    """Yield a server, a workspace there, and the same folder seen from here."""
    async with (
        serve_workspaces(folder, **options) as server,
        RemoteWorkspace(server.url, api_key=KEY, path="project") as workspace,
        LocalWorkspace(server.root / "project") as here,
    ):
        yield server, workspace, here


async def _until_dead(here: LocalWorkspace, pids: list[str]) -> None:
    while await still_alive(here, pids):
        await checkpoint()


@pytest.mark.parametrize("count", [10, pytest.param(50, marks=pytest.mark.slow)])
async def test_many_processes_run_at_once_and_none_is_left(tmp_path: Path, count: int) -> None:
    pids: list[str] = []
    codes: list[int] = []

    async with _remote(tmp_path) as (_, workspace, here):

        async def one(number: int) -> None:
            async with workspace.open_process(f"echo $$ >>pids; read -r line; echo $line; exit {number}") as process:
                all_run.release()
                await go.wait()
                await process.send(b"%d\n" % number)
                assert await process.receive() == b"%d\n" % number
                codes.append(await process.wait())

        all_run, go = anyio.Semaphore(0), anyio.Event()
        with anyio.fail_after(60):
            async with anyio.create_task_group() as tasks:
                for number in range(count):
                    tasks.start_soon(one, number)
                for _ in range(count):
                    await all_run.acquire()
                pids = await wait_for_lines(here, "pids", count)
                go.set()
        assert sorted(codes) == list(range(count))
        assert await still_alive(here, pids) == []


async def test_output_that_nobody_reads_waits_in_the_process(tmp_path: Path) -> None:
    command = "i=0; while [ $i -lt 64 ]; do head -c 65536 /dev/zero; echo x >>written; i=$((i + 1)); done; echo end >&2"
    async with _remote(tmp_path) as (_, workspace, here):
        with anyio.fail_after(60):
            async with workspace.open_process(command) as process:
                # What is under way is the window, and what the pipe and a write hold.
                await wait_for_lines(here, "written", WINDOW // 65536)
                size = len(await process.receive())
                with pytest.raises(WorkspaceNotOpen):
                    await RemoteWorkspace("http://localhost:1").run("true")  # others work meanwhile
                assert (await workspace.run("echo fine")).stdout == "fine\n"
                assert len((await here.read("written")).splitlines()) <= WINDOW // 65536 + 4
                while size < 64 * 65536:
                    size += len(await process.receive())
                assert await process.receive_stderr() == b"end\n"
                assert await process.wait() == 0


async def test_huge_output_arrives_whole(tmp_path: Path) -> None:
    async with _remote(tmp_path) as (_, workspace, _here):
        with anyio.fail_after(60):
            async with workspace.open_process("head -c 20000000 /dev/zero") as process:
                size = 0
                with pytest.raises(anyio.EndOfStream):
                    while True:
                        size += len(await process.receive())
        assert size == 20_000_000


_CLIENT = """
import anyio, sys
from agentcore.remote.workspace import RemoteWorkspace

async def main(url, key):
    async with RemoteWorkspace(url, api_key=key, path="project") as workspace, anyio.create_task_group() as tasks:
        tasks.start_soon(workspace.run, "echo $$ >>pids; sleep 1000 & echo $! >>pids; wait")
        async with workspace.open_process("echo $$ >>pids; setsid bash -c 'echo $$ >>pids; exec sleep 1000' & wait"):
            await anyio.sleep_forever()

anyio.run(main, *sys.argv[1:])
"""


@pytest.mark.slow
async def test_a_client_that_is_killed_leaves_no_process_on_the_server(
    tmp_path: Path, surroundings: dict[str, str]
) -> None:
    async with _remote(tmp_path, limits=WorkspaceLimits(grace_seconds=0.1)) as (server, _, here):
        with anyio.fail_after(60):
            client = await run_sync(
                partial(subprocess.Popen, [sys.executable, "-c", _CLIENT, server.url, KEY], env=surroundings)
            )
            try:
                pids = await wait_for_lines(here, "pids", 4)
                assert sorted(await still_alive(here, pids)) == sorted(pids)
            finally:
                client.kill()
                await run_sync(client.wait)
            await _until_dead(here, pids)


async def test_a_client_that_says_nothing_ends_its_process(tmp_path: Path) -> None:
    async with _remote(tmp_path, limits=WorkspaceLimits(silence_seconds=0.2)) as (server, workspace, here):
        address = f"{server.url}/api/v1/workspaces/{workspace.id}/processes"
        headers = {"Authorization": f"Bearer {KEY}"}
        with anyio.fail_after(30):
            async with aconnect_ws(address, headers=headers, keepalive_ping_interval_seconds=None) as socket:
                await socket.send_text(OpenProcess(command="echo $$ >>pids; exec sleep 1000").model_dump_json())
                pids = await wait_for_lines(here, "pids", 1)
                await _until_dead(here, pids)


@pytest.mark.parametrize(
    "message", ["no json", '{"type":"eof"}', '{"type":"ping"}', '{"type":"open","command":"x","size":[0,0]}']
)
async def test_a_first_message_that_opens_nothing_is_refused(tmp_path: Path, message: str) -> None:
    async with _remote(tmp_path) as (server, workspace, _):
        address = f"{server.url}/api/v1/workspaces/{workspace.id}/processes"
        headers = {"Authorization": f"Bearer {KEY}"}
        with anyio.fail_after(30):
            async with aconnect_ws(address, headers=headers, keepalive_ping_interval_seconds=None) as socket:
                await socket.send_text(message)
                assert '"value_error"' in await socket.receive_text()


async def test_a_server_that_ends_is_a_lost_connection_for_all_who_wait(tmp_path: Path) -> None:
    raised: list[str] = []
    async with anyio.create_task_group() as tasks:
        leave = anyio.Event()
        left = anyio.Event()

        async def wait(call: Any) -> None:
            try:
                await call()
            except (ConnectionLost, anyio.BrokenResourceError) as error:
                raised.append(type(error).__name__)

        workspace = None
        async with serve_workspaces(tmp_path) as server:
            workspace = RemoteWorkspace(server.url, api_key=KEY, path="project", reconnect_seconds=0.1)

            async def use() -> None:
                async with workspace, workspace.open_process("echo $$ >pids; echo; exec sleep 1000") as process:
                    assert await process.receive() == b"\n"
                    async with anyio.create_task_group() as waiting:
                        for call in (process.wait, process.receive, process.receive_stderr):
                            waiting.start_soon(wait, call)
                        leave.set()
                    await wait(process.send_eof)
                    await wait(process.terminate)
                left.set()

            tasks.start_soon(use)
            with anyio.fail_after(30):
                await leave.wait()
            server.hub.end_clients()  # as a drain does: from Python 3.12 on hypercorn waits for the connection
        with anyio.fail_after(30):
            await left.wait()
    assert raised == ["ConnectionLost"] * 5
    pid = int(Path(tmp_path, "root", "project", "pids").read_text())
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_cancelling_a_call_leaves_the_process_usable(tmp_path: Path) -> None:
    async with _remote(tmp_path) as (_, workspace, _here):
        with anyio.fail_after(30):
            async with workspace.open_process("until [ -e go ]; do sleep 0.02; done; wc -c") as process:
                with anyio.move_on_after(0.05):
                    await process.send(b"x" * 10_000_000)
                with anyio.move_on_after(0.05):
                    await process.receive()
                await workspace.write("go", b"")
                await process.send(b"y")
                await process.send_eof()
                assert int(await process.receive()) > 65536
                assert await process.wait() == 0


async def test_a_workspace_that_is_left_ends_its_processes(tmp_path: Path) -> None:
    async with serve_workspaces(tmp_path) as server, LocalWorkspace(tmp_path / "root") as here:
        workspace = RemoteWorkspace(server.url, api_key=KEY, path="project")
        with anyio.fail_after(30):
            await workspace.__aenter__()
            process = workspace.open_process("echo $$ >>pids; exec sleep 1000")
            await process.__aenter__()
            pids = await wait_for_lines(here, "project/pids", 1)
            await workspace.__aexit__(None, None, None)
            await _until_dead(here, pids)
            await process.__aexit__(None, None, None)
