from __future__ import annotations

import io
import os
import tarfile
from base64 import b64decode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from anyio.lowlevel import checkpoint
from anyio.to_thread import run_sync
from httpx_ws import aconnect_ws

from agentcore.testing.workspace_process_contract import still_alive, wait_for_lines
from agentcore.wire.workspaces import OpenProcess
from agentcore.workspace import LocalWorkspace, Workspace, register_workspace
from agentcore_sandbox import BubblewrapWorkspace
from agentcore_sandbox.bubblewrap.workspace import restore
from agentcore_serve.workspaces import WorkspaceLimits
from boxes_bubblewrap import needs_bubblewrap
from workspace_server import KEY, ServedWorkspaces, serve_workspaces

register_workspace("bubblewrap", restore)  # an entry point does that where this version is installed


@asynccontextmanager
async def _serve(folder: Path, **options: Any) -> AsyncGenerator[tuple[ServedWorkspaces, httpx.AsyncClient, str]]:
    """Yield a server, a client of it, and the path of a workspace there, whose folder is "project"."""
    async with serve_workspaces(folder, **options) as server:
        headers = {"Authorization": f"Bearer {KEY}"}
        async with httpx.AsyncClient(base_url=f"{server.url}/api/v1/", headers=headers, timeout=30) as client:
            made = await client.post("workspaces", json={"folder": "project"})
            assert made.status_code == 201, made.text
            yield server, client, f"workspaces/{made.json()['id']}"


def _problem(response: httpx.Response) -> tuple[int, str, str | None]:
    problem = response.json()
    return response.status_code, problem["code"], problem["data"].get("reason")


@pytest.mark.parametrize("path", ["../secret", "a/../../secret", "/etc/passwd", "link", "links/secret", "links/new"])
async def test_no_path_leads_out_of_the_workspace(tmp_path: Path, path: str) -> None:
    async with _serve(tmp_path) as (server, client, at):
        (server.root / "secret").write_text("secret")
        (server.root / "project" / "link").symlink_to(server.root / "secret")
        (server.root / "project" / "links").symlink_to(server.root)
        denied = (403, "path_error", "denied")
        where = {"path": path}
        assert _problem(await client.get(f"{at}/files", params=where)) == denied
        assert _problem(await client.put(f"{at}/files", params=where, content=b"x")) == denied
        assert _problem(await client.post(f"{at}/files/append", params=where, content=b"x")) == denied
        for route in ("list", "stat", "folders"):
            assert _problem(await client.get(f"{at}/{route}", params=where)) == denied
        assert (server.root / "secret").read_text() == "secret"
        assert sorted(os.listdir(server.root)) == ["project", "secret"]


@pytest.mark.parametrize("folder", ["..", "../x", "/tmp", "link/x", "a/../../x", ""])
async def test_no_workspace_is_outside_of_the_root(tmp_path: Path, folder: str) -> None:
    async with _serve(tmp_path) as (server, client, _):
        (server.root / "link").symlink_to(tmp_path)
        refused = await client.post("workspaces", json={"folder": folder})
        assert refused.json()["code"] == "path_error"
        assert sorted(os.listdir(server.root)) == ["link", "project"]


async def test_the_root_itself_is_a_workspace_by_its_name(tmp_path: Path) -> None:
    async with _serve(tmp_path) as (server, client, _):
        made = (await client.post("workspaces", json={"folder": "."})).json()
        assert Path(made["root"]).resolve() == server.root.resolve()
        ran = await client.post(f"workspaces/{made['id']}/commands", json={"command": "ls", "id": "one"})
        assert ran.status_code == 200, ran.text
        assert b64decode(ran.json()["result"]["out"]["head"]) == b"project\n"


def _tar(*members: tuple[str, bytes | None, str]) -> bytes:
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w") as tar:
        for name, data, link in members:
            info = tarfile.TarInfo(name)
            if data is None:
                info.type, info.linkname = tarfile.SYMTYPE, link
            else:
                info.size = len(data)
            tar.addfile(info, io.BytesIO(data or b""))
    return archive.getvalue()


