"""The proxy of the tests fails as it is asked to, and forwards everything otherwise."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from cutting_proxy import CuttingProxy, cutting_proxy

BOUND = 30
GONE = (anyio.BrokenResourceError, anyio.EndOfStream, anyio.ClosedResourceError, ConnectionError)


class Echo:
    """A server that sends back what it reads, and keeps all of it."""

    def __init__(self) -> None:
        self.received = bytearray()
        self.ended = anyio.Event()

    async def serve(self, stream: SocketStream) -> None:
        try:
            async with stream:
                async for piece in stream:
                    self.received += piece
                    await stream.send(piece)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass
        self.ended.set()


@asynccontextmanager
async def echoing() -> AsyncGenerator[tuple[CuttingProxy, Echo]]:
    echo = Echo()
    with anyio.fail_after(BOUND):
        async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listener.serve, echo.serve)  # noqa: ASYNC113 the socket listens already
                async with cutting_proxy(listener.extra(SocketAttribute.local_port)) as proxy:
                    yield proxy, echo
                tasks.cancel_scope.cancel()


async def receive(stream: SocketStream, size: int) -> bytes:
    received = b""
    while len(received) < size:
        received += await stream.receive()
    return received


async def test_it_forwards_both_ways_and_passes_the_end_on() -> None:
    async with echoing() as (proxy, echo), await anyio.connect_tcp("127.0.0.1", proxy.port) as stream:
        data = bytes(range(256)) * 4_000
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(stream.send, data)
            assert await receive(stream, len(data)) == data
        assert (proxy.connections, proxy.accepted) == (1, 1)
        await stream.send_eof()
        await echo.ended.wait()
        with pytest.raises(anyio.EndOfStream):
            await stream.receive()
        await proxy.idle()


async def test_a_cut_resets_both_sides_and_the_next_connection_works() -> None:
    async with echoing() as (proxy, echo):
        async with await anyio.connect_tcp("127.0.0.1", proxy.port) as stream:
            await stream.send(b"one")
            assert await receive(stream, 3) == b"one"
            await proxy.cut()
            await echo.ended.wait()
            with pytest.raises(GONE):
                await stream.receive()
        await proxy.idle()
        async with await anyio.connect_tcp("127.0.0.1", proxy.port) as stream:
            await stream.send(b"two")
            assert await receive(stream, 3) == b"two"


async def test_it_cuts_after_so_many_bytes_of_the_client() -> None:
    async with echoing() as (proxy, echo):
        proxy.bytes_until_cut["up"] = 5
        async with await anyio.connect_tcp("127.0.0.1", proxy.port) as stream:
            await stream.send(b"abcdefgh")
            await echo.ended.wait()
        assert bytes(echo.received) in (b"abcde", b""), "a reset may lose what was sent before it, and adds nothing"
        assert not proxy.bytes_until_cut


async def test_it_cuts_after_so_many_bytes_of_the_server() -> None:
    async with echoing() as (proxy, echo):
        proxy.bytes_until_cut["down"] = 5
        async with await anyio.connect_tcp("127.0.0.1", proxy.port) as stream:
            received = b""
            with pytest.raises(GONE):
                for letter in b"abcdefgh":
                    await stream.send(bytes([letter]))
                    received += await stream.receive()
            assert b"abcde".startswith(received)
            assert len(received) >= 4
        assert b"abcde" in bytes(echo.received)


async def test_a_half_open_connection_is_accepted_and_carries_nothing_until_it_flows() -> None:
    async with echoing() as (proxy, echo):
        proxy.half_open()
        async with await anyio.connect_tcp("127.0.0.1", proxy.port) as stream:
            await stream.send(b"one")
            await proxy.connected()
            with anyio.move_on_after(0.05) as scope:
                await stream.receive()
            assert scope.cancelled_caught
            assert not echo.received
            proxy.flow()
            assert await receive(stream, 3) == b"one"
            proxy.half_open()
            await stream.send(b"two")
            await proxy.cut()
            await proxy.idle()


async def test_it_refuses_for_a_while() -> None:
    async with echoing() as (proxy, _):
        proxy.refusing = True
        with pytest.raises(GONE):
            async with await anyio.connect_tcp("127.0.0.1", proxy.port) as stream:
                await stream.receive()
        proxy.refusing = False
        async with await anyio.connect_tcp("127.0.0.1", proxy.port) as stream:
            await stream.send(b"one")
            assert await receive(stream, 3) == b"one"


async def test_it_delays() -> None:
    async with echoing() as (proxy, _), await anyio.connect_tcp("127.0.0.1", proxy.port) as stream:
        proxy.delay = 0.05
        begun = anyio.current_time()
        await stream.send(b"one")
        assert await receive(stream, 3) == b"one"
        assert anyio.current_time() - begun >= 0.1


async def test_without_a_server_a_connection_is_reset() -> None:
    with anyio.fail_after(BOUND):
        async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
            port = listener.extra(SocketAttribute.local_port)
        async with cutting_proxy(port) as proxy:
            with pytest.raises(GONE):
                async with await anyio.connect_tcp("127.0.0.1", proxy.port) as stream:
                    await stream.receive()
