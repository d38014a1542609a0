"""A port inside on this machine: connections go through, end one way at a time, and are gone when it is closed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import ByteStream, SocketStream

from agentcore.errors import WorkspaceError, WorkspaceLost
from agentcore.workspace.ports import MAX_CONNECTIONS, Exposed, connect_local, expose
from boxes_network import echo, listening, read_all


@asynccontextmanager
async def exposing(port: int) -> AsyncGenerator[Exposed]:
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            exposed = await expose(tasks, connect_local, port)
            yield exposed
            await exposed.aclose()


async def connect(exposed: Exposed) -> SocketStream:
    return await anyio.connect_tcp("127.0.0.1", exposed.port)


async def test_a_port_inside_is_reached_by_its_url() -> None:
    async with listening(echo) as port, exposing(port) as exposed:
        assert exposed.url == f"http://127.0.0.1:{exposed.port}"
        assert exposed.port != port
        assert repr(exposed) == f"<Exposed {exposed.url}>"
        async with await connect(exposed) as stream:
            await stream.send(b"hello" * 100_000)
            await stream.send_eof()
            assert await read_all(stream) == b"hello" * 100_000


async def test_the_end_of_one_way_leaves_the_other_open() -> None:
    async def count(stream: SocketStream) -> None:
        await stream.send(b"%d" % len(await read_all(stream)))

    async def greet(stream: SocketStream) -> None:
        await stream.send(b"hello")
        await stream.send_eof()
        received.append(await read_all(stream))
        done.set()

    received: list[bytes] = []
    done = anyio.Event()
    async with listening(count) as port, exposing(port) as exposed, await connect(exposed) as stream:
        await stream.send(b"12345")
        await stream.send_eof()
        assert await read_all(stream) == b"5"
    async with listening(greet) as port, exposing(port) as exposed, await connect(exposed) as stream:
        assert await read_all(stream) == b"hello"
        await stream.send(b"after the end")
        await stream.send_eof()
        await done.wait()
    assert received == [b"after the end"]


async def test_a_port_at_which_nothing_listens_closes_the_connection_and_may_be_tried_again() -> None:
    async with listening(echo) as port:
        pass
    async with exposing(port) as exposed:
        async with await connect(exposed) as stream:
            assert await read_all(stream) == b""
        async with await connect(exposed) as stream:
            assert await read_all(stream) == b""


async def test_a_box_that_is_lost_ends_the_connections_and_not_the_workspace() -> None:
    class LostStream(ByteStream):
        async def receive(self, max_bytes: int = 65536) -> bytes:
            raise WorkspaceLost("The box is gone.", reason="oom")

        async def send(self, item: bytes) -> None:
            raise WorkspaceLost("The box is gone.", reason="oom")

        async def send_eof(self) -> None:
            raise WorkspaceLost("The box is gone.", reason="oom")

        async def aclose(self) -> None:
            await anyio.lowlevel.checkpoint()

    opened: list[int] = []

    @asynccontextmanager
    async def connect_lost(port: int) -> AsyncGenerator[ByteStream]:
        opened.append(port)
        if len(opened) == 1:
            raise WorkspaceError("The box does not answer.")
        yield LostStream()

    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks:
            exposed = await expose(tasks, connect_lost, 8000)
            for _ in range(2):
                async with await connect(exposed) as stream:
                    assert await read_all(stream) == b""
            await exposed.aclose()
    assert opened == [8000, 8000]


async def test_closing_ends_the_connections_and_the_listener() -> None:
    ended = anyio.Event()

    async def hold(stream: SocketStream) -> None:
        await stream.send(b"here")
        await read_all(stream)
        ended.set()

    async with listening(hold) as port, exposing(port) as exposed:
        async with await connect(exposed) as stream:
            assert await stream.receive() == b"here"
            await exposed.aclose()
            await exposed.aclose()
            assert await read_all(stream) == b""
            await ended.wait()
        with pytest.raises(OSError):  # noqa: PT011 - refused, in the words of each event loop
            await connect(exposed)


async def test_cancelling_the_workspace_ends_it_too() -> None:
    async with listening(echo) as port:
        made: list[Exposed] = []
        with anyio.fail_after(20):
            async with anyio.create_task_group() as tasks:
                made.append(await expose(tasks, connect_local, port))
                async with await connect(made[0]) as stream:
                    await stream.send(b"x")
                    assert await stream.receive() == b"x"
                tasks.cancel_scope.cancel()
            await made[0].aclose()  # which is fine afterwards


async def test_as_many_connections_as_there_may_be_work_at_once_and_one_more_waits() -> None:
    async with listening(echo) as port, exposing(port) as exposed:
        streams = [await connect(exposed) for _ in range(MAX_CONNECTIONS)]
        for stream in streams:
            await stream.send(b"x")
        assert [await stream.receive() for stream in streams] == [b"x"] * MAX_CONNECTIONS
        async with await connect(exposed) as waiting:  # the kernel takes it
            await waiting.send(b"y")
            with anyio.move_on_after(0.05) as scope:
                await waiting.receive()
            assert scope.cancelled_caught
            await streams[0].aclose()
            assert await waiting.receive() == b"y"
        for stream in streams:
            await stream.aclose()


async def test_what_is_not_a_port_is_refused() -> None:
    wrong: Any
    async with anyio.create_task_group() as tasks:
        for wrong in (0, -1, 65536, True, "8000"):
            with pytest.raises(ValueError, match="A port is a number from 1 to 65535"):
                await expose(tasks, connect_local, wrong)