async def test_a_folder_that_is_sent_writes_nothing_outside(tmp_path: Path) -> None:
    async with _serve(tmp_path) as (server, client, at):
        outside = server.root / "outside"
        outside.mkdir()
        (outside / "file").write_text("old")
        (server.root / "project" / "away").symlink_to(outside)
        (server.root / "project" / "file").symlink_to(outside / "file")
        for body in (
            _tar(("../outside/file", b"new", "")),
            _tar(("away/file", b"new", "")),
            _tar(("file", b"new", "")),
            _tar(("link", None, str(outside)), ("link/file", b"new", "")),
            _tar(("good", b"new", ""), (str(outside / "file"), b"new", "")),
        ):
            refused = await client.put(f"{at}/folders", params={"path": "."}, content=body)
            assert refused.json()["code"] == "path_error"
        assert (outside / "file").read_text() == "old"
        assert sorted(os.listdir(server.root / "project")) == ["away", "file"]  # nor anything else of a bad one
        replaced = await client.put(f"{at}/folders", params={"path": "."}, content=_tar(("file", None, "elsewhere")))
        assert replaced.status_code == 204
        assert os.readlink(server.root / "project" / "file") == "elsewhere"


async def test_a_part_of_a_file_can_be_read(tmp_path: Path) -> None:
    async with _serve(tmp_path) as (server, client, at):
        (server.root / "project" / "file").write_bytes(b"0123456789")
        wanted = {"bytes=2-4": b"234", "bytes=7-": b"789", "bytes=-3": b"789", "bytes=8-99": b"89"}
        for value, content in wanted.items():
            part = await client.get(f"{at}/files", params={"path": "file"}, headers={"Range": value})
            assert (part.status_code, part.content) == (206, content)
            assert part.headers["content-range"].endswith("/10")
        for value in ("bytes=0-1,4-5", "lines=1-2", "bytes=-"):
            everything = await client.get(f"{at}/files", params={"path": "file"}, headers={"Range": value})
            assert (everything.status_code, everything.content) == (200, b"0123456789")
        refused = await client.get(f"{at}/files", params={"path": "file"}, headers={"Range": "bytes=10-"})
        assert (refused.status_code, refused.headers["content-range"]) == (416, "bytes */10")


async def test_what_is_too_large_is_refused_and_leaves_nothing(tmp_path: Path) -> None:
    async with _serve(tmp_path, limits=WorkspaceLimits(file_bytes=1000, members=3)) as (server, client, at):

        async def pieces() -> AsyncGenerator[bytes]:
            for _ in range(3):
                yield b"x" * 400

        where = {"path": "file"}
        assert (await client.put(f"{at}/files", params=where, content=b"x" * 1000)).status_code == 204
        assert (await client.put(f"{at}/files", params=where, content=b"y" * 1001)).status_code == 413
        assert (await client.put(f"{at}/files", params=where, content=pieces())).status_code == 413
        assert (await client.post(f"{at}/files/append", params=where, content=b"y" * 1001)).status_code == 413
        assert (server.root / "project" / "file").read_bytes() == b"x" * 1000
        (server.root / "project" / "file").write_bytes(b"x" * 1001)
        assert _problem(await client.get(f"{at}/files", params=where)) == (413, "path_error", "too_large")
        for body in (_tar(("a", b"x" * 600, ""), ("b", b"x" * 600, "")), _tar(*((f"{n}", b"", "") for n in range(4)))):
            assert (await client.put(f"{at}/folders", params={"path": "new"}, content=body)).status_code == 413
        assert os.listdir(server.root / "project") == ["file"]
        assert os.listdir(server.hub.temporary) == []


async def test_a_name_of_any_bytes_can_be_read_and_written(tmp_path: Path) -> None:
    async with _serve(tmp_path) as (server, client, at):
        put = await client.put(f"{at}/files?path=caf%E9%0A%FF", content=b"\0\xff")
        assert put.status_code == 204
        assert (server.root / "project" / os.fsdecode(b"caf\xe9\n\xff")).read_bytes() == b"\0\xff"
        assert (await client.get(f"{at}/files?path=caf%E9%0A%FF")).content == b"\0\xff"
        assert (await client.get(f"{at}/files?path=gone%FF")).status_code == 404


