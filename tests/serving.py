"""A real server on loopback, in the test's own event loop: hypercorn on asyncio and trio, uvicorn on asyncio."""

from __future__ import annotations

import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing, nullcontext
from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Final, Literal

import anyio
import hypercorn
import pytest
import sniffio
import uvicorn
from hypercorn.config import Sockets
from starlette.types import ASGIApp, Message, Receive, Scope, Send

__all__ = ["CANCELS_HANDLERS", "SERVERS", "ServerName", "Serving", "open_listener", "serve", "skip_unless_it_runs_here"]

ServerName = Literal["hypercorn", "uvicorn"]

SERVERS: Final = ("hypercorn", pytest.param("uvicorn", marks=pytest.mark.slow))
"""For `pytest.mark.parametrize("server", SERVERS)`: what `agentcore serve` runs, and in slow tests another one."""

CANCELS_HANDLERS = pytest.mark.skipif(
    sys.version_info >= (3, 12),
    reason="from Python 3.12 on hypercorn waits for its connections and cancels no handler; the drain says bye first",
)
"""For tests in which a server cancels the handlers of its connections."""


@dataclass
class Serving:
    """A server that runs."""

    port: int
    ready: anyio.Event = field(default_factory=anyio.Event)
    """Set when the app has started."""
    stop: anyio.Event = field(default_factory=anyio.Event)
    """Setting it begins the server's own shutdown; leaving `serve` sets it too."""
    ended: anyio.Event = field(default_factory=anyio.Event)
    """Set when the server has ended."""

    @property
    def url(self) -> str:
        """The address for HTTP, without a slash at its end."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def ws_url(self) -> str:
        """The address for WebSockets, without a slash at its end."""
        return f"ws://127.0.0.1:{self.port}"


@asynccontextmanager
async def serve(
    app: ASGIApp, server: ServerName = "hypercorn", *, listener: socket.socket | None = None, graceful: int = 2
) -> AsyncGenerator[Serving]:
    """Serve an app, its lifespan included, until the context is left.

    Args:
        app: The app.
        server: Which server. uvicorn is left out on trio (`pytest.skip`), where it does not run.
        listener: A socket that listens; by default a free port of 127.0.0.1.
        graceful: Seconds that connections get at the end, before their handlers are cancelled.
    """
    skip_unless_it_runs_here(server)
    listener = listener or open_listener()
    serving = Serving(listener.getsockname()[1])
    run = _run_uvicorn if server == "uvicorn" else _run_hypercorn
    with closing(listener):
        async with anyio.create_task_group() as tasks:
            with anyio.fail_after(30):
                tasks.start_soon(run, app, listener, serving, graceful)
                await serving.ready.wait()
            try:
                yield serving
            finally:
                serving.stop.set()
                with anyio.move_on_after(graceful + 5, shield=True):
                    await serving.ended.wait()
                tasks.cancel_scope.cancel("the server did not end")


def open_listener(host: str = "127.0.0.1", port: int = 0) -> socket.socket:
    """Listen on a port, by default a free one."""
    listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    listener.listen(2048)
    listener.setblocking(False)
    return listener


def skip_unless_it_runs_here(server: ServerName) -> None:
    """Leave the test out where its event loop is not one of this server's."""
    if server == "uvicorn" and sniffio.current_async_library() == "trio":
        pytest.skip("uvicorn does not run on trio")


class _Config(hypercorn.Config):
    def __init__(self, listener: socket.socket) -> None:
        super().__init__()
        self._listener = listener

    def create_sockets(self) -> Sockets:
        return Sockets([], [self._listener], [])


async def _run_hypercorn(app: ASGIApp, listener: socket.socket, serving: Serving, graceful: int) -> None:
    config = _Config(listener)
    config.graceful_timeout = graceful
    config.keep_alive_timeout = 1
    config.loglevel = "WARNING"

    async def announce(scope: Scope, receive: Receive, send: Send) -> None:
        async def send_announced(message: Message) -> None:
            await send(message)
            if message["type"] == "lifespan.startup.complete":
                serving.ready.set()

        await app(scope, receive, send_announced if scope["type"] == "lifespan" else send)

    # Hypercorn has a module for each event loop; their types are not ours.
    serve_hypercorn: Any = import_module(f"hypercorn.{sniffio.current_async_library()}").serve
    try:
        await serve_hypercorn(announce, config, shutdown_trigger=serving.stop.wait, mode="asgi")
    finally:
        serving.ended.set()


async def _run_uvicorn(app: ASGIApp, listener: socket.socket, serving: Serving, graceful: int) -> None:
    class Server(uvicorn.Server):
        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            serving.ready.set()

        def capture_signals(self) -> Any:
            return nullcontext()  # they are pytest's

    server = Server(
        uvicorn.Config(
            app, lifespan="on", ws="websockets-sansio", log_level="warning", timeout_graceful_shutdown=graceful
        )
    )

    async def watch_stop() -> None:
        await serving.stop.wait()
        server.should_exit = True

    try:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(watch_stop)
            await server.serve(sockets=[listener])
            tasks.cancel_scope.cancel("the server has ended")
    finally:
        serving.ended.set()
