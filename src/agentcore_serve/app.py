"""The server as an ASGI application, for a server of one's own or to mount in another application."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from functools import cache, partial
from importlib.util import find_spec
from typing import Final

import anyio
from anyio.to_thread import run_sync
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.types import ASGIApp, Receive, Send
from starlette.types import Scope as AsgiScope

import agentcore
from agentcore.agent import Agent
from agentcore.errors import MissingExtra
from agentcore.record import Store
from agentcore.wire.problems import Problem
from agentcore_serve.api import all_routes
from agentcore_serve.auth.security import DATABASE, Security
from agentcore_serve.client_parts import make_client_parts
from agentcore_serve.drain import Drain
from agentcore_serve.hub import Hub
from agentcore_serve.metrics import Gauges, Metrics, route_of
from agentcore_serve.middleware.responses import send_problem
from agentcore_serve.middleware.stack import security_middleware
from agentcore_serve.routes.dispatch import serve_route
from agentcore_serve.routes.openapi import build_document
from agentcore_serve.routes.table import WEBSOCKET
from agentcore_serve.settings import ServeSettings
from agentcore_serve.shared_places import SharedPlaces
from agentcore_serve.store_lock import hold_store
from agentcore_serve.streams import StreamHub
from agentcore_serve.workspaces.boxes import Boxes, BubblewrapBoxes, DockerBoxes
from agentcore_serve.workspaces.hub import WorkspaceHub, WorkspaceLimits, WorkspaceMaker

_NOT_STARTED: Final = (
    "The server's lifespan was not entered, so it has no conversations. An application that mounts it enters it in its own:\n"
    "    served = create_app(settings)\n"
    "    app = FastAPI(lifespan=served.lifespan)  # or Starlette(lifespan=served.lifespan)"
)


def create_app(
    settings: ServeSettings | None = None, *, agents: Mapping[str, Agent] | None = None, store: Store | None = None
) -> ServeApp:
    """Make the application that serves conversations.

    Run it with `agentcore serve`, hypercorn or uvicorn, or mount it; then enter its `lifespan` in that of the application:
    `Starlette(lifespan=served.lifespan)`.

    Args:
        settings: By default those of the variables `AGENTCORE_SERVE_*`.
        agents: The agents that clients may name, by name.
        store: Where the logs are; by default files in the folder `settings.store`.

    Raises:
        ValueError: The settings would let strangers in, or are wrong.
    """
    return ServeApp(settings or ServeSettings.from_environment(), agents or {}, store)


class ServeApp(Starlette):
    """The server. Made by `create_app`."""

    def __init__(self, settings: ServeSettings, agents: Mapping[str, Agent], store: Store | None) -> None:
        self.settings = settings
        self.started = anyio.Event()
        """Set when it takes requests."""
        self._agents = agents
        self._given_store = store
        self._security = Security(settings)
        self._metrics = Metrics(self._gauges)
        self._hub: Hub | None = None
        self._drain: Drain | None = None
        self._routes = all_routes()
        super().__init__(
            routes=[serve_route(route) for route in self._routes],
            lifespan=self.lifespan,
        )
        # When somebody asks: it is the schema of each model, and takes a while.
        self.state.document = cache(partial(build_document, self._routes, version=agentcore.__version__))

    async def __call__(self, scope: AsgiScope, receive: Receive, send: Send) -> None:
        """Serve a request. Outside of the lifespan each is answered with the lines of code that enter it."""
        if scope["type"] != "lifespan" and self._hub is None:
            await send_problem(_not_started_problem(), {}, scope, receive, send)
            return
        await super().__call__(scope, receive, send)

    def build_middleware_stack(self) -> ASGIApp:
        """Return the routes behind all that each request passes. Starlette's own handlers of errors have no place in it."""
        public = [route.path for route in self._routes if route.scope is None]
        passed: ASGIApp = self.router
        for middleware in reversed(security_middleware(self._security, public=public, observe=self._observe)):
            passed = middleware.cls(passed, *middleware.args, **middleware.kwargs)
        return passed

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncGenerator[None]:
        """Hold the conversations open. An application that mounts this one enters it in its own lifespan.

        Args:
            app: The application that enters it. It is not used.

        Raises:
            RuntimeError: It is entered already.
        """
        del app
        if self._hub is not None:
            raise RuntimeError("The server's lifespan is entered already.")
        limits = self.settings.limits
        async with (
            _hold(self.settings),
            self._security.opened(),
            WorkspaceHub(
                self.settings.root,
                database=self.settings.store / DATABASE,
                temporary=self.settings.store / "uploads",
                make=self._workspace_maker(),
                boxes=_make_boxes(self.settings),
                shared_user=self.settings.shared_user,
                limits=WorkspaceLimits(file_bytes=self.settings.request_limits.file_bytes),
                idle_seconds=limits.idle_seconds,
            ) as workspaces,
            Hub(
                self.settings,
                SharedPlaces(workspaces),
                agents=self._agents,
                store=self._given_store,
                client_parts=make_client_parts,
                count_usage=self._metrics.count_usage,
                is_locked=True,
            ) as hub,
            StreamHub() as streams,
            anyio.create_task_group() as tasks,
        ):
            hub.streams = streams
            drain = Drain(hub.close_streams, hub.drain, workspaces.end_clients, limits.drain_seconds)
            state = self.state
            state.hub, state.streams, state.drain, state.workspaces = hub, streams, drain, workspaces
            state.security, state.metrics = self._security, self._metrics
            tasks.start_soon(drain.watch_uvicorn, name="watch uvicorn")
            self._hub, self._drain = hub, drain
            drain.ready = True
            self.started.set()
            try:
                yield
            finally:
                with anyio.CancelScope(shield=True):
                    await drain.drain()
                self._hub = self._drain = None
                tasks.cancel_scope.cancel("the server ends")

    def _workspace_maker(self) -> WorkspaceMaker | None:
        factory = self.settings.workspaces
        return None if factory is None else lambda _, folder: factory(str(folder))

    async def drain(self) -> None:
        """Take no more work, say `bye` to all streams, and wait until the steps under way have ended; bounded."""
        if self._drain is not None:
            await self._drain.drain()

    async def make_first_key(self) -> SecretStr | None:
        """Return a new key that may do everything, where the server asks for keys and has none."""
        keys = self._security.keys
        if not self.settings.auth or await keys.has_any():
            return None
        _, secret = await keys.add("first")
        return secret

    async def make_page_link(self, url: str) -> str | None:
        """Return the link to the page of the server at `url`. It logs a browser in, once, within a minute.

        None: no key may do everything, so that nobody in particular would be logged in.
        """
        if not self.settings.auth:
            return f"{url}/"
        key_id = await self._security.keys.find_first()
        return None if key_id is None else f"{url}/enter?code={self._security.pages.codes.issue(key_id)}"

    def _gauges(self) -> Gauges:
        hub = self._hub
        if hub is None:
            return Gauges(0, 0, 0)
        return Gauges(len(hub.open_ones.served), hub.open_ones.running_count, len(self.state.streams))

    def _observe(self, scope: AsgiScope, status: int, seconds: float) -> None:
        self._metrics.count_request(scope.get("method", WEBSOCKET), route_of(scope), status, seconds)


def _make_boxes(settings: ServeSettings) -> Boxes | None:
    if settings.sandbox is None:
        return None
    if settings.sandbox == "docker" and find_spec("aiodocker") is None:
        raise MissingExtra("--sandbox docker", "docker")
    network = settings.network_policy()
    return (
        BubblewrapBoxes(network) if settings.sandbox == "bubblewrap" else DockerBoxes(settings.sandbox_image, network)
    )


@asynccontextmanager
async def _hold(settings: ServeSettings) -> AsyncGenerator[None]:
    """Hold the store before anything in it is touched: another server may work on it."""
    lock = hold_store(settings.store)
    await run_sync(lock.__enter__)
    try:
        yield
    finally:
        lock.__exit__(None, None, None)


def _not_started_problem() -> Problem:
    return Problem(title="Service Unavailable", status=503, code="not_started", detail=_NOT_STARTED)
