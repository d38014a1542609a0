"""A small app behind the server's whole middleware, and ways to call it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import anyio
import httpx
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, PlainTextResponse, Response
from starlette.routing import Route, WebSocketRoute
from starlette.types import Message
from starlette.websockets import WebSocket

from agentcore_serve.auth.identity import identity_of, require_scope
from agentcore_serve.auth.security import Security
from agentcore_serve.middleware.problems import raise_again
from agentcore_serve.middleware.stack import security_middleware
from agentcore_serve.settings import ServeSettings

__all__ = ["BASE", "Clock", "Guarded", "call_websocket", "guard"]

BASE = "http://127.0.0.1:8420"


@dataclass
class Clock:
    """Time that a test moves."""

    now: float = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


@dataclass
class Guarded:
    """The app, its security and its clock."""

    app: Starlette
    security: Security
    clock: Clock
    key: str
    """A key with all scopes, of the owner "ada"."""
    key_id: str
    observed: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    def client(self, key: str | None = None, *, address: str = "192.0.2.1", **headers: str) -> httpx.AsyncClient:
        """Return a client at an address, with a key or without."""
        if key is not None:
            headers["Authorization"] = f"Bearer {key}"
        transport = httpx.ASGITransport(self.app, client=(address, 4711))
        return httpx.AsyncClient(transport=transport, base_url=BASE, headers=headers)


async def whoami(request: Request) -> Response:
    identity = identity_of(request.scope)
    return JSONResponse({"key": identity.key_id, "owner": identity.owner, "scopes": sorted(identity.scopes)})


async def take(request: Request) -> Response:
    size = 0
    async for piece in request.stream():
        size += len(piece)
    return JSONResponse({"size": size})


async def admin(request: Request) -> Response:
    require_scope(identity_of(request.scope), "admin")
    return Response(status_code=204)


async def fail(request: Request) -> Response:
    raise RuntimeError(f"the input was {request.headers['x-secret']}")


async def public(request: Request) -> Response:
    return PlainTextResponse("hello")


async def stream(websocket: WebSocket) -> None:
    identity = identity_of(websocket.scope)
    await websocket.accept()
    await websocket.send_text(identity.key_id)
    while True:
        await websocket.send_text(await websocket.receive_text())


@asynccontextmanager
async def guard(folder: Path, *, routes: Iterable[Any] = (), **settings: Any) -> AsyncGenerator[Guarded]:
    """Open the security of a server, and put its middleware around a small app."""
    clock = Clock()
    # In a thread: settings ask for the current folder.
    settings_made = await anyio.to_thread.run_sync(lambda: ServeSettings(store=folder, **settings))
    security = Security(settings_made, clock=clock, monotonic=clock)
    observed: list[tuple[str, int]] = []
    app = Starlette(
        routes=[
            *routes,
            Route("/", public),
            Route("/livez", public),
            Route("/assets/app.js", public),
            Route("/api/v1/whoami", whoami, methods=["GET", "POST"]),
            Route("/api/v1/admin", admin),
            Route("/api/v1/fail", fail),
            Route("/api/v1/take", take, methods=["POST"]),
            Route("/api/v1/conversations/c/messages", take, methods=["POST"]),
            Route("/api/v1/workspaces/w/files/a", take, methods=["PUT"]),
            WebSocketRoute("/api/v1/conversations/c/stream", stream),
        ],
        middleware=security_middleware(
            security,
            public=("/", "/livez", "/assets/{name}"),
            observe=lambda scope, status, seconds: observed.append((scope["path"], status)),
        ),
        exception_handlers={HTTPException: raise_again},
    )
    async with security.opened():
        record, secret = await security.keys.add("all", owner="ada")
        yield Guarded(app, security, clock, secret.get_secret_value(), record.id, observed)


async def call_websocket(
    guarded: Guarded,
    path: str = "/api/v1/conversations/c/stream",
    *,
    query: str = "",
    headers: dict[str, str] | None = None,
    messages: Iterable[Message] = (),
    address: str = "192.0.2.1",
    denial: bool = True,
) -> list[Message]:
    """Open a WebSocket, say some messages, leave, and return what the app sent."""
    sent: list[Message] = []
    incoming = chain([{"type": "websocket.connect"}], messages, [{"type": "websocket.disconnect", "code": 1001}])
    scope: dict[str, Any] = {
        "type": "websocket",
        "asgi": {"version": "3.0"},
        "scheme": "ws",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": query.encode(),
        "headers": [(b"host", b"127.0.0.1:8420"), *((k.encode(), v.encode()) for k, v in (headers or {}).items())],
        "client": (address, 4711),
        "server": ("127.0.0.1", 8420),
        "subprotocols": [],
        "extensions": {"websocket.http.response": {}} if denial else {},
    }

    async def receive() -> Message:
        return next(incoming)

    async def send(message: Message) -> None:
        sent.append(message)

    await guarded.app(scope, receive, send)
    return sent
