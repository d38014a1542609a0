"""What each request passes: names and origins, headers, sizes, rates, problems, logs."""

from __future__ import annotations

import json
import stat
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
import structlog
from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from structlog.testing import capture_logs

from agentcore.errors import ConversationNotFound, RateLimited
from agentcore_serve.refused import Refused
from guarded import BASE, call_websocket, guard

JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("settings", "host", "status"),
    [
        ({}, "127.0.0.1:8420", 200),
        ({}, "localhost:8420", 200),
        ({}, "LOCALHOST", 200),
        ({}, "[::1]:8420", 200),
        ({}, "evil.example:8420", 400),
        ({}, "127.0.0.1.evil.example", 400),
        ({}, "192.0.2.7:8420", 400),
        ({}, "evil.example@localhost", 400),
        ({}, "localhost:8420/x", 400),
        ({}, "localhost:port", 400),
        ({}, "", 400),
        ({"allowed_hosts": ("agents.example.com",)}, "agents.example.com", 200),
        ({"allowed_hosts": ("agents.example.com:8443",)}, "agents.example.com:8443", 200),
        ({"allowed_hosts": ("agents.example.com",)}, "x.agents.example.com", 400),
        ({"host": "0.0.0.0", "tls_cert": "c", "tls_key": "k"}, "192.0.2.7:8420", 200),
        ({"host": "0.0.0.0", "tls_cert": "c", "tls_key": "k"}, "evil.example", 400),
        ({"host": "192.0.2.7", "tls_cert": "c", "tls_key": "k"}, "192.0.2.7", 200),
    ],
)
async def test_only_names_of_the_server_are_answered(
    tmp_path: Path, settings: dict[str, Any], host: str, status: int
) -> None:
    async with guard(tmp_path, **settings) as guarded, guarded.client(guarded.key) as client:
        for path in ("/livez", "/api/v1/whoami"):
            answer = await client.get(path, headers={"Host": host})
            assert answer.status_code == status
            if status != 200:
                assert answer.json()["code"] == "host_not_allowed"
                assert not host or host not in answer.text
                assert "--allowed-host" in answer.json()["detail"]


async def test_two_hosts_in_one_request_are_refused(tmp_path: Path) -> None:
    async with guard(tmp_path) as guarded:
        sent = await call_websocket(guarded, headers={"Host": "127.0.0.1:8420", "x-api-key": guarded.key})
        assert sent[0]["type"] == "websocket.accept"  # the same dictionary key as ours: one header
        async with guarded.client(guarded.key) as client:
            headers = [("Host", "127.0.0.1:8420"), ("Host", "evil.example")]
            assert (await client.get("/api/v1/whoami", headers=headers)).status_code == 400


@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:3000", "http://127.0.0.1", "null", "x"])
async def test_other_origins_are_refused_also_with_a_key_and_there_is_no_cors(tmp_path: Path, origin: str) -> None:
    async with guard(tmp_path) as guarded, guarded.client(guarded.key, Origin=origin) as client:
        for method in ("GET", "POST", "OPTIONS"):
            headers = {"Access-Control-Request-Method": "POST"} if method == "OPTIONS" else {}
            answer = await client.request(method, "/api/v1/whoami", headers=headers)
            assert (answer.status_code, answer.json()["code"]) == (403, "origin_not_allowed")
            assert not [name for name in answer.headers if name.startswith("access-control-")]
        sent = await call_websocket(guarded, headers={"origin": origin, "x-api-key": guarded.key})
        assert sent[0]["status"] == 403


async def test_the_own_origin_is_the_scheme_host_and_port_that_the_browser_sees(tmp_path: Path) -> None:
    async with guard(tmp_path) as guarded, guarded.client(guarded.key, Origin=BASE) as client:
        assert (await client.post("/api/v1/whoami")).status_code == 200
        assert (await client.post("/api/v1/whoami", headers={"Origin": "https://127.0.0.1:8420"})).status_code == 403


