"""Views on a server: who may look, under which host, what goes through, and what never does."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit

import httpx
import pytest
from httpx_ws import WebSocketUpgradeError, aconnect_ws
from starlette.applications import Starlette
from starlette.routing import Mount

from agentcore_sandbox.network.port_headers import SANDBOX
from agentcore_sandbox.views.tickets import TICKET_SECONDS
from boxes_places import needs_docker, skip_trio
from boxes_views import find_free_port, image_with_views, make_view
from serving import serve
from serving_views import API, open_site, without_lifespan

FETCH = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}


def inside(address: str, path: str) -> str:
    """Return the address of a path inside, in the view that an address opens."""
    return f"{address.partition('?')[0]}/{path}"


async def test_a_ticket_opens_the_view_in_one_browser_once(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site, site.client() as mine, site.client() as other:
        listed = (await site.list()).json()
        assert [(view["name"], view["title"]) for view in listed] == [("app", "App"), ("big-screen", "Big screen")]
        address: str = listed[0]["url"]
        parts = urlsplit(address)
        assert parts.hostname is not None
        assert parts.hostname.endswith(".localhost")
        assert (parts.port, parts.path) == (8420, f"{API}/workspaces/{site.workspace}/views/app")

        page = await mine.get(address, headers={"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "cross-site"})
        assert page.status_code == 200
        assert f'content="0;url={parts.path}/first?a=b"' in page.text
        (cookie,) = page.headers.get_list("set-cookie")
        assert cookie.endswith(f"; Path={parts.path}; HttpOnly; SameSite=Strict")
        assert site.started == ""

        first = await mine.get(inside(address, "first?a=b"), headers=FETCH)
        assert first.json()["line"] == "GET /first?a=b HTTP/1.1"
        for wrong in (await other.get(address), await other.get(inside(address, "first?a=b"))):
            assert (wrong.status_code, wrong.json()["code"]) == (401, "not_authorized")
            assert "set-cookie" not in wrong.headers
        shown = await other.get(address, headers={"Accept": "text/html"})
        assert (shown.status_code, "Ask for a new one" in shown.text) == (401, True)
        assert shown.headers["content-type"].startswith("text/html")
        # In the browser that has used it, it leads to the view again.
        again = await mine.get(address)
        assert (again.status_code, "set-cookie" in again.headers) == (200, False)
        assert (await other.get(await site.address())).status_code == 200
        assert (await other.get(inside(address, "x"), headers=FETCH)).status_code == 200
        assert site.started == "x"


async def test_a_ticket_is_good_for_sixty_seconds_and_a_session_as_long_as_its_key(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site, site.client() as early, site.client() as late:
        first, second = await site.address(), await site.address()
        site.clock.now += TICKET_SECONDS - 0.1
        assert (await early.get(first)).status_code == 200
        site.clock.now += 0.1
        assert (await late.get(second)).status_code == 401
        site.clock.now += 1e6
        assert (await early.get(inside(first, "x"), headers=FETCH)).status_code == 200
        await site.app.state.security.keys.revoke(site.ids["ann"])
        assert (await early.get(inside(first, "x"), headers=FETCH)).status_code == 401


async def test_a_view_is_its_owners_and_a_session_is_of_one_view(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site, site.client() as client:
        assert (await site.list("ben")).status_code == 404
        async with site.client("ben") as ben:
            assert (await ben.get(f"{API}/workspaces/{site.workspace}/views/app/x")).status_code == 404
        app, other = await site.address("app"), await site.address("big-screen")
        assert urlsplit(app).hostname != urlsplit(other).hostname
        # The ticket of one view at the host of another, and at its path there.
        ticket = urlsplit(app).query
        assert (await client.get(f"{other.partition('?')[0]}?{ticket}")).status_code == 401
        swapped = app.replace(str(urlsplit(app).hostname), str(urlsplit(other).hostname))
        assert (await client.get(swapped)).status_code == 404
        # They did not spend it.
        name, _, value = (await client.get(app)).headers["set-cookie"].partition(";")[0].partition("=")
        async with site.client(Cookie=f"{name}={value}") as thief:
            assert (await thief.get(inside(other, "x"), headers=FETCH)).status_code == 401
            assert (await thief.get(inside(swapped, "x"), headers=FETCH)).status_code == 404
        assert site.started == ""


async def test_no_key_and_no_cookie_of_the_server_opens_the_host_of_a_view_or_goes_inside(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site, site.client() as client:
        address = await site.address()
        server = {"Cookie": "agentcore_8420=acs_SECRET; agentcore=acs_SECRET", "X-API-Key": site.keys["ann"]}
        assert (await client.get(inside(address, "x"), headers={**FETCH, **server})).status_code == 401
        cookie = (await client.get(address)).headers["set-cookie"].partition(";")[0]
        answer = await client.post(
            inside(address, "x"),
            content=b"a form",
            headers={
                **FETCH,
                "Cookie": f"{server['Cookie']}; {cookie}",
                "Authorization": "Bearer SECRET",
                "X-API-Key": "SECRET",
                "Origin": f"http://{urlsplit(address).netloc}",
                "Referer": f"{address}SECRET",
                "Content-Type": "application/x-www-form-urlencoded",
                "X-Own": "yes",
            },
        )
        seen = answer.json()
        assert (seen["line"], seen["body"], seen["headers"]["x-own"]) == ("POST /x HTTP/1.1", "a form", "yes")
        assert not {"cookie", "authorization", "x-api-key", "origin", "referer"} & seen["headers"].keys()
        assert "SECRET" not in answer.text
        assert cookie.partition("=")[2] not in answer.text
        assert str(urlsplit(address).hostname) not in answer.text


async def test_an_answer_sets_no_cookie_and_redirects_stay_in_the_view_or_lead_out_as_they_say(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site, site.client() as client:
        address = await site.address()
        await client.get(address)
        answer = await client.get(inside(address, "x"), headers=FETCH)
        assert "set-cookie" not in answer.headers
        policies = answer.headers.get_list("content-security-policy")
        assert any(f"connect-src 'self' ws://{urlsplit(address).netloc} " in policy for policy in policies)
        path = urlsplit(address).path
        for target, shown in (
            ("/x", f"{path}/x"),
            ("y", "y"),
            ("https://example.org/", "https://example.org/"),
            ("http://127.0.0.1:8420/", "http://127.0.0.1:8420/"),
        ):
            moved = await client.get(inside(address, f"to?{target}"), headers=FETCH)
            assert (moved.status_code, moved.headers["location"]) == (302, shown)


async def test_at_the_host_of_a_view_there_is_nothing_else_of_the_server(tmp_path: Path) -> None:
    for auth in (True, False):
        async with open_site(tmp_path / str(auth), auth=auth) as site, site.client("ann") as client:
            address = await site.address()
            origin = f"http://{urlsplit(address).netloc}"
            for path in ("/", "/livez", "/enter?code=x", f"{API}/keys", f"{API}/workspaces", f"{API}/conversations"):
                answer = await client.get(f"{origin}{path}", headers=FETCH)
                assert (path, answer.status_code) == (path, 404)
            made = await client.post(f"{origin}{API}/workspaces", json={}, headers={"Origin": origin})
            assert made.status_code == 404
            # Without keys too, only who has the address looks.
            assert (await client.get(inside(address, "x"), headers=FETCH)).status_code == 401
            # And a view's page asks the server in vain.
            asked = await client.get(f"{API}/workspaces", headers={"Origin": origin, "Sec-Fetch-Site": "cross-site"})
            assert (asked.status_code, asked.json()["code"]) == (403, "origin_not_allowed")


async def test_under_the_servers_own_name_a_view_is_what_a_port_is(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site, site.client("ann") as program, site.client() as browser:
        path = f"{API}/workspaces/{site.workspace}/views/app"
        answer = await program.get(f"{path}/x")
        assert answer.json()["line"] == "GET /x HTTP/1.1"
        assert SANDBOX.decode() in answer.headers.get_list("content-security-policy")
        ticket = urlsplit(await site.address()).query
        for taken in (await browser.get(f"{path}?{ticket}"), await program.get(f"{path}?{ticket}")):
            assert (taken.status_code, taken.json()["code"]) == (404, "view_not_here")
        missing = await program.get(f"{API}/workspaces/{site.workspace}/views/none/x")
        assert (missing.status_code, missing.json()["code"]) == (404, "view_not_found")


REFUSED: Final[tuple[tuple[dict[str, str], int], ...]] = (
    ({"Host": "evil.example"}, 400),
    ({"Host": "view-0123456789abcdef.localhost:8420"}, 404),
    ({"Host": "127.0.0.1:8420"}, 401),
    ({"Origin": "http://evil.example"}, 403),
    ({"Origin": "http://127.0.0.1:8420"}, 403),
    ({"Origin": "null"}, 403),
    ({"Sec-Fetch-Site": "same-site"}, 403),
    ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403),
    ({"Service-Worker": "script"}, 403),
    ({"Cookie": "agentcore_view=x"}, 401),
)


async def test_what_is_not_of_the_views_own_page_is_refused(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site, site.client() as client:
        address = await site.address()
        await client.get(address)
        for headers, status in REFUSED:
            answer = await client.get(inside(address, "x"), headers=headers)
            assert (headers, answer.status_code) == (headers, status)
        assert site.started == ""


async def test_a_ticket_is_not_spent_by_what_is_not_a_person(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site, site.client() as client:
        address = await site.address()
        for headers in ({"Sec-Purpose": "prefetch"}, {"Sec-Fetch-Mode": "no-cors"}, {"Host": "evil.example"}):
            assert (await client.get(address, headers=headers)).status_code in (403, 400)
        assert (await client.post(address)).status_code == 405
        assert (await client.get(address, headers={"Sec-Fetch-Mode": "navigate"})).status_code == 200


async def test_a_server_with_a_name_needs_one_for_its_views(tmp_path: Path) -> None:
    named: dict[str, Any] = {"allowed_hosts": ("agents.example.org",)}
    async with open_site(tmp_path / "without", **named) as site:
        refused = await site.list(base="http://agents.example.org")
        assert (refused.status_code, refused.json()["code"]) == (409, "no_views_host")
        assert "--views-host" in refused.json()["detail"]
    async with open_site(tmp_path / "with", views_host="views.example.org", **named) as site, site.client() as client:
        address: str = (await site.list(base="https://agents.example.org")).json()[0]["url"]
        assert address.startswith("https://view-")
        assert str(urlsplit(address).netloc).endswith(".views.example.org")
        assert (await client.get(address)).headers["set-cookie"].endswith("; Secure")
        assert (await client.get(inside(address, "x"), headers=FETCH)).status_code == 200
        for host in ("other.views.example.org", "views.example.org", "view-0123456789abcdef.example.org"):
            assert (await client.get(f"https://{host}/livez")).status_code == 400


async def test_an_application_that_mounts_the_server_has_its_views_below_its_own_path(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site:
        transport = httpx.ASGITransport(Starlette(routes=[Mount("/agents", site.app)]))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8420", timeout=30) as client:
            key = {"Authorization": f"Bearer {site.keys['ann']}"}
            listed = await client.get(f"/agents{API}/workspaces/{site.workspace}/views", headers=key)
            address: str = listed.json()[0]["url"]
            path = urlsplit(address).path
            assert path == f"/agents{API}/workspaces/{site.workspace}/views/app"
            page = await client.get(address)
            assert f"; Path={path};" in page.headers["set-cookie"]
            assert f'content="0;url={path}/first?a=b"' in page.text
            answer = await client.get(inside(address, "x?token=of-the-program"), headers=FETCH)
            assert answer.json()["line"] == "GET /x?token=of-the-program HTTP/1.1"


async def test_what_has_no_views_says_so(tmp_path: Path) -> None:
    async with open_site(tmp_path / "none", {}) as site:
        assert (await site.list()).json() == []
    async with open_site(tmp_path / "folder", workspaces=None) as site:
        refused = await site.list()
        assert (refused.status_code, refused.json()["code"]) == (409, "no_views")


async def test_a_program_that_cannot_start_is_explained(tmp_path: Path) -> None:
    command = (sys.executable, "-c", "print('no display here'); raise SystemExit(3)")
    async with open_site(tmp_path, {"app": make_view(find_free_port(), command=command)}) as site:
        async with site.client() as client:
            address = await site.address()
            await client.get(address)
            answer = await client.get(inside(address, "x"), headers=FETCH)
            assert (answer.status_code, answer.json()["code"]) == (502, "view_not_started")
            assert "no display here" in answer.json()["detail"]


async def test_a_websocket_of_the_views_page_goes_through_and_no_other(tmp_path: Path) -> None:
    async with open_site(tmp_path) as site, serve(without_lifespan(site.app)) as serving:
        url = serving.url
        async with httpx.AsyncClient(trust_env=False, timeout=30) as browser:
            key = {"Authorization": f"Bearer {site.keys['ann']}"}
            listed = await browser.get(f"{url}{API}/workspaces/{site.workspace}/views", headers=key)
            address: str = listed.json()[0]["url"]
            parts = urlsplit(address)
            # Names below localhost are known to browsers, and not to every resolver.
            page = await browser.get(f"{url}{parts.path}?{parts.query}", headers={"Host": parts.netloc})
            cookie = page.headers["set-cookie"].partition(";")[0]
            browser.cookies.clear()
            socket = f"{serving.ws_url}{parts.path}/socket"
            own = {"Host": parts.netloc, "Cookie": cookie, "Origin": f"http://{parts.netloc}"}
            async with aconnect_ws(socket, browser, headers=own) as talk:
                await talk.send_text("hello")
                assert await talk.receive_text() == "hello"
            for wrong in ({"Origin": "http://evil.example"}, {"Origin": ""}, {"Cookie": ""}):
                headers = {name: value for name, value in {**own, **wrong}.items() if value}
                with pytest.raises(WebSocketUpgradeError):
                    async with aconnect_ws(socket, browser, headers=headers):
                        pass


@pytest.mark.slow
@needs_docker
async def test_the_views_of_an_image_are_those_of_a_servers_containers(tmp_path: Path, anyio_backend_name: str) -> None:
    skip_trio("docker", anyio_backend_name)
    async with image_with_views() as image:
        boxes: dict[str, Any] = {"workspaces": None, "sandbox": "docker", "sandbox_image": image}
        async with open_site(tmp_path, **boxes) as site, site.client() as client:
            address = await site.address()
            await client.get(address)
            answer = await client.get(inside(address, "x"), headers=FETCH)
            assert answer.json()["headers"]["host"] == "localhost:8000"
            async with site.client("ann") as program:
                assert (await program.delete(f"{API}/workspaces/{site.workspace}")).status_code == 204
