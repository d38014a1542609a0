"""Who is let in: keys in headers, cookies of pages, tickets of WebSockets, and nothing in a URL."""

from __future__ import annotations

import re
from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from guarded import BASE, call_websocket, guard

PAGE = {"Sec-Fetch-Site": "same-origin"}


def problem(answer: httpx.Response) -> tuple[int, str]:
    assert answer.headers["content-type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body["request_id"] == answer.headers["x-request-id"]
    assert body["status"] == answer.status_code
    return answer.status_code, body["code"]


async def test_a_key_is_taken_as_bearer_or_in_x_api_key(tmp_path: Path) -> None:
    async with guard(tmp_path) as guarded, guarded.client() as client:
        for headers in ({"Authorization": f"bearer {guarded.key}"}, {"X-API-Key": guarded.key}):
            answer = await client.get("/api/v1/whoami", headers=headers)
            assert answer.json()["key"] == guarded.key_id
            assert answer.json()["owner"] == "ada"


async def test_without_a_right_key_every_address_is_401_also_one_that_does_not_exist(tmp_path: Path) -> None:
    async with guard(tmp_path) as guarded, guarded.client(**PAGE) as client:
        for headers in (
            {},
            {"Authorization": ""},
            {"Authorization": "Bearer"},
            {"Authorization": "Basic YTpi"},
            {"Authorization": "Bearer wrong"},
            {"X-API-Key": "ac_000000000000_" + "0" * 64},
            {"Cookie": "agentcore_8420=acs_wrong"},
        ):
            for path in ("/api/v1/whoami", "/api/v1/admin", "/no/such/route", "/openapi.json"):
                answer = await client.get(path, headers=headers)
                assert problem(answer) == (401, "not_authorized")
                assert answer.headers["www-authenticate"] == 'Bearer realm="agentcore"'
            guarded.clock.now += 60  # wrong keys are counted


async def test_two_keys_in_one_request_are_refused(tmp_path: Path) -> None:
    async with guard(tmp_path) as guarded, guarded.client(guarded.key) as client:
        answer = await client.get("/api/v1/whoami", headers={"X-API-Key": guarded.key})
        assert problem(answer) == (401, "not_authorized")


async def test_public_paths_need_no_key_and_get_no_identity(tmp_path: Path) -> None:
    async with guard(tmp_path) as guarded, guarded.client("wrong") as client:
        for path in ("/", "/livez", "/assets/app.js"):
            assert (await client.get(path)).status_code == 200
        for path in ("/livez/", "/livez/x", "/assets", "/assetsx/app.js", "/assets/a/b"):
            assert (await client.get(path)).status_code in (401, 429)


async def test_a_scope_that_is_missing_is_403_and_names_it(tmp_path: Path) -> None:
    async with guard(tmp_path) as guarded:
        _, secret = await guarded.security.keys.add("reader", scopes=["read"])
        async with guarded.client(secret.get_secret_value()) as client:
            answer = await client.get("/api/v1/admin")
            assert problem(answer) == (403, "not_authorized")
            assert "'admin'" in answer.json()["detail"]


async def test_a_key_in_a_url_is_refused_with_the_way_to_send_it_even_where_it_is_right(tmp_path: Path) -> None:
    async with guard(tmp_path) as guarded, guarded.client(guarded.key) as client:
        for name in ("key", "api_key", "token", "access_token", "API_KEY", "authorization"):
            for path in ("/api/v1/whoami", "/livez"):
                answer = await client.get(f"{path}?a=b&{name}={guarded.key}")
                assert problem(answer) == (400, "key_in_url")
                assert "Authorization: Bearer" in answer.json()["detail"]
                assert guarded.key not in answer.text


async def test_ten_wrong_keys_a_minute_from_one_address_then_429_for_keys_that_are_not_known(tmp_path: Path) -> None:
    async with guard(tmp_path) as guarded:
        _, unused = await guarded.security.keys.add("not used yet")
        async with guarded.client() as client:
            good = {"X-API-Key": guarded.key}
            assert (await client.get("/api/v1/whoami", headers=good)).status_code == 200
            for at in range(10):
                answer = await client.get("/api/v1/whoami", headers={"X-API-Key": f"wrong{at}"})
                assert answer.status_code == 401
            blocked = await client.get("/api/v1/whoami", headers={"X-API-Key": unused.get_secret_value()})
            assert problem(blocked) == (429, "too_many_requests")
            assert blocked.headers["retry-after"] == "6"
            assert blocked.json()["data"] == {"retry_after": 6.0}
            # A key that was right before is not locked out by its neighbour, and without a key it is 401 as ever.
            assert (await client.get("/api/v1/whoami", headers=good)).status_code == 200
            assert (await client.get("/api/v1/whoami")).status_code == 401
            sent = await call_websocket(guarded, query="ticket=act_guess")
            assert sent[0]["status"] == 429
        async with guarded.client("wrong", address="192.0.2.2") as elsewhere:
            assert (await elsewhere.get("/api/v1/whoami")).status_code == 401
        guarded.clock.now += 6
        async with guarded.client(unused.get_secret_value()) as client:
            assert (await client.get("/api/v1/whoami")).status_code == 200


async def test_wrong_keys_that_come_at_once_are_counted_and_right_ones_are_not(tmp_path: Path) -> None:
    async with guard(tmp_path) as guarded, guarded.client() as client:
        found: list[int] = []

        async def ask(key: str) -> None:
            found.append((await client.get("/api/v1/whoami", headers={"X-API-Key": key})).status_code)

        for keys in ([guarded.key] * 50, [f"wrong{at}" for at in range(50)]):
            async with anyio.create_task_group() as tasks:
                for key in keys:
                    tasks.start_soon(ask, key)
        assert Counter(found) == {200: 50, 401: 10, 429: 40}


async def test_a_network_of_ipv6_addresses_counts_as_one(tmp_path: Path) -> None:
    async with guard(tmp_path, request_limits={"wrong_keys_per_minute": 1}) as guarded:
        for address, status in (
            ("2001:db8::1", 401),
            ("2001:db8::2", 429),
            ("2001:db8:0:1::1", 401),
            ("::ffff:1.2.3.4", 401),
        ):
            async with guarded.client("wrong", address=address) as client:
                assert (await client.get("/api/v1/whoami")).status_code == status


async def test_a_revoked_key_is_refused_from_the_next_request_on(tmp_path: Path) -> None:
    async with guard(tmp_path) as guarded, guarded.client(guarded.key) as client:
        assert (await client.get("/api/v1/whoami")).status_code == 200
        await guarded.security.keys.revoke(guarded.key_id)
        assert (await client.get("/api/v1/whoami")).status_code == 401


async def test_without_keys_everybody_is_the_same_one(tmp_path: Path) -> None:
    async with guard(tmp_path, auth=False) as guarded, guarded.client() as client:
        answer = await client.get("/api/v1/whoami")
        assert answer.json()["key"] == "local"
        assert answer.json()["owner"] == "default"
        assert (await client.get("/api/v1/admin")).status_code == 204
        assert (await call_websocket(guarded))[1] == {"type": "websocket.send", "text": "local"}


async def enter(guarded: Any, code: str) -> str:
    scope = {"type": "http", "headers": [(b"host", b"127.0.0.1:8420")]}
    return await guarded.security.pages.enter(code, scope, secure=guarded.security.secure_cookies)


async def test_a_page_trades_a_code_once_for_a_cookie_that_scripts_and_other_sites_do_not_get(tmp_path: Path) -> None:
    async with guard(tmp_path) as guarded:
        code = guarded.security.pages.codes.issue(guarded.key_id)
        cookie = await enter(guarded, code)
        assert re.fullmatch(
            r"agentcore_8420=acs_[0-9a-f]{64}; Max-Age=604800; Path=/; HttpOnly; SameSite=Strict", cookie
        )
        for again in (code, "acp_wrong", ""):
            with pytest.raises(Exception, match="wrong, was used, or is older than a minute"):
                await enter(guarded, again)
        late = guarded.security.pages.codes.issue(guarded.key_id)
        guarded.clock.now += 60
        with pytest.raises(Exception, match="older than a minute"):
            await enter(guarded, late)
        async with guarded.client(**PAGE, Cookie=f"other=1; {cookie.partition(';')[0]}") as page:
            assert (await page.get("/api/v1/whoami")).json()["key"] == guarded.key_id
            guarded.clock.now += 604_800
            assert (await page.get("/api/v1/whoami")).status_code == 401


async def test_a_cookie_is_secure_where_browsers_come_by_https(tmp_path: Path) -> None:
    async with guard(tmp_path, behind_proxy=True, allowed_hosts=("a.example",)) as guarded:
        assert (await enter(guarded, guarded.security.pages.codes.issue(guarded.key_id))).endswith("; Secure")


async def test_a_cookie_serves_the_servers_own_page_alone(tmp_path: Path) -> None:
    async with guard(tmp_path) as guarded:
        cookie = (await enter(guarded, guarded.security.pages.codes.issue(guarded.key_id))).partition(";")[0]
        async with guarded.client(Cookie=cookie) as browser:
            for headers, status in (
                ({"Sec-Fetch-Site": "same-origin"}, 200),
                ({"Sec-Fetch-Site": "none"}, 200),
                ({"Origin": BASE}, 200),
                ({}, 403),
                ({"Sec-Fetch-Site": "same-site"}, 403),
                ({"Sec-Fetch-Site": "cross-site"}, 403),
                ({"Origin": "http://127.0.0.1:3000"}, 403),
                ({"Origin": "https://evil.example"}, 403),
                ({"Origin": "null"}, 403),
            ):
                for method in ("GET", "POST"):
                    assert (await browser.request(method, "/api/v1/whoami", headers=headers)).status_code == status
            # Not on a WebSocket, which every page may open.
            sent = await call_websocket(guarded, headers={"cookie": cookie, "origin": BASE})
            assert sent[0]["status"] == 401


async def test_a_session_survives_a_restart_and_ends_with_its_key_or_by_leaving(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_text("x" * 40)
    async with guard(tmp_path, api_key_file=file) as guarded:
        cookie = (await enter(guarded, guarded.security.pages.codes.issue("file"))).partition(";")[0]
        other = (await enter(guarded, guarded.security.pages.codes.issue(guarded.key_id))).partition(";")[0]
        async with guarded.client(**PAGE, Cookie=other) as page:
            assert (await page.get("/api/v1/whoami")).status_code == 200
            await guarded.security.keys.revoke(guarded.key_id)
            assert (await page.get("/api/v1/whoami")).status_code == 401
    async with guard(tmp_path, api_key_file=file) as guarded, guarded.client(**PAGE, Cookie=cookie) as page:
        assert (await page.get("/api/v1/whoami")).json()["key"] == "file"
        headers = [(b"host", b"127.0.0.1:8420"), (b"cookie", cookie.encode())]
        gone = await guarded.security.pages.leave({"type": "http", "headers": headers}, secure=False)
        assert gone.startswith("agentcore_8420=; Max-Age=0;")
        assert (await page.get("/api/v1/whoami")).status_code == 401
        cookie = (await enter(guarded, guarded.security.pages.codes.issue("file"))).partition(";")[0]
    file.write_text("y" * 40)
    async with guard(tmp_path, api_key_file=file) as guarded, guarded.client(**PAGE, Cookie=cookie) as page:
        assert (await page.get("/api/v1/whoami")).status_code == 401


async def test_a_ticket_opens_one_websocket_within_30_seconds(tmp_path: Path) -> None:
    async with guard(tmp_path) as guarded:
        ticket = guarded.security.tickets.issue(guarded.key_id)
        sent = await call_websocket(guarded, query=f"after=3&ticket={ticket}", headers={"origin": BASE})
        assert [message["type"] for message in sent] == ["websocket.accept", "websocket.send"]
        assert sent[1]["text"] == guarded.key_id
        assert (await call_websocket(guarded, query=f"ticket={ticket}"))[0]["status"] == 401
        late = guarded.security.tickets.issue(guarded.key_id)
        guarded.clock.now += 30
        assert (await call_websocket(guarded, query=f"ticket={late}"))[0]["status"] == 401
        revoked = guarded.security.tickets.issue(guarded.key_id)
        await guarded.security.keys.revoke(guarded.key_id)
        assert (await call_websocket(guarded, query=f"ticket={revoked}"))[0]["status"] == 401
        # Not instead of a key elsewhere, and not as the code of a page.
        async with guarded.client() as client:
            other = guarded.security.tickets.issue(guarded.key_id)
            assert (await client.get(f"/api/v1/whoami?ticket={other}")).status_code == 401
        with pytest.raises(Exception, match="wrong"):
            await enter(guarded, guarded.security.tickets.issue(guarded.key_id))


async def test_a_program_opens_a_websocket_with_its_key_in_a_header(tmp_path: Path) -> None:
    async with guard(tmp_path) as guarded:
        sent = await call_websocket(guarded, headers={"authorization": f"Bearer {guarded.key}"})
        assert sent[1]["text"] == guarded.key_id


async def test_a_websocket_is_refused_with_a_problem_or_closed_where_the_server_cannot(tmp_path: Path) -> None:
    async with guard(tmp_path) as guarded:
        start, body = await call_websocket(guarded)
        assert (start["type"], start["status"]) == ("websocket.http.response.start", 401)
        assert b'"code":"not_authorized"' in body["body"]
        closed = await call_websocket(guarded, denial=False)
        assert closed == [{"type": "websocket.close", "code": 4401, "reason": "not_authorized"}]
        missing = await call_websocket(guarded, "/nowhere", headers={"x-api-key": guarded.key})
        assert missing[0]["status"] == 404


async def test_a_stream_ends_with_its_key(tmp_path: Path) -> None:
    async with guard(tmp_path) as guarded:

        def messages() -> Any:
            yield {"type": "websocket.receive", "text": "before"}
            guarded.clock.now += 14.9
            yield {"type": "websocket.receive", "text": "still"}
            guarded.clock.now += 0.1
            yield {"type": "websocket.receive", "text": "never"}

        _, secret = await guarded.security.keys.add("other")
        headers = {"x-api-key": secret.get_secret_value()}
        sent = await call_websocket(guarded, headers=headers, messages=messages())
        assert [message.get("text") for message in sent[2:]] == ["before", "still", "never"]
        until = datetime.fromtimestamp(guarded.clock.now + 10, UTC)
        _, short = await guarded.security.keys.add("short", expires=until)
        sent = await call_websocket(guarded, headers={"x-api-key": short.get_secret_value()}, messages=messages())
        assert [message.get("text") for message in sent[2:-1]] == ["before", "still"]
        assert sent[-1] == {"type": "websocket.close", "code": 4401, "reason": "not_authorized"}