async def test_behind_a_proxy_its_last_headers_name_client_scheme_host_and_request(tmp_path: Path) -> None:
    async with guard(
        tmp_path, behind_proxy=True, allowed_hosts=("a.example",), request_limits={"wrong_keys_per_minute": 1}
    ) as guarded:
        forwarded = {"X-Forwarded-Proto": "https", "X-Forwarded-Host": "a.example", "X-Request-ID": "from-proxy.1"}
        async with guarded.client(guarded.key, Origin="https://a.example", **forwarded) as client:
            answer = await client.get("/api/v1/whoami")
            assert (answer.status_code, answer.headers["x-request-id"]) == (200, "from-proxy.1")
            answer = await client.get("/livez", headers={"X-Request-ID": "a b\tc"})
            assert answer.headers["x-request-id"].startswith("req_")
            plain = await client.get("/api/v1/whoami", headers={"X-Forwarded-Proto": "http"})
            assert plain.status_code == 403
        async with guarded.client("wrong", **forwarded) as client:
            for addresses, status in (
                ("203.0.113.1", 401),
                ("203.0.113.9, 203.0.113.1", 429),
                ("203.0.113.1, 203.0.113.2", 401),
            ):
                answer = await client.get("/api/v1/whoami", headers={"X-Forwarded-For": addresses})
                assert answer.status_code == status


async def test_without_a_proxy_forwarded_headers_mean_nothing(tmp_path: Path) -> None:
    async with guard(tmp_path, request_limits={"wrong_keys_per_minute": 1}) as guarded:
        async with guarded.client("wrong") as client:
            for address, status in (("203.0.113.1", 401), ("203.0.113.2", 429)):
                headers = {"X-Forwarded-For": address, "X-Forwarded-Host": "evil.example", "X-Request-ID": "mine"}
                answer = await client.get("/api/v1/whoami", headers=headers)
                assert answer.status_code == status
                assert answer.headers["x-request-id"] != "mine"


async def test_every_answer_keeps_browsers_to_the_servers_own_page(tmp_path: Path) -> None:
    async with guard(tmp_path) as guarded, guarded.client(guarded.key) as client:
        for path, headers in (
            ("/", {}),
            ("/api/v1/whoami", {}),
            ("/api/v1/nothing", {}),
            ("/api/v1/fail", {"X-Secret": "s"}),
            ("/livez", {"Host": "evil.example"}),
            ("/api/v1/whoami", {"Authorization": "Bearer wrong"}),
        ):
            answer = await client.get(path, headers=headers)
            policy = answer.headers["content-security-policy"]
            assert "default-src 'none'" in policy
            assert "frame-ancestors 'none'" in policy
            assert "unsafe" not in policy
            assert ("sandbox" in policy) == path.startswith("/api/")
            assert answer.headers["x-content-type-options"] == "nosniff"
            assert answer.headers["x-frame-options"] == "DENY"
            assert answer.headers["referrer-policy"] == "no-referrer"
            assert answer.headers["cross-origin-resource-policy"] == "same-origin"
            assert answer.headers.get("cache-control") == ("no-store" if path.startswith("/api/") else None)


async def test_a_key_gets_600_requests_a_minute_and_then_429(tmp_path: Path) -> None:
    async with guard(tmp_path, request_limits={"requests_per_minute": 60}) as guarded:
        async with guarded.client(guarded.key) as client:
            for _ in range(60):
                assert (await client.get("/api/v1/whoami")).status_code == 200
            answer = await client.get("/api/v1/whoami")
            assert (answer.status_code, answer.json()["code"]) == (429, "too_many_requests")
            assert answer.headers["retry-after"] == "1"
            assert (await client.get("/livez")).status_code == 200
            _, other = await guarded.security.keys.add("other")
            headers = {"Authorization": f"Bearer {other.get_secret_value()}"}
            assert (await client.get("/api/v1/whoami", headers=headers)).status_code == 200
            guarded.clock.now += 1
            assert (await client.get("/api/v1/whoami")).status_code == 200
        assert guarded.security.settings.request_limits.model_fields_set == {"requests_per_minute"}


async def test_streams_are_bounded_and_their_place_is_given_back(tmp_path: Path) -> None:
    async with guard(tmp_path, request_limits={"streams": 1}) as guarded:
        inside: list[int] = []

        async def nested() -> None:
            inside.append((await call_websocket(guarded, headers={"x-api-key": guarded.key}))[0].get("status", 101))

        open_now = anyio.Event()
        entered = anyio.Event()

        async def hold(request: Request) -> Response:
            entered.set()
            await open_now.wait()
            return Response()

        guarded.app.router.routes.insert(0, Route("/api/v1/conversations/c/stream", hold))
        async with guarded.client(guarded.key) as client, anyio.create_task_group() as tasks:
            tasks.start_soon(client.get, "/api/v1/conversations/c/stream")
            await entered.wait()
            await nested()
            open_now.set()
        await nested()
        assert inside == [429, 101]


