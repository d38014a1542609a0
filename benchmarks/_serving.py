"""A server in a process of its own, on hypercorn, and clients that read what it sends without looking at it."""

from __future__ import annotations

import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

import anyio
from anyio.abc import SocketStream
from hypercorn.config import Config, Sockets

__all__ = ["open_watcher", "read_all", "serve_here", "start_server"]

HOST = "127.0.0.1"


@asynccontextmanager
async def start_server(script: str, *arguments: str) -> AsyncGenerator[int]:
    """Start a script of this folder that calls `serve_here`; give its port."""
    command = [sys.executable, str(Path(__file__).with_name(script)), *arguments]
    async with await anyio.open_process(command, stderr=None) as process:
        assert process.stdout is not None
        try:
            yield int(await process.stdout.receive())
        finally:
            process.kill()


async def serve_here(app: Any) -> None:
    """Print the port, and serve until the process is ended."""
    listener = socket.create_server((HOST, 0), backlog=2048)
    # As `agentcore serve` has it: without, an answer in two writes waits 40 ms for an acknowledgement.
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setblocking(False)

    class OneSocket(Config):
        def create_sockets(self) -> Sockets:
            return Sockets([], [listener], [])

    config = OneSocket()
    config.loglevel = "ERROR"
    print(listener.getsockname()[1], flush=True)
    await import_module("hypercorn.asyncio").serve(app, config, mode="asgi")


async def open_watcher(port: int, path: str, kind: str) -> SocketStream:
    """Open a stream, and return its connection once the answer begins."""
    upgrade = (
        "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    )
    stream = await anyio.connect_tcp(HOST, port)
    request = f"GET {path} HTTP/1.1\r\nHost: {HOST}:{port}\r\n{upgrade if kind == 'ws' else ''}\r\n"
    await stream.send(request.encode())
    answer = await stream.receive()
    assert answer.startswith((b"HTTP/1.1 200", b"HTTP/1.1 101")), answer
    return stream


async def read_all(stream: SocketStream) -> None:
    """Read and forget."""
    while True:
        await stream.receive()
