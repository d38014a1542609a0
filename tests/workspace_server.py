"""A server with workspaces alone, for tests: the shipped routes, and problems as the real one answers with."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentcore.wire.problems import Problem, problem_of
from agentcore_serve.auth.identity import SCOPES, Identity
from agentcore_serve.refused import Refused
from agentcore_serve.routes.dispatch import serve_route
from agentcore_serve.workspaces import WORKSPACES, WorkspaceHub
from serving import ServerName, Serving, serve

__all__ = ["KEY", "ServedWorkspaces", "serve_workspaces"]

KEY = "ac_test_key-of-the-first-owner"


class ServedWorkspaces:
    """The server that runs, and its hub."""

    def __init__(self, serving: Serving, hub: WorkspaceHub, root: Path) -> None:
        self.serving = serving
        self.url = serving.url
        self.hub = hub
        self.root = root


@asynccontextmanager
async def serve_workspaces(
    folder: Path, server: ServerName = "hypercorn", *, wrap: Any = None, **options: Any
) -> AsyncGenerator[ServedWorkspaces]:
    """Serve workspaces below `folder / "root"`. The key's last part after "." is the owner's name.

    Args:
        folder: For the root, the database and what is on its way.
        server: Which server.
        wrap: Middleware around all.
        options: Of the hub.
    """
    root = folder / "root"
    hub = WorkspaceHub(root, database=folder / "serve.sqlite", temporary=folder / "temporary", **options)

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        async with hub:
            app.state.workspaces = hub
            yield

    app: ASGIApp = Starlette(
        routes=[serve_route(route) for route in WORKSPACES], lifespan=lifespan, middleware=[Middleware(_Problems)]
    )
    async with serve(app if wrap is None else wrap(app), server) as serving:
        yield ServedWorkspaces(serving, hub, root)


class _Problems:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        begun = False

        async def sending(message: Message) -> None:
            nonlocal begun
            begun = True
            await send(message)

        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        key = dict(scope["headers"]).get(b"authorization", b"").decode().removeprefix("Bearer ")
        if key.startswith("ac_"):
            scope["agentcore.identity"] = Identity("test", key.rpartition(".")[2], frozenset(SCOPES))
        try:
            await self._app(scope, receive, sending)
        except Exception as error:
            if begun or scope["type"] != "http":
                raise
            await _send_problem(error, send)


async def _send_problem(error: Exception, send: Send) -> None:
    headers: dict[str, str] = {}
    if isinstance(error, Refused):
        problem = Problem(title=error.code, status=error.status, detail=error.detail, code=error.code)
        headers = error.headers
    else:
        problem = problem_of(error)
    if problem.code == "internal_error":
        raise error
    raw = [(name.lower().encode(), value.encode()) for name, value in headers.items()]
    raw.append((b"content-type", b"application/problem+json"))
    await send({"type": "http.response.start", "status": problem.status, "headers": raw})
    await send({"type": "http.response.body", "body": problem.model_dump_json().encode()})
