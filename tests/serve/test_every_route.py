"""Every route of the server, WebSockets included, to everybody who may not use it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from itertools import chain
from pathlib import Path
from typing import Any, Final, NamedTuple

import anyio
import httpx
from starlette.types import Message

from agentcore import Agent
from agentcore.testing import ScriptedLLM, say
from agentcore_serve import ServeApp, ServeSettings, create_app
from agentcore_serve.api import all_routes
from agentcore_serve.auth.identity import SCOPES
from agentcore_serve.routes.table import WEBSOCKET, Route
from guarded import Clock

_BASE: Final = "http://127.0.0.1:8420"
_CANARY: Final = "c4n4ry-of-ann"
_HOUR: Final = 3_600.0

_OPEN: Final = {"/", "/docs.css", "/enter", "/livez", "/readyz"}
"""Routes without a key. A route belongs here only if it says nothing of anybody's work."""

_VIEW: Final = "/api/v1/workspaces/{workspace}/views/{view}"
"""Takes a ticket of a view, in an address that a browser opens, and answers at the view's own host alone."""

_OPEN_FOLDERS: Final = ("/page/",)
"""Below them are the files of the page, which are the same for everybody."""

_NOBODYS: Final = {"/api/v1/keys/{key}"}
"""Routes on one thing that no owner has."""


def _name(route: Route) -> str:
    return f"{route.method} {route.path}"


_ROUTES: Final = {_name(route): route for route in all_routes()}
_KEYED: Final = {name: route for name, route in _ROUTES.items() if route.scope is not None}
_OWNED: Final = {name: route for name, route in _KEYED.items() if "{" in route.path and route.path not in _NOBODYS}

_QUERIES: Final[Mapping[str, str]] = {
    "files": "path=secret.txt",
    "append": "path=secret.txt",
    "folders": "path=.",
    "list": "path=.",
    "stat": "path=secret.txt",
    "private": "name=notes",
    "diff": "path=.",
    "app": "ticket=x",
}
_BODIES: Final[Mapping[str, dict[str, Any]]] = {
    "commands": {"command": "cat secret.txt"},
    "messages": {"text": "Hello"},
    "run": {"text": "Hello"},
    "ask": {"question": "Why?"},
    "asks": {"error": "no", "code": "Gone"},
}


class _Answer(NamedTuple):
    status: int
    text: str


class _Site:
    """A server, keys of several kinds, and what one owner has on it."""

    def __init__(self, app: ServeApp, client: httpx.AsyncClient) -> None:
        self.app = app
        self._client = client
        self.keys: dict[str, str] = {}
        self.ids: dict[str, str] = {}

    async def add_key(self, name: str, **options: Any) -> str:
        record, secret = await self.app.state.security.keys.add(name, **options)
        self.keys[name] = secret.get_secret_value()
        return record.id

    async def call(self, route: Route, key: str | None, *, sound: bool = True) -> _Answer:
        """Call a route, on what Ann has."""
        path = route.path.replace(":path}", "}").format_map(self.ids)
        folder = path.rpartition("/")[2] if not route.path.endswith("{ask}") else "asks"
        query = _QUERIES.get(folder, "") if sound and "workspaces" in path else ""
        headers = {} if key is None else {"x-api-key": key}
        if route.method == WEBSOCKET:
            return await _call_websocket(self.app, path, headers)
        if route.raw is not None:
            content, headers["content-type"] = b"x", route.raw
        else:
            content, headers["content-type"] = b"{", "application/json"
        body = _BODIES.get(folder, {}) if sound and route.raw is None and route.body is not None else None
        if body is not None:
            answer = await self._client.request(route.method, f"{path}?{query}", json=body, headers=headers)
        elif sound and route.raw is None:
            answer = await self._client.request(
                route.method, f"{path}?{query}", headers={"x-api-key": headers.get("x-api-key", "")}
            )
        else:
            answer = await self._client.request(route.method, f"{path}?{query}", content=content, headers=headers)
        return _Answer(answer.status_code, answer.text)


@asynccontextmanager
async def _site(tmp_path: Path) -> AsyncGenerator[_Site]:
    clock = Clock()
    settings = ServeSettings.model_validate(
        {
            "store": tmp_path / "store",
            "root": tmp_path / "root",
            "shared_user": True,
            "request_limits": {"wrong_keys_per_minute": 100_000, "requests_per_minute": 100_000},
        }
    )
    app = create_app(settings, agents={"coder": Agent(llm=ScriptedLLM([say(_CANARY)], repeat=True))})
    app._security.clock = clock  # pyright: ignore[reportPrivateUsage] - a key has to expire
    async with app.lifespan():
        async with httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url=_BASE, timeout=20) as client:
            with anyio.fail_after(60):
                site = _Site(app, client)
                await site.add_key("ann", owner="ann")
                await site.add_key("ben", owner="ben")
                for scope in SCOPES:
                    await site.add_key(
                        f"without {scope}", owner="ann", scopes=[each for each in SCOPES if each != scope]
                    )
                revoked = await site.add_key("revoked", owner="ann")
                await app.state.security.keys.revoke(revoked)
                expires = datetime.fromtimestamp(clock.now + _HOUR, UTC)
                await site.add_key("expired", owner="ann", expires=expires)
                clock.now += 2 * _HOUR
                await _furnish(site, client)
                yield site