async def test_headers_and_paths_that_are_too_long_are_refused(tmp_path: Path) -> None:
    async with guard(tmp_path) as guarded, guarded.client(guarded.key) as client:
        assert (await client.get("/api/v1/whoami", headers={"X-A": "a" * 16_000})).status_code == 200
        answer = await client.get("/api/v1/whoami", headers={"X-A": "a" * 16_384})
        assert (answer.status_code, answer.json()["code"]) == (431, "headers_too_large")
        answer = await client.get("/api/v1/whoami?a=" + "a" * 16_384)
        assert (answer.status_code, answer.json()["code"]) == (414, "path_too_long")


@pytest.mark.parametrize(
    ("method", "path", "limit"),
    [
        ("POST", "/api/v1/take", "json_bytes"),
        ("POST", "/api/v1/conversations/c/messages", "message_bytes"),
        ("PUT", "/api/v1/workspaces/w/files/a", "file_bytes"),
    ],
)
async def test_a_body_that_is_too_large_is_refused_announced_or_not(
    tmp_path: Path, method: str, path: str, limit: str
) -> None:
    limits = {"json_bytes": 10, "message_bytes": 10, "file_bytes": 10, limit: 1000}

    async def pieces(size: int) -> Any:
        for at in range(0, size, 100):
            yield b"x" * min(100, size - at)

    async with guard(tmp_path, request_limits=limits) as guarded, guarded.client(guarded.key, **JSON) as client:
        bodies: list[Any] = [b"x" * 1000, pieces(1000)]
        for body in bodies:
            answer = await client.request(method, path, content=body)
            assert (answer.status_code, answer.json()) == (200, {"size": 1000})
        bodies = [b"x" * 1001, pieces(1001)]
        for body in bodies:
            answer = await client.request(method, path, content=body)
            assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")
            assert answer.headers["connection"] == "close"


@pytest.mark.parametrize(
    ("content_type", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("application/merge-patch+json", 200),
        ("text/plain", 415),
        ("multipart/form-data; boundary=x", 415),
        ("application/x-www-form-urlencoded", 415),
        ("application/jsonx", 415),
        ("", 415),
    ],
)
async def test_bodies_are_json_but_for_files(tmp_path: Path, content_type: str, status: int) -> None:
    async with guard(tmp_path) as guarded, guarded.client(guarded.key, **{"Content-Type": content_type}) as client:
        assert (await client.post("/api/v1/take", content=b"{}")).status_code == status
        assert (await client.put("/api/v1/workspaces/w/files/a", content=b"{}")).status_code == 200
        assert (await client.post("/api/v1/take")).status_code == 200
        compressed = await client.post("/api/v1/take", content=b"{}", headers={**JSON, "Content-Encoding": "gzip"})
        assert compressed.status_code == 415


