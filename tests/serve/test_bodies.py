"""Bodies that stall, and answers that break off, over real servers."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.abc import SocketStream
from guarded import Guarded, guard
from serving import SERVERS, ServerName, Serving, serve
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route


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
    with anyio.fail_after(10):
        while True:
            try:
                received += await stream.receive()
            except (anyio.EndOfStream, anyio.BrokenResourceError):
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


@pytest.mark.parametrize("server", SERVERS)
async def test_a_body_of_single_bytes_is_no_progress(tmp_path: Path, server: ServerName) -> None:
    async with serving(tmp_path, server, body_stall_seconds=0.3) as (guarded, served):
        async with await anyio.connect_tcp("127.0.0.1", served.port) as stream:
            await send(stream, guarded, "PUT", "/api/v1/workspaces/w/files/a", served.port, "Content-Length: 900000000")

            async def drip() -> None:
                with anyio.CancelScope() as dripping:
                    scopes.append(dripping)
                    while True:
                        await stream.send(b"x")
                        await anyio.sleep(0.01)

            scopes: list[anyio.CancelScope] = []
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(drip)
                with anyio.fail_after(10):
                    answer = await stream.receive()
                scopes[0].cancel()
            assert answer.startswith(b"HTTP/1.1 408 ")


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
    async with serving(tmp_path, server) as (guarded, served):
        async with await anyio.connect_tcp("127.0.0.1", served.port) as stream:
            handshake = (
                "Connection: Upgrade",
                "Upgrade: websocket",
                "Sec-WebSocket-Version: 13",
                "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==",
            )
            lines = ["GET /api/v1/conversations/c/stream HTTP/1.1", f"Host: 127.0.0.1:{served.port}", *handshake, "", ""]
            await stream.send("\r\n".join(lines).encode())
            received = b""
            with anyio.fail_after(10):
                while b'"not_authorized"' not in received:
                    received += await stream.receive()
            assert received.startswith(b"HTTP/1.1 401 ")