async def _furnish(site: _Site, client: httpx.AsyncClient) -> None:
    ann = {"x-api-key": site.keys["ann"]}
    made = await client.post(
        "/api/v1/conversations", json={"title": _CANARY, "tags": {"project": _CANARY}}, headers=ann
    )
    assert made.status_code == 201, made.text
    conversation = made.json()["id"]
    path = f"/api/v1/conversations/{conversation}"
    run = await client.post(f"{path}/run?wait=60", json={"text": _CANARY}, headers=ann)
    assert run.json()["text"] == _CANARY
    workspace = (await client.get(path, headers=ann)).json()["workspace"]
    files = f"/api/v1/workspaces/{workspace}/files?path=secret.txt"
    assert (await client.put(files, content=_CANARY.encode(), headers=ann)).status_code < 300
    site.ids = {
        "id": conversation,
        "workspace": workspace,
        "sha256": "0" * 64,
        "action": "act_1",
        "question": "que_1",
        "ask": "ask_1",
        "command": "cmd_1",
        "key": "ac_000000000000",
        "name": "app.js",
        "port": "8000",
        "path": "index.html",
        "view": "app",
    }


async def _call_websocket(app: ServeApp, path: str, headers: dict[str, str]) -> _Answer:
    incoming = chain([{"type": "websocket.connect"}], [{"type": "websocket.disconnect", "code": 1001}])
    sent: list[Message] = []
    scope: dict[str, Any] = {
        "type": "websocket",
        "asgi": {"version": "3.0"},
        "scheme": "ws",
        "path": path,
        "raw_path": path.encode(),
        "root_path": "",
        "query_string": b"",
        "headers": [(b"host", b"127.0.0.1:8420"), *((k.encode(), v.encode()) for k, v in headers.items())],
        "client": ("127.0.0.1", 4711),
        "server": ("127.0.0.1", 8420),
        "subprotocols": [],
        "extensions": {"websocket.http.response": {}},
    }

    async def receive() -> Message:
        return next(incoming)

    async def send(message: Message) -> None:
        sent.append(message)

    await app(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent) + b"".join(
        (message.get("text") or "").encode() for message in sent
    )
    return _Answer(sent[0].get("status", 101), body.decode())


async def test_every_route_answers_who_has_no_right_key_with_401_and_a_missing_scope_with_403(tmp_path: Path) -> None:
    async with _site(tmp_path) as site:
        strangers = {
            "no key": None,
            "a wrong key": f"{site.keys['ann'][:-1]}{'0' if site.keys['ann'][-1] != '0' else '1'}",
            "a key that never was": "ac_000000000000_" + "0" * 64,
            "the id alone": site.keys["ann"][:15],
            "no key at all": "x",
            "a revoked key": site.keys["revoked"],
            "an expired key": site.keys["expired"],
        }
        for name, route in _KEYED.items():
            # The body is wrong as well: nobody learns of that, or of what is there, before he has shown his key.
            for sound in (True, False):
                for who, key in strangers.items():
                    answer = await site.call(route, key, sound=sound)
                    assert (name, who, answer.status) == (name, who, 401)
                    assert _CANARY not in answer.text
                answer = await site.call(route, site.keys[f"without {route.scope}"], sound=sound)
                assert (name, answer.status) == (name, 403)
                assert _CANARY not in answer.text


async def test_what_another_owner_has_is_not_there(tmp_path: Path) -> None:
    async with _site(tmp_path) as site:
        for name, route in _OWNED.items():
            answer = await site.call(route, site.keys["ben"])
            assert (name, answer.status) == (name, 404), answer.text
            assert _CANARY not in answer.text
            # It is told in the same words as what never was.
            mine, site.ids = site.ids, {**site.ids, "id": "conv_never", "workspace": "ws_never"}
            if name != "PUT /api/v1/conversations/{id}":
                never = await site.call(route, site.keys["ben"])
                assert (name, never.status) == (name, 404)
            site.ids = mine
        for name, route in _KEYED.items():
            if "{" not in route.path and route.method == "GET":
                answer = await site.call(route, site.keys["ben"])
                assert (name, answer.status) == (name, 200)
                assert _CANARY not in answer.text
        # And all of it is there for Ann, untouched.
        ann = site.keys["ann"]
        for name in ("GET /api/v1/conversations/{id}", "GET /api/v1/workspaces/{workspace}/files"):
            answer = await site.call(_ROUTES[name], ann)
            assert answer.status == 200
            assert _CANARY in answer.text


async def test_no_route_fails_for_who_may_use_it(tmp_path: Path) -> None:
    async with _site(tmp_path) as site:
        last = {"DELETE /api/v1/conversations/{id}", "DELETE /api/v1/workspaces/{workspace}"}
        for name, route in sorted(_ROUTES.items(), key=lambda each: each[0] in last):
            if route.method == "GET" and route.path.endswith("/stream"):
                continue  # httpx reads an answer to its end before it shows it
            for sound in (False, True):
                answer = await site.call(route, site.keys["ann"], sound=sound)
                assert answer.status < 500, (name, answer)


def test_a_route_without_a_scope_is_one_of_a_few() -> None:
    unkeyed = {route.path for route in _ROUTES.values() if route.scope is None}
    assert {path for path in unkeyed if not path.startswith(_OPEN_FOLDERS)} <= _OPEN | {_VIEW}, (
        "A route that needs no key says nothing of anybody's work: give it a scope, or add it here with a reason."
    )


def test_what_changes_something_needs_more_than_reading() -> None:
    of_ones_own = {"/api/v1/tickets", "/api/v1/page-codes", "/leave"}
    for name, route in _ROUTES.items():
        if route.method not in ("GET", WEBSOCKET) and route.path not in of_ones_own:
            assert route.scope not in (None, "read"), name