async def test_another_owner_sees_nothing_and_shares_no_user(tmp_path: Path) -> None:
    other = {"Authorization": "Bearer ac_other_key.somebody-else"}
    async with _serve(tmp_path) as (_, client, at):
        for method, route in (("GET", at), ("DELETE", at), ("GET", f"{at}/list"), ("POST", f"{at}/commands")):
            body = {"command": "true"} if method == "POST" else None
            answer = await client.request(method, route, json=body, headers=other)
            assert (answer.status_code, answer.json()["code"]) == (404, "workspace_not_found")
        assert (await client.get("workspaces", headers=other)).json() == []
        refused = await client.post("workspaces", json={}, headers=other)
        assert (refused.status_code, refused.json()["code"]) == (403, "shared_user")
        assert (await client.get("workspaces", headers={"Authorization": ""})).status_code == 401


async def test_owners_that_may_share_a_user_have_folders_of_their_own(tmp_path: Path) -> None:
    other = {"Authorization": "Bearer ac_other_key.somebody-else"}
    async with _serve(tmp_path, shared_user=True) as (_, client, at):
        taken = await client.post("workspaces", json={"folder": "project"}, headers=other)
        assert (taken.status_code, taken.json()["code"]) == (409, "workspace_exists")
        assert (await client.post("workspaces", json={}, headers=other)).status_code == 201
        again = await client.post("workspaces", json={"folder": "project"})
        assert f"workspaces/{again.json()['id']}" == at


async def test_a_workspace_outlives_the_server_and_a_fresh_one_goes_with_its_files(tmp_path: Path) -> None:
    async with _serve(tmp_path) as (_, client, at):
        fresh = (await client.post("workspaces", json={})).json()
        assert (await client.put(f"workspaces/{fresh['id']}/files?path=x", content=b"x")).status_code == 204
    async with _serve(tmp_path) as (server, client, again):
        assert again == at
        assert (await client.get(f"workspaces/{fresh['id']}/files?path=x")).content == b"x"
        assert (await client.delete(f"workspaces/{fresh['id']}")).status_code == 204
        assert (await client.get(f"workspaces/{fresh['id']}")).status_code == 404
        assert (await client.delete(at)).status_code == 204
        assert os.listdir(server.root) == ["project"]


async def test_a_workspace_that_nobody_uses_is_left_and_opened_again(tmp_path: Path) -> None:
    opened: list[LocalWorkspace] = []

    def make(_: object, folder: Path) -> LocalWorkspace:
        opened.append(LocalWorkspace(folder))
        return opened[-1]

    async with _serve(tmp_path, make=make, idle_seconds=0) as (_, client, at):
        assert (await client.get(f"{at}/list")).json() == []
        assert len(opened) > 1
        assert not opened[0].is_open


@needs_bubblewrap
async def test_a_sandbox_with_a_network_is_made_again_by_the_server_that_makes_such(tmp_path: Path) -> None:
    def make(_: object, folder: Path) -> Workspace:
        return BubblewrapWorkspace(folder, network="full")

    async with _serve(tmp_path, make=make) as (_, client, at):
        assert (await client.get(f"{at}/list")).status_code == 200
    async with _serve(tmp_path, make=make) as (_, client, _):
        assert (await client.get(f"{at}/list")).status_code == 200
    # And never without a sandbox.
    async with serve_workspaces(tmp_path) as server, httpx.AsyncClient(timeout=30) as client:
        url, headers = f"{server.url}/api/v1/{at}/list", {"Authorization": f"Bearer {KEY}"}
        refused = await client.get(url, headers=headers)
    assert refused.status_code == 409
    assert "gives it the network" in refused.json()["detail"]


