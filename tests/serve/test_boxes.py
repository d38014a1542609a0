"""Boxes on a server: one for each workspace, gone back to after a restart, removed with what it was for."""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from agentcore import Agent
from agentcore.testing import ScriptedLLM, call, say
from agentcore_sandbox.docker import BoxInfo, list_boxes
from agentcore_sandbox.docker.options import ROOT
from agentcore_serve import ServeSettings, create_app
from agentcore_serve.settings import SettingsError
from agentcore_tools import coding_tools
from boxes_places import CONFINED_QUICK, needs_docker, skip_trio

API = "/api/v1"


@pytest.fixture(params=CONFINED_QUICK)
def kind(request: pytest.FixtureRequest, anyio_backend_name: str) -> str:
    skip_trio(request.param, anyio_backend_name)
    return request.param


@asynccontextmanager
async def open_server(folder: Path, kind: str, replies: Any = (), **settings: Any) -> AsyncGenerator[httpx.AsyncClient]:
    if kind == "docker":
        settings.setdefault("sandbox_image", os.environ["TEST_IMAGE"])
    chosen = ServeSettings(store=folder / "store", root=folder / "root", auth=False, sandbox=kind, **settings)  # pyright: ignore[reportArgumentType]
    agent = Agent(llm=ScriptedLLM(replies or [say("Nothing.")], repeat=True), tools=coding_tools())
    app = create_app(chosen, agents={"coder": agent})
    with anyio.fail_after(90):
        async with app.lifespan():
            transport = httpx.ASGITransport(app)
            async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8420", timeout=60) as client:
                yield client


async def post(client: httpx.AsyncClient, path: str, body: Any) -> Any:
    answer = await client.post(f"{API}/{path}", json=body)
    assert answer.status_code < 300, answer.text
    return answer.json()


async def run(client: httpx.AsyncClient, workspace: str, command: str) -> str:
    result = (await post(client, f"workspaces/{workspace}/commands", {"command": command}))["result"]
    assert result["exit_code"] == 0, result
    return b64decode(result["out"]["head"]).decode()


async def box_of(workspace: str) -> BoxInfo | None:
    return next((box for box in await list_boxes() if box.conversation == workspace), None)


async def test_conversations_and_clients_work_in_a_box_over_a_folder_of_the_root(kind: str, tmp_path: Path) -> None:
    command = "id -u; ls /r?ot 2>/dev/null; cat /proc/net/dev | grep -c :; echo made >made"
    async with open_server(tmp_path, kind, [call("terminal", command=command), say("Done.")]) as client:
        made = await post(client, "conversations", {})
        answer = await client.post(f"{API}/conversations/{made['id']}/run?wait=60", json={"text": "Go."})
        assert answer.json()["text"] == "Done.", answer.text
        workspace = (await client.get(f"{API}/conversations/{made['id']}")).json()["workspace"]
        assert (tmp_path / "root" / workspace / "made").read_text() == "made\n"
        log = (await client.get(f"{API}/conversations/{made['id']}/events")).text
        assert "1000\\n1\\n" in log
        mine = await post(client, "workspaces", {"folder": "mine"})
        assert mine["root"] == (ROOT if kind == "docker" else str(tmp_path / "root" / "mine"))
        if kind == "bubblewrap":
            with pytest.raises(AssertionError):
                await run(client, mine["id"], f"cat {tmp_path / 'root'}/{workspace}/made")
        assert (await client.delete(f"{API}/workspaces/{mine['id']}")).status_code == 204
        assert (await client.delete(f"{API}/conversations/{made['id']}")).status_code == 204
        assert (await client.delete(f"{API}/workspaces/{workspace}")).status_code == 204


@needs_docker
async def test_a_container_is_gone_back_to_after_a_restart_and_removed_with_its_conversation(
    tmp_path: Path, anyio_backend_name: str
) -> None:
    skip_trio("docker", anyio_backend_name)
    replies = [call("terminal", command="echo kept >~/file; echo mine >file"), say("Done.")]
    async with open_server(tmp_path, "docker", replies) as client:
        made = await post(client, "conversations", {})
        await client.post(f"{API}/conversations/{made['id']}/run?wait=60", json={"text": "Go."})
        workspace = (await client.get(f"{API}/conversations/{made['id']}")).json()["workspace"]
        first = await box_of(workspace)
        assert first is not None
        assert first.in_use
    stopped = await box_of(workspace)
    assert stopped is not None
    assert (stopped.id, stopped.state) == (first.id, "exited")
    replies = [call("terminal", command="cat ~/file"), say("Again.")]
    async with open_server(tmp_path, "docker", replies) as client:
        again = await client.post(f"{API}/conversations/{made['id']}/run?wait=60", json={"text": "Again."})
        assert again.json()["text"] == "Again.", again.text
        assert "kept" in (await client.get(f"{API}/conversations/{made['id']}/events")).text
        assert (await box_of(workspace)) is not None
    # Other settings: another box over the same files.
    async with open_server(tmp_path, "docker", network="allow:example.org") as client:
        assert await run(client, workspace, "cat file; ls ~") == "mine\n"
        other = await box_of(workspace)
        assert other is not None
        assert other.id != first.id
        assert (await client.delete(f"{API}/conversations/{made['id']}")).status_code == 204
        assert await box_of(workspace) is None
        assert await run(client, workspace, "cat file") == "mine\n"
        assert (await client.delete(f"{API}/workspaces/{workspace}")).status_code == 204
    assert await box_of(workspace) is None