async def test_errors_are_problems_and_unexpected_ones_say_nothing(tmp_path: Path) -> None:
    errors: list[Exception] = [
        ConversationNotFound("c", "here"),
        RateLimited("slow down", retry_after=2.4),
        Refused(422, "invalid_request", "It does not fit.", errors=[{"loc": ("body", "a", 0), "msg": "no"}]),
        ExceptionGroup("tasks", [ExceptionGroup("inner", [Refused(409, "busy", "Busy.")])]),
        KeyError("s3cr3t"),
        ValueError("a caller's"),
        UnicodeDecodeError("utf-8", b"s3cr3t", 0, 1, "s3cr3t"),
        ExceptionGroup("tasks", [ClientDisconnect(), Refused(409, "busy", "Busy.")]),
    ]

    async def endpoint(request: Request) -> Response:
        raise errors[int(request.path_params["at"])]

    async with guard(tmp_path, routes=[Route("/api/v1/raise/{at}", endpoint)]) as guarded:
        async with guarded.client(guarded.key) as client:
            with capture_logs() as logs:
                found = [await client.get(f"/api/v1/raise/{at}") for at in range(len(errors))]
            assert [(each.status_code, each.json()["code"]) for each in found] == [
                (404, "conversation_not_found"),
                (503, "rate_limited"),
                (422, "invalid_request"),
                (409, "busy"),
                (500, "internal_error"),
                (422, "value_error"),
                (500, "internal_error"),
                (409, "busy"),
            ]
            assert found[1].headers["retry-after"] == "2"
            assert found[2].json()["errors"] == [{"loc": ["body", "a", 0], "msg": "no"}]
            for each in found:
                assert each.headers["content-type"] == "application/problem+json"
                assert each.json()["request_id"] == each.headers["x-request-id"]
                assert "s3cr3t" not in each.text
            missing = await client.get("/api/v1/nothing-<script>")
            assert (missing.status_code, missing.json()["code"]) == (404, "not_found")
            assert "script" not in missing.text
            wrong_method = await client.delete("/api/v1/admin")
            assert (wrong_method.status_code, wrong_method.json()["code"]) == (405, "method_not_allowed")
            assert "GET" in wrong_method.headers["allow"]
            head = await client.head("/api/v1/nothing")
            assert (head.status_code, head.content) == (404, b"")
        failures = [entry for entry in logs if entry["event"] == "request_failed"]
        assert [entry["error"][0] for entry in failures] == ["builtins.KeyError", "builtins.UnicodeDecodeError"]
        assert failures[0]["request_id"] == found[4].headers["x-request-id"]
        assert any("test_middleware.py" in frame and "endpoint" in frame for frame in failures[0]["at"])
        assert "s3cr3t" not in repr(logs)


@pytest.fixture
def _structlog() -> Any:
    structlog.configure()
    yield
    structlog.reset_defaults()


pytestmark = pytest.mark.usefixtures("_structlog")


async def test_the_access_log_has_method_path_status_time_key_and_id_and_no_query(tmp_path: Path) -> None:
    async with guard(tmp_path) as guarded, guarded.client(guarded.key) as client:
        with capture_logs() as logs:
            answer = await client.get("/api/v1/whoami?text=s3cr3t")
            await client.get("/livez")
            await client.get(f"/api/v1/x%0a{guarded.key}")
            await call_websocket(guarded, headers={"x-api-key": guarded.key})
        first = logs[0]
        assert (first["event"], first["method"], first["path"], first["status"]) == (
            "request",
            "GET",
            "/api/v1/whoami",
            200,
        )
        assert (first["key"], first["request_id"]) == (guarded.key_id, answer.headers["x-request-id"])
        assert isinstance(first["ms"], float)
        assert logs[1]["key"] is None
        assert logs[2]["path"] == f"/api/v1/x%0A{guarded.key_id}_***"
        assert (logs[3]["method"], logs[3]["status"]) == ("WEBSOCKET", 101)
        assert guarded.observed[:2] == [("/api/v1/whoami", 200), ("/livez", 200)]


async def test_the_audit_log_has_changes_refusals_and_connections_and_never_content(tmp_path: Path) -> None:
    async with guard(tmp_path) as guarded:
        _, reader = await guarded.security.keys.add("reader", scopes=["read"])
        async with guarded.client(guarded.key, **JSON) as client:
            await client.get("/api/v1/whoami")  # reads are not in it
            done = await client.post("/api/v1/take?text=s3cr3t", content=b'"s3cr3t"')
            await client.get("/api/v1/admin", headers={"Authorization": f"Bearer {reader.get_secret_value()}"})
            for _ in range(12):
                await client.get("/api/v1/whoami", headers={"Authorization": "Bearer s3cr3t"})
        async with guarded.client() as stranger:
            await stranger.post("/api/v1/take")
        await call_websocket(guarded, headers={"x-api-key": guarded.key})
        file = tmp_path / "audit.jsonl"
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        assert [(line["action"], line["status"]) for line in lines] == [
            ("POST", 200),
            ("GET", 403),
            *[("GET", 401)] * 10,
            ("WEBSOCKET", 101),
        ]
        assert lines[0] == {
            "time": "2027-01-15T08:00:00.000+00:00",
            "key": guarded.key_id,
            "owner": "ada",
            "action": "POST",
            "target": "/api/v1/take",
            "status": 200,
            "request_id": done.headers["x-request-id"],
            "address": "192.0.2.1",
        }
        assert "s3cr3t" not in file.read_text()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_a_full_disk_under_the_audit_log_stops_no_request(tmp_path: Path) -> None:
    async with guard(tmp_path) as guarded, guarded.client(guarded.key) as client:
        (tmp_path / "audit.jsonl").mkdir()
        with capture_logs() as logs:
            assert (await client.post("/api/v1/whoami")).status_code == 200
        assert logs[0]["event"] == "audit_failed"
        assert (logs[0]["key"], logs[0]["target"]) == (guarded.key_id, "/api/v1/whoami")