async def test_a_command_of_one_id_runs_once(tmp_path: Path) -> None:
    async with _serve(tmp_path) as (server, client, at):
        command = {"command": "echo x >>ran; until [ -e go ]; do sleep 0.02; done; echo done", "id": "one"}
        waiting = await client.post(f"{at}/commands", json={**command, "wait": 0})
        assert waiting.json() == {"result": None}
        (server.root / "project" / "go").touch()
        answers = [await client.post(f"{at}/commands", json={**command, "wait": 20}) for _ in range(2)]
        assert [answer.json()["result"]["exit_code"] for answer in answers] == [0, 0]
        assert (server.root / "project" / "ran").read_text() == "x\n"
        boot = answers[0].headers["Agentcore-Boot"]
        repeated = {**command, "id": "two", "command": "echo y >>ran"}
        lost = await client.post(f"{at}/commands", json=repeated, headers={"Agentcore-Boot": "an earlier one"})
        assert (lost.status_code, lost.json()["code"]) == (409, "command_lost")
        assert (await client.post(f"{at}/commands", json=repeated, headers={"Agentcore-Boot": boot})).status_code == 200
        appended = {"path": "ran", "id": "three"}
        for _ in range(2):
            assert (await client.post(f"{at}/files/append", params=appended, content=b"z\n")).status_code == 204
        assert (server.root / "project" / "ran").read_text() == "x\ny\nz\n"


async def test_nothing_is_begun_on_a_server_that_ends(tmp_path: Path) -> None:
    async with _serve(tmp_path) as (server, client, at):
        server.hub.end_clients()
        refused = await client.post(f"{at}/commands", json={"command": "touch begun", "id": "one"})
        assert (refused.status_code, refused.json()["code"]) == (503, "draining")
        assert refused.headers["Retry-After"] == "1"
        with anyio.fail_after(30):
            async with aconnect_ws(f"{at}/processes", client, keepalive_ping_interval_seconds=None) as socket:
                await socket.send_text(OpenProcess(command="touch begun").model_dump_json())
                assert '"draining"' in await socket.receive_text()
        assert not (server.root / "project" / "begun").exists()


async def test_a_command_that_was_ended_before_it_came_never_begins(tmp_path: Path) -> None:
    async with _serve(tmp_path) as (server, client, at):
        assert (await client.delete(f"{at}/commands/one")).status_code == 204
        late = await client.post(f"{at}/commands", json={"command": "touch ran", "id": "one"})
        assert (late.status_code, late.json()["code"]) == (409, "command_lost")
        assert not (server.root / "project" / "ran").exists()


@pytest.mark.parametrize("wait", [None, 20])
async def test_the_client_that_leaves_ends_its_command(tmp_path: Path, wait: int | None) -> None:
    async with (
        _serve(tmp_path, limits=WorkspaceLimits(grace_seconds=0.1)) as (server, client, at),
        LocalWorkspace(server.root / "project") as here,
    ):
        body = {"command": "sleep 1000 & echo $! >>pids; echo $$ >>pids; wait", "wait": wait}
        pids: list[str] = []
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: client.post(f"{at}/commands", json=body))
                pids = await wait_for_lines(here, "pids", 2)
                assert sorted(await still_alive(here, pids)) == sorted(pids)
                tasks.cancel_scope.cancel()
            while await still_alive(here, pids):
                await checkpoint()


async def test_what_is_wrong_with_a_request_does_not_repeat_it(tmp_path: Path) -> None:
    async with _serve(tmp_path) as (_, client, at):
        wrong = await client.post(f"{at}/commands", json={"command": "true", "secret-field": "hunter2"})
        assert wrong.status_code == 422
        assert "hunter2" not in wrong.text
        assert (await client.get(f"{at}/files", params={"path": "x", "other": "hunter2"})).status_code == 422
        assert (await client.put(f"{at}/files", params={"path": "x", "mode": "4777"}, content=b"")).status_code == 422
        nul = await client.post(f"{at}/commands", json={"command": ["true\0"]})
        assert nul.status_code < 500


async def test_the_diff_of_a_repository_is_served(tmp_path: Path) -> None:
    async with _serve(tmp_path) as (server, client, at):
        assert (await client.get(f"{at}/changes")).json()["code"] == "not_a_repository"
        async with LocalWorkspace(server.root / "project") as here:
            await here.run("git init -q; echo a >file")
        assert (await client.get(f"{at}/changes")).json()[0]["path"] == "file"
        assert "+a\n" in (await client.get(f"{at}/diff")).json()["diff"]


async def test_a_leftover_of_an_upload_is_removed_at_the_start(tmp_path: Path) -> None:
    leftover = tmp_path / "temporary" / "tmpabc"
    await run_sync(lambda: leftover.mkdir(parents=True))
    async with _serve(tmp_path) as (server, _, _at):
        assert os.listdir(server.hub.temporary) == []
