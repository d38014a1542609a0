"""Requests that mean harm, at the whole server: each is refused, repeats nothing of what was sent, and breaks nothing."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

import anyio
import httpx
import pytest

from agentcore import Agent
from agentcore.testing import ScriptedLLM, say
from agentcore_serve import ServeApp, ServeSettings, create_app
from agentcore_serve.api import all_routes
from agentcore_serve.limits import RequestLimits
from agentcore_serve.routes.table import WEBSOCKET
from rounds import some_quick
from serving import serve

_API: Final = "/api/v1"
_CANARY: Final = "c4n4ry"
_BASE: Final = "http://127.0.0.1:8420"


@asynccontextmanager
async def _served(tmp_path: Path, **settings: Any) -> AsyncGenerator[tuple[ServeApp, httpx.AsyncClient]]:
    """Serve an app with a key, which the client has."""
    chosen = ServeSettings.model_validate({"store": tmp_path / "store", "root": tmp_path / "root", **settings})
    app = create_app(chosen, agents={"coder": Agent(llm=ScriptedLLM([say("Done.")], repeat=True))})
    async with app.lifespan():
        _, key = await app.state.security.keys.add("all")
        transport = httpx.ASGITransport(app)
        headers = {"x-api-key": key.get_secret_value()}
        async with httpx.AsyncClient(transport=transport, base_url=_BASE, headers=headers, timeout=20) as client:
            with anyio.fail_after(60):  # noqa: ASYNC100 the test inside of it waits
                yield app, client


async def _make(client: httpx.AsyncClient, **spec: Any) -> dict[str, str]:
    made = await client.post(f"{_API}/conversations", json=spec)
    assert made.status_code == 201, made.text
    info = (await client.get(f"{_API}/conversations/{made.json()['id']}")).json()
    return {
        "id": info["id"],
        "workspace": info["workspace"],
        "sha256": "0" * 64,
        "action": "act_1",
        "question": "que_1",
        "ask": "ask_1",
        "command": "cmd_1",
        "key": "ac_000000000000",
        "name": "app.js",
        "view": "app",
    }


_BODIES: Final[dict[str, bytes]] = {
    "no JSON": f"{_CANARY}".encode(),
    "half of it": b'{"text": "' + _CANARY.encode(),
    "UTF-16": f'{{"text": "{_CANARY}"}}'.encode("utf-16"),
    "not UTF-8": b'{"text": "\xff' + _CANARY.encode() + b'"}',
    "a surrogate in UTF-8": b'{"text": "\xed\xa0\x80' + _CANARY.encode() + b'"}',
    "half of a pair": f'{{"text": "\\ud800{_CANARY}"}}'.encode(),
    "half of a pair as a name": f'{{"\\ud800{_CANARY}": 1}}'.encode(),
    "NaN": b'{"text": NaN}',
    "infinity": b'{"text": -Infinity}',
    "an infinite number": b'{"text": 1e999}',
    "an integer of 100,000 digits": b'{"text": ' + b"9" * 100_000 + b"}",
    "deep lists": b"[" * 100_000 + b"]" * 100_000,
    "deep objects": b'{"a":' * 200 + b"1" + b"}" * 200,
    "deep in a field": b'{"agent": {"record": ' + b'{"a":' * 150 + b"1" + b"}" * 150 + b"}}",
    "a list": b'["' + _CANARY.encode() + b'"]',
    "a string": b'"' + _CANARY.encode() + b'"',
    "a field that is not there": f'{{"{_CANARY[:3]}x": "{_CANARY}"}}'.encode(),
    "a field of a long name": json.dumps({"x" * 100 + _CANARY: 1}).encode(),
    "who did it": f'{{"by": "{_CANARY}"}}'.encode(),
    "a command's kind": f'{{"kind": "{_CANARY}"}}'.encode(),
    "wrong types": json.dumps({"text": [_CANARY], "id": {"a": _CANARY}, "title": [_CANARY], "to": _CANARY}).encode(),
    "two minds": b'{"a": 1} {"text": "' + _CANARY.encode() + b'"}',
}


async def test_no_route_takes_a_body_that_is_wrong_or_repeats_it(tmp_path: Path) -> None:
    async with _served(tmp_path, request_limits={"requests_per_minute": 100_000}) as (_, client):
        ids = await _make(client)
        for route in all_routes():
            if route.body is None or route.method == WEBSOCKET:
                continue
            for name, body in _BODIES.items():
                path = route.path.format_map(ids)
                answer = await client.request(
                    route.method, path, content=body, headers={"content-type": "application/json"}
                )
                case = (route.method, route.path, name, answer.status_code, answer.text[:300])
                assert 400 <= answer.status_code < 500, case
                assert answer.headers["content-type"] == "application/problem+json", case
                assert _CANARY not in answer.text, case


_IDS: Final = (
    "..",
    "../../etc/passwd",
    "..%2f..%2fetc",
    "a/b",
    "a\\b",
    "\0",
    "a\nb",
    "a" * 300,
    "a" * 10_000,
    "é" * 200,
    "\u202e",
    ".hidden",
    "-rf",
    "CON",
    "x.jsonl",
    " ",
    "%",
    "$(id)",
    "<script>",
    "1e400",
)


@pytest.mark.slow
async def test_ids_are_names_and_not_paths_however_they_are_written(tmp_path: Path) -> None:
    async with _served(tmp_path, request_limits={"requests_per_minute": 100_000}) as (_, client):
        ids = await _make(client)
        before = _files(tmp_path)
        # Those that make what is not there come last.
        for route in sorted(all_routes(), key=lambda each: each.method == "PUT"):
            if "{" not in route.path or route.method == WEBSOCKET:
                continue
            template = route.path.replace(":path}", "}")
            for name in _IDS:
                for parameter in ("id", "workspace", "sha256", "action", "question", "ask", "command", "key", "view"):
                    if f"{{{parameter}" not in route.path:
                        continue
                    path = template.format_map({**ids, "port": 8000, "path": "", parameter: quote(name, safe="")})
                    body: dict[str, Any] | None = {} if route.body is not None else None
                    if route.method == "PUT" and route.path.endswith("/{id}"):
                        body = {"title": "T"}
                    answer = await client.request(route.method, path, json=body)
                    case = (route.method, route.path, parameter, name[:40], answer.status_code, answer.text[:200])
                    assert answer.status_code < 500, case
                    if parameter in ("id", "workspace") and route.method != "PUT":
                        assert answer.status_code >= 400, case
        grown = {path for path in _files(tmp_path) - before if path.parts[0] != "store"}
        # Whatever was made is below the store, in a folder or a file of its own.
        assert {path.parts[0] for path in grown} <= {"root"}
        assert not (tmp_path.parent / "etc").exists()


def _files(folder: Path) -> set[Path]:
    return {path.relative_to(folder) for path in folder.rglob("*")}


_QUERIES: Final = (
    "after=99999999999999999999999",
    "after=-1",
    "after=1e9",
    "after=" + "9" * 5_000,
    "before=99999999999999999999999",
    "before=-5&limit=1",
    "limit=0",
    "limit=100000000000000000000",
    "kind=nothing",
    "kind=%00",
    "cursor=nan~x",
    "cursor=inf~x",
    "cursor=1e999~x",
    "cursor=~",
    "cursor=%ff%fe",
    "text=%00",
    "text=%22%22%22",
    "text=a*%20OR%20NEAR(%22",
    "text=%ed%a0%80",
    "tag=%00",
    "tag=" + "a" * 5_000,
    "status=nothing",
    "wait=nan",
    "wait=inf",
    "wait=-1",
    "wait=1e400",
    "path=%00",
    "path=" + "a/" * 3_000,
    "path=" + "a" * 5_000,
    "path=%ff%fe",
    "path=~root",
    "path=" + quote("../../../../etc/passwd"),
    "path=/etc/passwd",
    "path=/proc/self/environ",
    "path=/dev/zero",
    "max_bytes=99999999999999999999",
    "mode=777777",
    "name=..",
    "name=%00",
    "name=" + "a" * 5_000,
    "limit=1&limit=2",
    "unknown=1",
    "%ff=%ff",
    "birth=%00&after=1",
    "deltas=2",
)


@pytest.mark.slow
async def test_no_query_is_too_much(tmp_path: Path) -> None:
    async with _served(tmp_path, request_limits={"requests_per_minute": 100_000}) as (_, client):
        ids = await _make(client)
        for route in all_routes():
            if (
                route.method == WEBSOCKET
                or route.path.endswith("/stream")
                or route.method == "DELETE"
                or route.any_query
            ):
                continue
            fields = {"unknown", "%ff"} if route.query is None else {"unknown", "%ff", *route.query.model_fields}
            for query in (each for each in _QUERIES if each.partition("=")[0] in fields):
                path = f"{route.path.format_map(ids)}?{query}"
                body: dict[str, Any] | None = {} if route.body is not None else None
                content = b"" if route.raw is not None else None
                headers = {} if route.raw is None else {"content-type": route.raw}
                if content is not None:
                    answer = await client.request(route.method, path, content=content, headers=headers)
                else:
                    answer = await client.request(route.method, path, json=body)
                case = (route.method, route.path, query[:60], answer.status_code, answer.text[:200])
                assert answer.status_code < 500, case
                assert "root:x:" not in answer.text, case


_SPECS: Final[dict[str, dict[str, Any]]] = {
    "a schema that fetches": {
        "tools": [{"name": "t", "description": "d", "parameters": {"$ref": "http://169.254.169.254/schema"}}]
    },
    "a schema that is none": {"tools": [{"name": "t", "description": "d", "parameters": {"type": 7}}]},
    "a schema without end": {
        "tools": [{"name": "t", "description": "d", "parameters": {"$ref": "#", "type": "object"}}]
    },
    "a tool of an impossible name": {
        "tools": [{"name": "a b\n", "description": "d", "parameters": {"type": "object"}}]
    },
    "a tool with hints that are none": {
        "tools": [{"name": "t", "description": "d", "parameters": {"type": "object"}, "annotations": {"x": []}}]
    },
    "a tool that uses nothing": {
        "tools": [{"name": "t", "description": "d", "parameters": {"type": "object"}, "resources": [{"x": 1}]}]
    },
    "a tool twice": {"tools": [{"name": "t", "description": "d", "parameters": {"type": "object"}}] * 2},
    "a tool of the server's name": {
        "tools": [{"name": "finish", "description": "d", "parameters": {"type": "object"}}]
    },
    "a secret of an impossible name": {"secrets": {"a=b": "long-enough-value"}},
    "an empty secret": {"secrets": {"TOKEN": ""}},
    "a client's secret of an impossible name": {"client_secrets": ["a b"]},
    "limits below zero": {"limits": {"steps": -1}},
    "a policy that is none": {"policy": {"name": ["never_confirm"]}},
    "a policy with too much": {"policy": {"name": "confirm_risky", "threshold": "x" * 1000}},
    "a folder outside": {"workspace": {"folder": "../../etc"}},
    "an absolute folder": {"workspace": {"folder": "/etc"}},
    "a folder of NUL": {"workspace": {"folder": "a\0b"}},
    "a folder of a long name": {"workspace": {"folder": "a" * 5_000}},
    "the store": {"workspace": {"folder": "../store"}},
    "a workspace that is not there": {"workspace": "ws_nothing"},
    "a workspace that is a path": {"workspace": "../../etc"},
    "an agent that is not there": {"agent": "nobody"},
    "a record that is none": {"agent": {"record": {"llm": [], "tools": 7}}},
    "a record of nothing": {"agent": {"record": {}}},
    "a model key with a line break": {
        "agent": {
            "record": {"llm": {"model": "openai/x"}, "tools": [], "max_parallel_calls": 1},
            "model_key": "sk\r\nX-Evil: 1",
        }
    },
    "no parallel calls": {"agent": {"record": {"llm": {"model": "openai/x"}, "tools": [], "max_parallel_calls": 0}}},
    "a long title": {"title": "t" * 100_000},
    "a thousand tags": {"tags": {f"t{number}": "v" for number in range(1_000)}},
}


@pytest.mark.parametrize("name", some_quick(_SPECS, 4))
async def test_a_conversation_of_a_hostile_spec_is_refused_or_harmless(tmp_path: Path, name: str) -> None:
    async with _served(tmp_path) as (_, client):
        answer = await client.post(f"{_API}/conversations", json=_SPECS[name])
        assert answer.status_code < 500, answer.text
        if answer.status_code == 201:
            run = await client.post(f"{_API}/conversations/{answer.json()['id']}/run?wait=5", json={"text": "Go"})
            assert run.status_code < 500 or run.json()["code"] != "internal_error", run.text
        listed = await client.get(f"{_API}/conversations")
        assert listed.status_code == 200
        assert len(listed.json()["items"]) == (answer.status_code == 201)


async def test_a_link_that_an_agent_makes_leads_nowhere(tmp_path: Path) -> None:
    (tmp_path / "outside.txt").write_text(_CANARY)
    async with _served(tmp_path) as (_, client):
        workspace = (await _make(client))["workspace"]
        path = f"{_API}/workspaces/{workspace}"
        links = f"ln -s {tmp_path}/outside.txt file; ln -s {tmp_path} folder; ln -s folder/outside.txt through; ln -s / root"
        assert (await client.post(f"{path}/commands", json={"command": links})).status_code == 200
        for each in ("file", "folder/outside.txt", "through", f"root{tmp_path}/outside.txt"):
            for method, folder in (("GET", "files"), ("PUT", "files"), ("POST", "files/append"), ("GET", "stat")):
                content = b"overwritten" if method != "GET" else None
                answer = await client.request(method, f"{path}/{folder}?path={each}", content=content)
                if (folder, each) != ("stat", "file") and (folder, each) != ("stat", "through"):
                    assert answer.status_code in (403, 404, 409, 422), (method, folder, each, answer.text)
                assert _CANARY not in answer.text
        for each in ("folder", "root"):
            for folder in ("list", "folders"):
                answer = await client.get(f"{path}/{folder}?path={each}")
                assert answer.status_code in (403, 404, 409, 422), (folder, each)
    assert (tmp_path / "outside.txt").read_text() == _CANARY


async def test_pages_of_other_sites_and_other_names_reach_nothing(tmp_path: Path) -> None:
    async with _served(tmp_path) as (app, client):
        await _make(client, title=_CANARY)
        key = client.headers.pop("x-api-key")
        code = app.state.security.pages.codes.issue(key[:15])
        entered = await client.get("/enter", params={"code": code})
        assert "SameSite=Strict" in entered.headers["set-cookie"]
        same = {"sec-fetch-site": "same-origin"}
        assert _CANARY in (await client.get(f"{_API}/conversations", headers=same)).text
        for headers in (
            {},
            {"sec-fetch-site": "cross-site"},
            {"sec-fetch-site": "same-site"},
            {"origin": "http://evil.example", **same},
            {"origin": "null", **same},
            {"origin": "http://127.0.0.1:1", **same},
            {"host": "evil.example:8420", **same},
            {"host": "127.0.0.1.evil.example", **same},
        ):
            for method, path in (("GET", "/conversations"), ("POST", "/conversations"), ("POST", "/tickets")):
                answer = await client.request(
                    method,
                    f"{_API}{path}",
                    headers=headers,
                    json={} if path != "/tickets" and method == "POST" else None,
                )
                assert answer.status_code in (400, 403), (headers, method, path)
                assert _CANARY not in answer.text
        assert len((await client.get(f"{_API}/conversations", headers=same)).json()["items"]) == 1


@pytest.mark.parametrize("name", ["key", "api_key", "token", "access_token", "X-API-Key", "authorization"])
async def test_a_key_by_its_name_in_a_url_is_refused_on_every_route(tmp_path: Path, name: str) -> None:
    async with _served(tmp_path) as (_, client):
        for route in all_routes():
            # The query of a port is for what listens there.
            if route.method != WEBSOCKET and not route.any_query:
                answer = await client.request(route.method, route.path, params={name: "anything"})
                assert (answer.status_code, answer.json()["code"]) == (400, "key_in_url")


async def test_a_key_anywhere_in_a_url_is_refused_and_not_repeated(tmp_path: Path) -> None:
    async with _served(tmp_path) as (_, client):
        key = client.headers["x-api-key"]
        for method, path in (
            ("PUT", f"{_API}/conversations/{key}"),
            ("GET", f"{_API}/conversations/{key}/events"),
            ("GET", f"{_API}/conversations?text={key}"),
            ("GET", f"{_API}/conversations?{key}"),
            ("GET", f"{_API}/conversations?text=ac%5F{key[3:]}"),
            ("GET", f"/{key}"),
        ):
            answer = await client.request(method, path, json={} if method == "PUT" else None)
            assert (answer.status_code, answer.json()["code"]) == (400, "key_in_url")
            assert key not in answer.text
    assert not [path for path in (tmp_path / "store").rglob("*") if key in path.name]


async def test_floods_of_headers_and_paths_are_refused(tmp_path: Path) -> None:
    async with _served(tmp_path) as (_, client):
        flood = {f"x-{number}": "y" * 100 for number in range(200)}
        assert (await client.get(f"{_API}/version", headers=flood)).status_code == 431
        assert (await client.get(f"{_API}/conversations/{'a' * 17_000}")).status_code == 414
        assert (await client.get(f"{_API}/conversations?text={'a' * 17_000}")).status_code == 414
        assert (await client.get(f"{_API}/version")).status_code == 200


async def test_limits_hold_at_the_whole_server(tmp_path: Path) -> None:
    limits = {"requests_per_minute": 5, "wrong_keys_per_minute": 3, "json_bytes": 1_000, "message_bytes": 2_000}
    async with _served(tmp_path, request_limits=limits) as (_, client):
        too_long = await client.post(f"{_API}/workspaces", json={"folder": "a" * 1_000})
        assert (too_long.status_code, too_long.json()["code"]) == (413, "body_too_large")
        assert (await client.post(f"{_API}/conversations", json={"title": "a" * 1_500})).status_code == 201
        assert (await client.post(f"{_API}/conversations", json={"title": "a" * 2_000})).status_code == 413
        plain = await client.post(f"{_API}/conversations", content=b"{}", headers={"content-type": "text/plain"})
        assert plain.status_code == 415
        packed = {"content-type": "application/json", "content-encoding": "gzip"}
        assert (await client.post(f"{_API}/conversations", content=b"{}", headers=packed)).status_code == 415
        busy = await client.get(f"{_API}/version")
        assert (busy.status_code, busy.json()["code"]) == (429, "too_many_requests")
        assert int(busy.headers["retry-after"]) >= 1
        for _ in range(3):
            assert (await client.get(f"{_API}/version", headers={"x-api-key": "wrong"})).status_code == 401
        locked = await client.get(f"{_API}/version", headers={"x-api-key": "wrong"})
        assert (locked.status_code, locked.json()["code"]) == (429, "too_many_requests")
        assert (await client.get("/livez")).status_code == 200


async def test_streams_are_bounded_at_the_whole_server(tmp_path: Path) -> None:
    settings = ServeSettings(
        store=tmp_path / "store", root=tmp_path / "root", auth=False, request_limits=RequestLimits(streams=1)
    )
    app = create_app(settings, agents={"coder": Agent(llm=ScriptedLLM([say("Done.")]))})
    with anyio.fail_after(30):
        async with serve(app) as server, httpx.AsyncClient(base_url=server.url, timeout=60) as client:
            path = f"{_API}/conversations/{(await _make(client))['id']}/stream"
            async with client.stream("GET", path) as first:
                assert first.status_code == 200
                refused = await client.get(path)
                assert (refused.status_code, refused.json()["code"]) == (429, "too_many_requests")
                assert int(refused.headers["retry-after"]) >= 1
            status = 429
            while status == 429:  # until the server has seen that the first one left
                async with client.stream("GET", path) as second:
                    status = second.status_code
            assert status == 200