async def test_a_copy_of_a_conversation_works_in_the_box_of_the_first(kind: str, tmp_path: Path) -> None:
    async with open_server(tmp_path, kind, [call("terminal", command="echo x >>file"), say("Done.")]) as client:
        made = await post(client, "conversations", {})
        await client.post(f"{API}/conversations/{made['id']}/run?wait=60", json={"text": "Go."})
        copy = await post(client, f"conversations/{made['id']}/fork", {"conversation": "conv_copy"})
        await client.post(f"{API}/conversations/conv_copy/run?wait=60", json={"text": "Go."})
        workspace = (await client.get(f"{API}/conversations/conv_copy")).json()["workspace"]
        assert copy is not None
        assert await run(client, workspace, "cat file") == "x\nx\n"
        # The box is removed with the last of them.
        assert (await client.delete(f"{API}/conversations/{made['id']}")).status_code == 204
        assert await run(client, workspace, "cat file") == "x\nx\n"
        assert (await client.delete(f"{API}/conversations/conv_copy")).status_code == 204
        assert (await client.delete(f"{API}/workspaces/{workspace}")).status_code == 204


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"network": "none"}, "name one"),
        ({"sandbox": "docker", "network": "host"}, "none, full or allow:HOST,HOST"),
        ({"sandbox": "docker", "network": "allow:*"}, "would allow every host"),
        ({"sandbox": "bubblewrap", "sandbox_image": "python:3.12"}, "about Docker"),
        ({"sandbox": "vm"}, "sandbox="),
    ],
)
def test_settings_that_do_not_go_together_are_refused(settings: dict[str, str], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        ServeSettings.from_environment({}, **settings)


SERVER = """\
import http.server, json
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
        answer = json.dumps({"asked": [self.command, self.path, body], "key": self.headers.get("authorization")}).encode()
        self.send_response(200)
        self.send_header("Set-Cookie", "agentcore=evil")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
    do_POST = do_DELETE = do_GET
http.server.HTTPServer(("127.0.0.1", 8000), Handler).serve_forever()
"""


async def test_a_port_inside_is_reached_through_the_server_and_nothing_of_its_keys_goes_in(
    kind: str, tmp_path: Path
) -> None:
    async with open_server(tmp_path, kind) as client:
        box = (await post(client, "workspaces", {"folder": "mine"}))["id"]
        at = f"{API}/workspaces/{box}"
        assert (await client.put(f"{at}/files?path=server.py", content=SERVER)).status_code == 204
        nobody = await client.get(f"{at}/ports/8000/")
        assert (nobody.status_code, nobody.json()["code"]) == (502, "port_not_reached")
        async with anyio.create_task_group() as tasks:
            # The command's client leaves in the end, and the server inside ends with it.
            tasks.start_soon(post, client, f"workspaces/{box}/commands", {"command": "python3 server.py"})
            while (answer := await client.get(f"{at}/ports/8000/a%20b?c=d&c=e")).status_code == 502:
                await anyio.sleep(0.05)
            assert answer.json() == {"asked": ["GET", "/a%20b?c=d&c=e", ""], "key": None}
            assert "set-cookie" not in answer.headers
            posted = await client.post(
                f"{at}/ports/8000/x",
                content="body",
                headers={"content-type": "text/plain", "authorization": "Bearer x"},
            )
            assert posted.json() == {"asked": ["POST", "/x", "body"], "key": None}
            tasks.cancel_scope.cancel()
        for port in ("0", "65536", "x", "-1", "08000"):
            assert (await client.get(f"{at}/ports/{port}/")).status_code == 404
        assert (await client.get(f"{API}/workspaces/ws_never/ports/8000/")).status_code == 404
        assert (await client.delete(at)).status_code == 204


async def test_the_ports_of_the_servers_own_machine_are_refused(tmp_path: Path) -> None:
    app = create_app(ServeSettings(store=tmp_path / "store", root=tmp_path / "root", auth=False))
    async with app.lifespan():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1:8420") as client:
            folder = (await post(client, "workspaces", {}))["id"]
            answer = await client.get(f"{API}/workspaces/{folder}/ports/22/")
            assert (answer.status_code, answer.json()["code"]) == (409, "no_ports")
