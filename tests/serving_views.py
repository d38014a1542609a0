"""A server whose workspaces offer views, for their tests: the views of a plain box, which confines nothing."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx

from agentcore_sandbox.plain import PlainBox
from agentcore_sandbox.views.view import WebView, format_views
from agentcore_sandbox.workspace import BoxWorkspace
from agentcore_serve import ServeApp, ServeSettings, create_app
from boxes_views import SERVED_PROGRAM, find_free_port, make_view
from guarded import Clock

BASE = "http://127.0.0.1:8420"
API = "/api/v1"


class Site:
    """A server whose workspaces offer views, with two owners. Ann has a workspace."""

    def __init__(self, app: ServeApp, folder: Path, clock: Clock) -> None:
        self.app = app
        self.folder = folder
        self.clock = clock
        self.keys: dict[str, str] = {}
        self.ids: dict[str, str] = {}
        self.workspace = ""

    async def add_key(self, name: str) -> None:
        record, secret = await self.app.state.security.keys.add(name, owner=name)
        self.keys[name], self.ids[name] = secret.get_secret_value(), record.id

    def client(self, key: str | None = None, base: str = BASE, **headers: str) -> httpx.AsyncClient:
        """Return a program with a key, or a browser without."""
        if key is not None:
            headers["Authorization"] = f"Bearer {self.keys[key]}"
        return httpx.AsyncClient(transport=httpx.ASGITransport(self.app), base_url=base, headers=headers, timeout=30)

    async def list(self, key: str = "ann", base: str = BASE) -> httpx.Response:
        async with self.client(key, base) as client:
            return await client.get(f"{API}/workspaces/{self.workspace}/views")

    async def address(self, name: str = "app") -> str:
        (found,) = [view["url"] for view in (await self.list()).json() if view["name"] == name]
        return found

    @property
    def started(self) -> str:
        """An x for each time that a program of a view was started."""
        path = self.folder / "root" / self.workspace / "started"
        return path.read_text() if path.exists() else ""


@asynccontextmanager
async def open_site(folder: Path, views: dict[str, WebView] | None = None, **settings: Any) -> AsyncGenerator[Site]:
    if views is None:
        views = {name: make_view(find_free_port(), program=SERVED_PROGRAM) for name in ("app", "big-screen")}
    label = format_views(views)

    def make(path: str) -> BoxWorkspace:
        return BoxWorkspace(PlainBox(path, state=f"{path}-state", views=label))

    chosen: dict[str, Any] = {
        "store": folder / "store",
        "root": folder / "root",
        "workspaces": make,
        **settings,
    }
    app, clock = create_app(ServeSettings.model_validate(chosen), agents={}), Clock()
    app._security.views._clock = clock  # pyright: ignore[reportPrivateUsage] - a ticket has to expire
    with anyio.fail_after(60):
        async with app.lifespan():
            site = Site(app, folder, clock)
            for name in ("ann", "ben"):
                await site.add_key(name)
            async with site.client("ann") as client:
                made = await client.post(f"{API}/workspaces", json={})
                assert made.status_code == 201, made.text
                site.workspace = made.json()["id"]
            yield site


def without_lifespan(app: ServeApp) -> Any:
    """Return the app for a server; its lifespan is entered already."""

    async def served(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "lifespan":
            await app(scope, receive, send)
            return
        for _ in range(2):
            await send({"type": f"{(await receive())['type']}.complete"})

    return served