async def test_no_key_code_ticket_cookie_or_input_is_in_any_log_or_error(tmp_path: Path) -> None:
    file_key = "f1lek3y-" * 5
    (tmp_path / "key").write_text(file_key)
    marks = ["s3cr3t", file_key]
    texts: list[str] = []
    async with guard(tmp_path, api_key_file=tmp_path / "key") as guarded:
        pages, tickets = guarded.security.pages, guarded.security.tickets
        scope = {"type": "http", "headers": [(b"host", b"127.0.0.1:8420")]}
        code = pages.codes.issue(guarded.key_id)
        cookie = (await pages.enter(code, scope, secure=False)).partition(";")[0]
        wrong = "ac_000000000000_" + "e" * 64
        marks += [guarded.key, code, cookie.partition("=")[2], wrong]
        with capture_logs() as logs:
            for key in (guarded.key, file_key, wrong, "s3cr3t", None):
                async with guarded.client(key, address="192.0.2.9", **{"X-Secret": "s3cr3t", **JSON}) as client:
                    for method, path, extra in (
                        ("GET", "/api/v1/whoami", {}),
                        ("GET", "/api/v1/whoami?q=s3cr3t", {"Cookie": cookie}),
                        ("GET", f"/api/v1/whoami?key={guarded.key}", {}),
                        ("GET", "/api/v1/fail", {}),
                        ("POST", "/api/v1/take", {"Content-Type": "s3cr3t"}),
                        ("POST", "/api/v1/take", {"Content-Length": "9" * 20}),
                        ("GET", "/api/v1/whoami", {"Host": "s3cr3t.example"}),
                        ("GET", "/api/v1/whoami", {"Origin": "https://s3cr3t.example"}),
                        ("GET", "/api/v1/whoami", {"X-Long": "s3cr3t" * 5000}),
                        ("PATCH", "/api/v1/whoami", {}),
                    ):
                        answer = await client.request(method, path, headers=extra, content=b"s3cr3t")
                        texts += [answer.text, repr(answer.headers)]
                ticket = tickets.issue("file")
                marks.append(ticket)
                for query in (f"ticket={ticket}", f"ticket={ticket}", "ticket=s3cr3t"):
                    texts.append(repr(await call_websocket(guarded, query=query)))
            texts += [repr(guarded.security), repr(pages), repr(tickets), repr(guarded.security.keys)]
            texts += [repr(await guarded.security.keys.verify(guarded.key)), repr(guarded.security.settings)]
    texts += [repr(logs), (tmp_path / "audit.jsonl").read_text()]
    assert {entry["event"] for entry in logs} == {"request", "request_failed"}
    for text in texts:
        assert not [mark for mark in marks if mark in text]
    for file in tmp_path.glob("serve.sqlite*"):
        assert not [mark for mark in marks if mark.encode() in file.read_bytes()]


async def test_while_the_server_is_not_started_every_request_is_503(tmp_path: Path) -> None:
    async with guard(tmp_path) as guarded:
        pass
    async with guarded.client(guarded.key) as client:
        answer = await client.get("/api/v1/whoami")
        assert (answer.status_code, answer.json()["code"]) == (503, "not_started")


async def test_mounted_below_a_path_the_same_addresses_are_public(tmp_path: Path) -> None:
    async with guard(tmp_path, request_limits={"file_bytes": 3, "json_bytes": 1}) as guarded:
        mounted = Starlette(routes=[Mount("/agents", guarded.app)])
        transport = httpx.ASGITransport(mounted)
        async with httpx.AsyncClient(transport=transport, base_url=f"{BASE}/agents") as client:
            assert (await client.get("/livez")).status_code == 200
            assert (await client.get("/api/v1/whoami")).status_code == 401
            client.headers["X-API-Key"] = guarded.key
            answer = await client.put("/api/v1/workspaces/w/files/a", content=b"abc")
            assert (answer.status_code, answer.json()) == (200, {"size": 3})
            assert "sandbox" in answer.headers["content-security-policy"]
