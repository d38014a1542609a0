"""Connections that stall, leave, are cancelled, and many at once."""

from __future__ import annotations

import sys

import anyio
import httpx
import httpx_ws
import pytest
import sniffio
from anyio.abc import SocketStream
from starlette.types import Message

from agentcore.wire import DeltaFrame, Frame, Gap, parse_frames
from agentcore_serve.streams import StreamHub, bound_sends
from agentcore_serve.streams.connection import send_until_end
from agentcore_serve.streams.encode import SOCKET
from serving import CANCELS_HANDLERS, SERVERS, ServerName, Serving, open_listener, serve, skip_unless_it_runs_here
from watching import GrowingLog, app_of, open_streams, read_socket, texts_of, until_bye

KINDS = ("http", "ws")


async def connect(serving: Serving, kind: str) -> SocketStream:
    """Open a stream by hand, and read its first frame and nothing more."""
    stream = await anyio.connect_tcp("127.0.0.1", serving.port)
    upgrade = (
        "GET /ws HTTP/1.1\r\nHost: here\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )
    await stream.send((upgrade if kind == "ws" else "GET /sse HTTP/1.1\r\nHost: here\r\n\r\n").encode())
    read = b""
    while b"hello" not in read:
        read += await stream.receive()
    return stream


async def until(condition: object) -> None:
    assert callable(condition)
    while not condition():
        await anyio.sleep(0.01)


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_client_that_leaves_is_noticed_while_nothing_is_sent(server: ServerName, kind: str) -> None:
    log = GrowingLog()
    with anyio.fail_after(30):
        async with open_streams(log) as (hub, served), serve(app_of(served), server) as serving:
            stream = await connect(serving, kind)
            assert len(hub) == 1
            await stream.aclose()
            await until(lambda: not len(hub))


@pytest.mark.slow
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("kind", KINDS)
async def test_a_stalled_reader_is_cut_and_holds_nobody_up(server: ServerName, kind: str) -> None:
    log = GrowingLog()
    read: list[Frame] = []
    with anyio.fail_after(30):
        async with open_streams(log, stall=0.5, sweep=0.05) as (hub, served), serve(app_of(served), server) as serving:
            stalled = await connect(serving, kind)

            async def follow() -> None:
                read.extend(await until_bye(f"{serving.url}/sse"))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(follow)
                await until(lambda: len(hub) == 2)
                cut = next(iter(served.streams.watchers))
                for number in range(1000):
                    log.append(f"{number} " + "x" * 10_000)
                    await anyio.lowlevel.checkpoint()
                # A cut watcher has no frames of its own: what it was not sent is in the log.
                await until(lambda: cut.bye is not None and cut.bye.code == "slow")
                assert cut.position.seq < 1000
                assert not cut.said_bye
                # Hypercorn's send can't be cancelled on trio: there the kernel's bound ends it.
                if sniffio.current_async_library() == "asyncio":
                    await until(lambda: len(hub) == 1)
                await until(
                    lambda: all(each.position.seq == 1000 for each in served.streams.watchers if each is not cut)
                )
                log.close()
            assert len(texts_of(read)) == 1000
            await stalled.aclose()
            await until(lambda: not len(hub))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="the kernel has no such bound")
@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("kind", KINDS)
async def test_the_kernel_ends_the_connection_of_a_stalled_reader(server: ServerName, kind: str) -> None:
    skip_unless_it_runs_here(server)
    if server == "hypercorn" and sniffio.current_async_library() == "asyncio":
        pytest.skip("it has the loop report the lost connection, which ends a test; sends can be cancelled there")
    log = GrowingLog()
    listener = open_listener()
    bound_sends(listener, 0.5)
    with anyio.fail_after(30):
        # The bound of our own never comes: what ends the watcher is the connection.
        async with (
            open_streams(log, stall=1000) as (hub, served),
            serve(app_of(served), server, listener=listener) as serving,
        ):
            stalled = await connect(serving, kind)
            for number in range(1000):
                log.append(f"{number} " + "x" * 10_000)
            await until(lambda: not len(hub))
            await stalled.aclose()


