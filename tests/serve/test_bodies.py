"""Bodies that stall, and answers that break off, over real servers."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route
from starlette.types import Message, Receive, Scope, Send

from agentcore_serve.limits import RequestLimits
from agentcore_serve.middleware.bodies import Bodies
from agentcore_serve.refused import Refused
from guarded import Clock, Guarded, guard
from serving import SERVERS, ServerName, Serving, serve

JSON = (b"content-type", b"application/json")
LONG = [JSON, (b"content-length", b"9999")]


async def take(scope: Scope, receive: Receive, send: Send) -> None:
    while (await receive()).get("more_body"):
        pass


async def nowhere(message: Message) -> None:
    raise AssertionError(message)


async def break_off(request: Request) -> StreamingResponse:
    async def pieces() -> AsyncGenerator[bytes]:
        yield b"the beginning"
        raise RuntimeError("s3cr3t")

    return StreamingResponse(pieces())


@asynccontextmanager
async def serving(folder: Path, server: ServerName, **limits: Any) -> AsyncGenerator[tuple[Guarded, Serving]]:
    async with guard(folder, routes=[Route("/api/v1/breaks", break_off)], request_limits=limits) as guarded:
        async with serve(guarded.app, server) as served:
            yield guarded, served


async def send(stream: SocketStream, guarded: Guarded, method: str, path: str, port: int, *headers: str) -> None:
    lines = [f"{method} {path} HTTP/1.1", f"Host: 127.0.0.1:{port}", f"X-API-Key: {guarded.key}", *headers, "", ""]
    await stream.send("\r\n".join(lines).encode())


async def read_to_end(stream: SocketStream) -> bytes:
    received = b""
    with anyio.fail_after(30), suppress(anyio.EndOfStream, anyio.BrokenResourceError):
        received += await stream.receive()
        while True:
            received += await stream.receive()
    return received


@pytest.mark.parametrize("server", SERVERS)
@pytest.mark.parametrize("sent", [b"", b'{"half', b"x" * 1500])
async def test_a_body_that_stalls_is_408_and_its_connection_is_closed(
    tmp_path: Path, server: ServerName, sent: bytes
) -> None:
    async with serving(tmp_path, server, body_stall_seconds=0.05) as (guarded, served):
        async with await anyio.connect_tcp("127.0.0.1", served.port) as stream:
            headers = ("Content-Type: application/json", "Content-Length: 5000")
            await send(stream, guarded, "POST", "/api/v1/take", served.port, *headers)
            if sent:
                await stream.send(sent)
            answer = await read_to_end(stream)
            assert answer.startswith(b"HTTP/1.1 408 ")
            assert b'"code":"body_stalled"' in answer


async def call(
    guarded: Guarded, receive: Callable[[], Awaitable[Message]], *headers: tuple[bytes, bytes], **scope: Any
) -> tuple[int, bytes]:
    """Send a request to the app as a server would, piece by piece."""
    sent: list[Message] = []

    async def keep(message: Message) -> None:
        sent.append(message)

    given = [(b"host", b"127.0.0.1"), (b"x-api-key", guarded.key.encode()), *headers]
    path = scope.setdefault("path", "/api/v1/take")
    whole = {"type": "http", "method": "POST", "scheme": "http", "query_string": b"", "headers": given, **scope}
    await guarded.app({**whole, "raw_path": path.encode(), "client": ("192.0.2.1", 1)}, receive, keep)
    return sent[0]["status"], b"".join(message.get("body", b"") for message in sent)


async def test_a_body_of_single_bytes_is_no_progress_and_one_of_kilobytes_is(tmp_path: Path) -> None:
    clock = Clock()

    def pieces(size: int) -> Callable[[], Awaitable[Message]]:
        async def receive() -> Message:
            await anyio.lowlevel.checkpoint()
            clock.now += 10
            return {"type": "http.request", "body": b"x" * size, "more_body": True}

        return receive

    for size, status in ((1, 408), (1024, 413)):
        bodies = Bodies(take, limits=RequestLimits(json_bytes=20_000), clock=clock)
        with pytest.raises(Refused) as refused:
            await bodies({"type": "http", "method": "POST", "path": "/", "headers": LONG}, pieces(size), nowhere)
        assert refused.value.status == status


async def test_a_body_that_http_2_does_not_announce_is_bounded_all_the_same(tmp_path: Path) -> None:
    async with guard(tmp_path, request_limits={"json_bytes": 10}) as guarded:

        def once(body: bytes) -> Callable[[], Awaitable[Message]]:
            async def receive() -> Message:
                return {"type": "http.request", "body": body, "more_body": False}

            return receive

        two = {"http_version": "2"}
        assert (await call(guarded, once(b""), **two))[0] == 200
        assert (await call(guarded, once(b"{}"), **two))[0] == 415
        assert (await call(guarded, once(b"{}"), JSON, **two))[0] == 200
        assert (await call(guarded, once(b"x" * 11), JSON, **two))[0] == 413


@pytest.mark.parametrize("server", SERVERS)
async def test_an_answer_that_fails_in_its_middle_is_cut_and_not_ended(
    tmp_path: Path, server: ServerName, capfd: pytest.CaptureFixture[str]
) -> None:
    async with serving(tmp_path, server) as (guarded, served):
        async with await anyio.connect_tcp("127.0.0.1", served.port) as stream:
            await send(stream, guarded, "GET", "/api/v1/breaks", served.port)
            answer = await read_to_end(stream)
            assert b"the beginning" in answer
            assert not answer.endswith(b"0\r\n\r\n")  # which would be the end of a whole answer
    assert "s3cr3t" not in "".join(capfd.readouterr())


@pytest.mark.parametrize("server", SERVERS)
async def test_a_websocket_without_a_key_is_refused_by_the_server_with_the_problem(
    tmp_path: Path, server: ServerName
) -> None:
    async with serving(tmp_path, server) as (_, served):
        async with await anyio.connect_tcp("127.0.0.1", served.port) as stream:
            handshake = (
                "Connection: Upgrade",
                "Upgrade: websocket",
                "Sec-WebSocket-Version: 13",
                "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
            )
            lines = [
                "GET /api/v1/conversations/c/stream HTTP/1.1",
                f"Host: 127.0.0.1:{served.port}",
                *handshake,
                "",
                "",
            ]
            await stream.send("\r\n".join(lines).encode())
            with anyio.fail_after(30):
                received = await stream.receive()
                while b'"not_authorized"' not in received:
                    received += await stream.receive()
            assert received.startswith(b"HTTP/1.1 401 ")
