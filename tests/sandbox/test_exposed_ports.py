"""Ports inside of a box on this machine: what listens there is reached, for as long as the workspace is open."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

import anyio
import httpx
import pytest

from agentcore.errors import WorkspaceNotOpen
from agentcore_sandbox.workspace import BoxWorkspace
from boxes_network import read_all
from boxes_places import KINDS, Kind, open_box, skip_trio

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


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest, anyio_backend_name: str) -> Kind:
    skip_trio(request.param, anyio_backend_name)
    return request.param


@asynccontextmanager
async def listening_inside(box: BoxWorkspace, command: str | list[str]) -> AsyncGenerator[int]:
    """Run a server inside, and return the port that it prints."""
    async with box.open_process(command) as process:
        shown = ""
        while "port" not in shown or "\n" not in shown:
            shown += (await process.receive()).decode()
        yield int(shown.partition("port")[2].split()[0])


async def test_a_server_inside_is_fetched_from_here_twenty_at_once(kind: Kind, tmp_path: Path) -> None:
    with anyio.fail_after(60):
        async with open_box(kind, tmp_path) as box, listening_inside(box, SERVER) as port:
            await box.write("page.html", b"from inside" * 10_000)
            exposed = await box.expose(port)
            answers: list[bytes] = []
            async with httpx.AsyncClient(base_url=exposed.url, trust_env=False) as client:

                async def fetch() -> None:
                    answers.append((await client.get("/page.html")).content)

                async with anyio.create_task_group() as tasks:
                    for _ in range(20):
                        tasks.start_soon(fetch)
            assert answers == [b"from inside" * 10_000] * 20


async def test_the_end_of_what_is_sent_goes_inside_and_the_answer_still_comes(kind: Kind, tmp_path: Path) -> None:
    with anyio.fail_after(60):
        async with open_box(kind, tmp_path) as box, listening_inside(box, ["python3", "-c", COUNTER]) as port:
            exposed = await box.expose(port)
            async with await anyio.connect_tcp("127.0.0.1", exposed.port) as stream:
                await stream.send(b"x" * 3_000_000)
                await stream.send_eof()
                assert await read_all(stream) == b"3000000"


async def test_it_is_closed_with_the_workspace_and_the_box_that_is_left_exposes_nothing(
    kind: Kind, tmp_path: Path
) -> None:
    with anyio.fail_after(60):
        async with open_box(kind, tmp_path) as box:
            exposed = await box.expose(8000)
            # Nothing listens there: the connection is closed, and the port stays.
            async with await anyio.connect_tcp("127.0.0.1", exposed.port) as stream:
                assert await read_all(stream) == b""
        with pytest.raises(OSError, match="failed"):
            await anyio.connect_tcp("127.0.0.1", exposed.port)
        with pytest.raises(WorkspaceNotOpen):
            await box.expose(8000)