@pytest.mark.slow
@pytest.mark.parametrize("server", SERVERS)
async def test_a_hundred_watchers_see_the_same(server: ServerName) -> None:
    log = GrowingLog()
    seen: list[list[str]] = []
    with anyio.fail_after(30):
        async with open_streams(log) as (hub, served), serve(app_of(served), server) as serving:

            async def watch(url: str) -> None:
                seen.append(texts_of(await until_bye(url)))

            async with anyio.create_task_group() as tasks:
                for _ in range(50):
                    tasks.start_soon(watch, f"{serving.url}/sse")
                    tasks.start_soon(watch, f"{serving.ws_url}/ws")
                await until(lambda: len(hub) == 100)
                for number in range(20):
                    log.append(f"{number}", "of a group")
                    await anyio.lowlevel.checkpoint()
                log.close()
    assert seen == [[text for number in range(20) for text in (f"{number}", "of a group")]] * 100


async def test_deltas_come_in_few_frames_to_those_who_asked() -> None:
    log = GrowingLog()
    text = "The quick brown fox " * 20
    with anyio.fail_after(30):
        async with open_streams(log) as (hub, served), serve(app_of(served)) as serving:
            read: dict[str, list[Frame]] = {}

            async def watch(name: str, url: str, deltas: int) -> None:
                read[name] = await until_bye(url, deltas=deltas)

            async with anyio.create_task_group() as tasks:
                for number in range(10):
                    tasks.start_soon(watch, f"asked {number}", f"{serving.ws_url}/ws", 1)
                tasks.start_soon(watch, "not asked", f"{serving.ws_url}/ws", 0)
                await until(lambda: len(hub) == 11)
                for offset, letter in enumerate(text):
                    log.say(letter, offset)
                    if not offset % 20:
                        await anyio.lowlevel.checkpoint()
                log.append(text)
                log.close()
            assert [frame.type for frame in read.pop("not asked")] == ["hello", "event", "bye"]
            assert len(read) == 10
            for frames in read.values():
                kinds = [frame.type for frame in frames]
                assert kinds[-2:] == ["event", "bye"]
                items = [item for frame in frames if isinstance(frame, DeltaFrame) for item in frame.items]
                assert "".join(item.text for item in items) == text
                assert len(items) < 20


async def test_a_watcher_that_was_too_slow_for_deltas_is_told_how_many_it_missed() -> None:
    log = GrowingLog()
    size, count = 20_000, 60
    open_now = anyio.Event()
    sent: list[Frame] = []

    async def send(data: bytes) -> None:
        sent.extend(parse_frames(data))
        if len(sent) > 1:
            await open_now.wait()

    async def receive() -> Message:
        await anyio.sleep_forever()
        raise AssertionError

    with anyio.fail_after(30):
        async with open_streams(log, deltas=0.001) as (_, served), anyio.create_task_group() as tasks:

            async def watch() -> None:
                with served.streams.watch(0, SOCKET, deltas=True) as watcher:
                    await send_until_end(watcher, receive, send)

            tasks.start_soon(watch)
            await until(lambda: len(sent) == 1)
            for number in range(count):
                log.say("x" * size, number * size)
                await anyio.sleep(0.003)
            open_now.set()
            log.close()
    gaps = [frame for frame in sent if isinstance(frame, Gap)]
    items = [item for frame in sent if isinstance(frame, DeltaFrame) for item in frame.items]
    assert len(gaps) == 1
    assert gaps[0].lost > 0
    assert items[-1].offset + len(items[-1].text) == size * count
    assert sum(len(item.text) for item in items) < size * count


@CANCELS_HANDLERS
@pytest.mark.parametrize("kind", KINDS)
async def test_cancelled_handlers_leave_nothing_behind(kind: str) -> None:
    log = GrowingLog()
    log.append("a")
    with anyio.fail_after(30):
        async with open_streams(log) as (hub, served):
            async with serve(app_of(served), graceful=1) as serving:
                stream = await connect(serving, kind)
                assert len(hub) == 1
                # The server is ended without a word to the streams: it cancels their handlers.
            assert not len(hub)
            await stream.aclose()


async def test_a_hub_that_is_left_ends_its_watchers_and_takes_no_more() -> None:
    log = GrowingLog()
    async with httpx.AsyncClient() as client:
        with anyio.fail_after(30):
            async with StreamHub() as hub:
                async with open_streams(log) as (inner, served), serve(app_of(served)) as serving:
                    async with httpx_ws.aconnect_ws(f"{serving.ws_url}/ws", client) as socket:
                        await until(lambda: len(inner) == 1)
                        await inner.bye_all("draining")
                        assert [f.type async for frames in read_socket(socket) for f in frames][-1] == "bye"
                    assert (await client.get(f"{serving.url}/sse")).status_code == 503
                assert not len(hub)
