"""Ports inside, and ports that are served from here, through the stream to the helper."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path

import anyio
import pytest
from anyio.abc import ByteStream

from agentcore.errors import WorkspaceError
from agentcore.testing.workspace_process_contract import refused
from agentcore_sandbox.workspace import BoxWorkspace
from boxes_plain import open_plain


async def echo(stream: ByteStream) -> None:
    async for data in stream:
        await stream.send(data.upper())


@pytest.fixture
async def workspace(tmp_path: Path) -> AsyncGenerator[BoxWorkspace]:
    async with open_plain(tmp_path) as workspace:
        yield workspace


async def test_a_program_inside_is_served_from_here(workspace: BoxWorkspace) -> None:
    with anyio.fail_after(30):
        async with workspace.listen(0, echo) as port:
            command = f"exec 3<>/dev/tcp/127.0.0.1/{port}; echo hello >&3; head -n 1 <&3"
            results: list[str] = []

            async def talk() -> None:
                results.append((await workspace.run(command)).stdout)

            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(talk)
            assert results == ["HELLO\n"] * 5
        assert (await workspace.run(f": </dev/tcp/127.0.0.1/{port}")).exit_code == 1


async def test_what_was_sent_arrives_though_its_handler_has_returned(workspace: BoxWorkspace) -> None:
    sent = anyio.Event()

    async def send(stream: ByteStream) -> None:
        await stream.send(b"x" * 900_000)  # less than the window, so nobody waits
        sent.set()

    with anyio.fail_after(30):
        async with workspace.listen(0, send) as port:
            late = f"exec 3<>/dev/tcp/127.0.0.1/{port}; until [ -e go ]; do sleep 0.02; done; wc -c <&3"
            async with workspace.open_process(late) as process:
                await sent.wait()
                await workspace.write("go", b"")
                assert await process.receive() == b"900000\n"


async def test_a_handler_that_fails_ends_its_connection_and_nothing_else(workspace: BoxWorkspace) -> None:
    async def fail(stream: ByteStream) -> None:
        await stream.receive()
        raise ValueError("broken")

    with anyio.fail_after(30):
        async with workspace.listen(0, fail) as port:
            for _ in range(2):
                async with workspace.connect(port) as stream:
                    await stream.send(b"x")
                    await refused(anyio.EndOfStream, stream.receive())


async def test_where_nothing_listens_nothing_is_connected(workspace: BoxWorkspace) -> None:
    async with workspace.listen(0, echo) as port:
        pass

    async def connect() -> None:
        async with workspace.connect(port):
            pass

    assert str(port) in str(await refused(WorkspaceError, connect()))


async def test_a_tunnel_passes_its_ends_on(workspace: BoxWorkspace) -> None:
    with anyio.fail_after(30):
        async with workspace.listen(0, echo) as port, workspace.connect(port) as stream:

            async def send() -> None:
                await stream.send(b"x" * 3_000_000)
                await stream.send_eof()

            size = 0
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(send)
                async for data in stream:
                    assert set(data) == {ord("X")}
                    size += len(data)
            assert size == 3_000_000
