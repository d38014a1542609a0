"""Ports of a server's box on the client's machine: what listens inside is reached, through the server, while the workspace is open."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
import httpx
import pytest

from agentcore.errors import ServerError, WorkspaceNotOpen
from agentcore.remote import RemoteWorkspace
from agentcore_serve.workspaces import WorkspaceHub
from boxes_network import read_all
from cutting_proxy import CuttingProxy, cutting_proxy
from serving import serve
from serving_views import Site, open_site, without_lifespan

SERVER: Final = "python3 -u -m http.server 0 --bind 127.0.0.1"
COUNTER: Final = """\
import socket
server = socket.create_server(("127.0.0.1", 0))
print("port", server.getsockname()[1], flush=True)
while True:
    stream, _ = server.accept()
    count = 0
    while data := stream.recv(65536):
        count += len(data)
    stream.sendall(b"%d" % count)
    stream.close()
"""
ECHO: Final = """\
import socket
server = socket.create_server(("127.0.0.1", 0))
print("port", server.getsockname()[1], flush=True)
stream, _ = server.accept()
while data := stream.recv(65536):
    stream.sendall(data)
print("left", flush=True)
"""


class Place(NamedTuple):
    site: Site
    proxy: CuttingProxy
    workspace: RemoteWorkspace


@asynccontextmanager
async def open_place(folder: Path, **settings: Any) -> AsyncGenerator[Place]:
    """Open a workspace of a server, over a proxy."""
    async with (
        open_site(folder, **settings) as site,
        serve(without_lifespan(site.app)) as serving,
        cutting_proxy(serving.port) as proxy,
        RemoteWorkspace(proxy.url, api_key=site.keys["ann"], id=site.workspace, reconnect_seconds=5) as workspace,
    ):
        yield Place(site, proxy, workspace)


@asynccontextmanager
async def listening_inside(workspace: RemoteWorkspace, command: str | list[str]) -> AsyncGenerator[tuple[int, Any]]:
    """Run a server inside, and return the port that it prints."""
    async with workspace.open_process(command) as process:
        shown = ""
        while "port" not in shown or "\n" not in shown:
            shown += (await process.receive()).decode()
        yield int(shown.partition("port")[2].split()[0]), process


async def test_a_server_inside_is_fetched_from_here_many_at_once(tmp_path: Path) -> None:
    async with open_place(tmp_path) as (_, _, workspace), listening_inside(workspace, SERVER) as (port, _):
        await workspace.write("page.html", b"from inside" * 10_000)
        exposed = await workspace.expose(port)
        answers: list[bytes] = []
        async with httpx.AsyncClient(base_url=exposed.url, trust_env=False, timeout=30) as client:

            async def fetch() -> None:
                answers.append((await client.get("/page.html")).content)

            async with anyio.create_task_group() as tasks:
                for _ in range(10):
                    tasks.start_soon(fetch)
        assert answers == [b"from inside" * 10_000] * 10


async def test_the_end_of_what_is_sent_goes_inside_and_the_answer_still_comes(tmp_path: Path) -> None:
    async with (
        open_place(tmp_path) as (_, _, workspace),
        listening_inside(workspace, ["python3", "-c", COUNTER]) as (
            port,
            _,
        ),
    ):
        exposed = await workspace.expose(port)
        async with await anyio.connect_tcp("127.0.0.1", exposed.port) as stream:
            await stream.send(b"x" * 1_000_000)
            await stream.send_eof()
            assert await read_all(stream) == b"1000000"


@pytest.mark.slow
async def test_a_connection_outlives_a_program_that_reads_nothing_for_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in ("agentcore.remote.tunnel", "agentcore_serve.workspaces.tunnel_routes"):
        monkeypatch.setattr(f"{module}.PING_SECONDS", 0.05)
        monkeypatch.setattr(f"{module}.SILENCE_SECONDS", 0.5)
    program = COUNTER.replace("    count = 0\n", "    count = 0\n    input()\n")
    async with (
        open_place(tmp_path) as (_, _, workspace),
        listening_inside(workspace, ["python3", "-c", program]) as (
            port,
            process,
        ),
    ):
        exposed = await workspace.expose(port)
        async with await anyio.connect_tcp("127.0.0.1", exposed.port) as stream, anyio.create_task_group() as tasks:

            async def send() -> None:
                await stream.send(b"x" * 20_000_000)
                await stream.send_eof()

            tasks.start_soon(send)
            # Nothing comes, and no end either.
            with anyio.move_on_after(2) as waited:
                await stream.receive()
            assert waited.cancelled_caught
            await process.send(b"go on\n")
            assert await read_all(stream) == b"20000000"


async def test_it_is_closed_with_the_workspace_and_the_connection_inside_with_it(tmp_path: Path) -> None:
    async with open_place(tmp_path) as (site, proxy, workspace):
        async with listening_inside(workspace, ["python3", "-c", ECHO]) as (port, process):
            async with RemoteWorkspace(proxy.url, api_key=site.keys["ann"], id=site.workspace) as other:
                exposed = await other.expose(port)
                stream = await anyio.connect_tcp("127.0.0.1", exposed.port)
                await stream.send(b"hello")
                assert await stream.receive() == b"hello"
            assert (await process.receive()) == b"left\n"
            assert await read_all(stream) == b""
            await stream.aclose()
        with pytest.raises(OSError, match="failed"):
            await anyio.connect_tcp("127.0.0.1", exposed.port)
        with pytest.raises(WorkspaceNotOpen):
            await other.expose(8000)
        with pytest.raises(ValueError, match="from 1 to 65535"):
            await workspace.expose(0)


async def test_a_connection_ends_where_nothing_listens_and_where_the_network_is_cut(tmp_path: Path) -> None:
    async with open_place(tmp_path) as (_, proxy, workspace):
        async with listening_inside(workspace, ["python3", "-c", ECHO]) as (port, _):
            nobody, exposed = await workspace.expose(9), await workspace.expose(port)
            async with await anyio.connect_tcp("127.0.0.1", nobody.port) as stream:
                assert await read_all(stream) == b""
            async with await anyio.connect_tcp("127.0.0.1", exposed.port) as stream:
                await stream.send(b"hello")
                assert await stream.receive() == b"hello"
                await proxy.cut()
                assert await read_all(stream) == b""


async def test_the_end_of_the_server_ends_connections(tmp_path: Path) -> None:
    async with open_place(tmp_path) as (site, _, workspace):
        async with listening_inside(workspace, ["python3", "-c", ECHO]) as (port, _):
            exposed = await workspace.expose(port)
            async with await anyio.connect_tcp("127.0.0.1", exposed.port) as stream:
                await stream.send(b"hello")
                assert await stream.receive() == b"hello"
                hub: WorkspaceHub = site.app.state.workspaces
                hub.end_clients()
                assert await read_all(stream) == b""


async def test_the_ports_of_the_servers_own_machine_are_not_reached(tmp_path: Path) -> None:
    async with open_place(tmp_path, workspaces=None) as (_, proxy, workspace):
        # The test's own proxy listens on that machine.
        exposed = await workspace.expose(proxy.port)
        async with await anyio.connect_tcp("127.0.0.1", exposed.port) as stream:
            await stream.send(b"GET / HTTP/1.1\r\n\r\n")
            assert await read_all(stream) == b""
        with pytest.raises(ServerError, match="no views"):
            await workspace.views()


async def test_the_views_of_a_box_are_addresses_of_the_server(tmp_path: Path) -> None:
    async with open_place(tmp_path) as (site, proxy, workspace), site.client() as browser:
        found = await workspace.views()
        assert list(found) == ["app", "big-screen"]
        assert f".localhost:{proxy.port}/" in found["app"]
        assert (await browser.get(found["app"])).status_code == 200
