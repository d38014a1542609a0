"""Views: who may look at a program inside, what goes through, and when it starts."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import anyio.lowlevel
import httpx
import pytest
from anyio.abc import SocketStream
from anyio.to_thread import run_sync

from agentcore.errors import WorkspaceError, WorkspaceNotOpen
from agentcore_sandbox.bubblewrap.workspace import BubblewrapWorkspace
from agentcore_sandbox.plain import PlainBox
from agentcore_sandbox.views import Tickets, WebView, parse_views
from agentcore_sandbox.views.server import Views
from agentcore_sandbox.views.tickets import TICKET_SECONDS
from agentcore_sandbox.views.view import format_views
from agentcore_sandbox.workspace import BoxWorkspace
from boxes_bubblewrap import needs_bubblewrap
from boxes_network import read_all
from boxes_plain import commands_below, open_plain
from boxes_views import find_free_port, make_view
from rounds import some_quick

FETCH = {"Sec-Fetch-Site": "same-origin", "Sec-Fetch-Mode": "cors"}


class Clock:
    """A clock that a test sets."""

    def __init__(self) -> None:
        self.seconds = 1000.0

    def __call__(self) -> float:
        return self.seconds


class Looked:
    """Views of a workspace, and a clock for their tickets."""

    def __init__(self, workspace: BoxWorkspace, views: Views, clock: Clock, view: WebView) -> None:
        self.workspace = workspace
        self.views = views
        self.clock = clock
        self.view = view

    async def address(self) -> str:
        return (await self.views.open({"app": self.view}))["app"]


@asynccontextmanager
async def looking(folder: Path, **changes: Any) -> AsyncGenerator[Looked]:
    """Open a plain workspace with a view "app" of the program of tests."""
    clock = Clock()
    with anyio.fail_after(40):
        async with open_plain(folder) as workspace, anyio.create_task_group() as tasks:
            yield Looked(workspace, Views(tasks, workspace, now=clock), clock, make_view(find_free_port(), **changes))
            tasks.cancel_scope.cancel()


def browser(**headers: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(trust_env=False, timeout=30, headers=headers)


def origin_of(address: str) -> str:
    return f"http://{urlsplit(address).netloc}"


async def test_a_ticket_opens_the_view_in_one_browser_once(tmp_path: Path) -> None:
    async with looking(tmp_path) as looked, browser() as mine, browser() as other:
        address = await looked.address()
        page = await mine.get(address)
        assert page.status_code == 200
        assert 'content="0;url=/first?a=b"' in page.text
        (cookie,) = page.headers.get_list("set-cookie")
        assert cookie.endswith("; HttpOnly; SameSite=Strict; Path=/")
        assert page.headers["referrer-policy"] == "no-referrer"
        assert page.headers["cache-control"] == "no-store"

        first = await mine.get(f"{origin_of(address)}/first?a=b", headers=FETCH)
        assert first.json()["line"] == "GET /first?a=b HTTP/1.1"

        for answer in (await other.get(address), await other.get(f"{origin_of(address)}/first?a=b")):
            assert answer.status_code == 403
            assert "workspace.views()" in answer.text
            assert "set-cookie" not in answer.headers
        # In the browser that has used it, it leads to the view again.
        assert "0;url=/first" in (await mine.get(address)).text
        # A new ticket, for a browser beside.
        assert (await other.get(await looked.address())).status_code == 200
        assert (await other.get(f"{origin_of(address)}/x", headers=FETCH)).status_code == 200
        assert await looked.workspace.read("started") == b"x"


async def test_a_ticket_is_good_for_sixty_seconds(tmp_path: Path) -> None:
    async with looking(tmp_path) as looked, browser() as late, browser() as early:
        first, second = await looked.address(), await looked.address()
        looked.clock.seconds += TICKET_SECONDS - 0.1
        assert (await early.get(first)).status_code == 200
        looked.clock.seconds += 0.1
        assert (await late.get(second)).status_code == 403
        # Sessions last.
        looked.clock.seconds += 1e6
        assert (await early.get(f"{origin_of(first)}/x", headers=FETCH)).status_code == 200


async def test_a_session_is_of_one_view(tmp_path: Path) -> None:
    async with looking(tmp_path) as looked, browser() as client:
        both = await looked.views.open({"app": looked.view, "other": make_view(find_free_port())})
        page = await client.get(both["app"])
        name, _, value = page.headers["set-cookie"].partition(";")[0].partition("=")
        # They are of two hosts, so that no browser sends it there.
        assert urlsplit(both["app"]).hostname != urlsplit(both["other"]).hostname
        stolen = await client.get(f"{origin_of(both['other'])}/x", headers={**FETCH, "Cookie": f"{name}={value}"})
        assert stolen.status_code == 403
        ticket = urlsplit(await looked.address()).path
        assert (await client.get(f"{origin_of(both['other'])}{ticket}")).status_code == 403


async def test_nothing_runs_before_somebody_looks(tmp_path: Path) -> None:
    async with looking(tmp_path) as looked, browser() as client:
        address = await looked.address()
        await client.get(address)
        await client.get(f"{origin_of(address)}/x", headers={"Sec-Fetch-Site": "cross-site"})
        assert await looked.workspace.stat("started") is None
        async with anyio.create_task_group() as tasks:
            for _ in range(5):
                tasks.start_soon(client.get, f"{origin_of(address)}/x")
        assert await looked.workspace.read("started") == b"x"


@pytest.mark.parametrize(
    ("headers", "status"),
    some_quick(
        [
            ({"Host": "evil.example"}, 421),
            ({"Host": "localhost:80"}, 421),
            ({"Origin": "http://evil.example"}, 403),
            ({"Origin": "null"}, 403),
            ({"Sec-Fetch-Site": "same-site"}, 403),
            ({"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate"}, 403),
            ({"Service-Worker": "script"}, 403),
            ({"Cookie": ""}, 403),
            ({"Content-Length": "3", "Transfer-Encoding": "chunked"}, 400),
            ({"Connection": "Upgrade", "Upgrade": "h2c"}, 400),
            ({"Connection": "Upgrade", "Upgrade": "websocket"}, 403),
            ({"Connection": "Upgrade", "Upgrade": "websocket", "Origin": "http://evil.example"}, 403),
        ],
        5,
    ),
)  # fmt: skip)
async def test_what_is_not_of_the_views_own_page_is_refused(
    tmp_path: Path, headers: dict[str, str], status: int
) -> None:
    async with looking(tmp_path) as looked, browser() as client:
        address = await looked.address()
        await client.get(address)
        answer = await client.get(f"{origin_of(address)}/x", headers=headers)
        assert answer.status_code == status
        assert await looked.workspace.stat("started") is None


async def test_a_ticket_is_not_spent_by_what_is_not_a_person(tmp_path: Path) -> None:
    async with looking(tmp_path) as looked, browser() as client:
        address = await looked.address()
        for headers in ({"Sec-Purpose": "prefetch"}, {"Sec-Fetch-Mode": "no-cors"}, {"Host": "evil.example"}):
            assert (await client.get(address, headers=headers)).status_code in (403, 421)
        assert (await client.post(address)).status_code == 403
        assert (await client.get(address, headers={"Sec-Fetch-Mode": "navigate"})).status_code == 200


async def test_the_program_sees_nothing_of_the_session_and_its_pages_are_kept_in(tmp_path: Path) -> None:
    async with looking(tmp_path) as looked, browser() as client:
        address = await looked.address()
        await client.get(address)
        answer = await client.post(
            f"{origin_of(address)}/x",
            content=b"the body",
            headers={**FETCH, "Origin": origin_of(address), "Referer": address, "X-Own": "yes"},
        )
        seen = answer.json()
        assert seen["body"] == "the body"
        assert seen["headers"]["host"] == f"localhost:{looked.view.port}"
        assert seen["headers"]["x-own"] == "yes"
        assert not {"cookie", "origin", "referer"} & seen["headers"].keys()
        assert "set-cookie" not in answer.headers
        policy = answer.headers["content-security-policy"]
        assert f"connect-src 'self' ws://{urlsplit(address).netloc} " in policy
        assert "default-src 'self'" in policy
        assert "frame-ancestors 'self'" in policy


async def connect(address: str) -> SocketStream:
    parts = urlsplit(address)
    assert parts.hostname is not None
    assert parts.port is not None
    return await anyio.connect_tcp(parts.hostname, parts.port)


async def test_a_websocket_goes_through_both_ways_and_ends_with_the_view(tmp_path: Path) -> None:
    async with looking(tmp_path) as looked, browser() as client:
        address = await looked.address()
        cookie = (await client.get(address)).headers["set-cookie"].partition(";")[0]
        async with await connect(address) as stream:
            await stream.send(
                f"GET /socket HTTP/1.1\r\nHost: {urlsplit(address).netloc}\r\nOrigin: {origin_of(address)}\r\nCookie: {cookie}\r\n"
                "Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n".encode()
            )
            head = b""
            while b"\r\n\r\n" not in head:
                head += await stream.receive()
            assert head.startswith(b"HTTP/1.1 101 ")
            assert b"s3pPLMBiTxaQ9kYGzzhZRbK+xOo=" in head
            for sent in (b"\x82\x05hello", b"x" * 300_000):
                await stream.send(sent)
                received = b""
                while len(received) < len(sent):
                    received += await stream.receive()
                assert received == sent
            # Another view of this name: the old one is closed with its connections.
            await looked.views.open({"app": make_view(find_free_port())})
            await read_all(stream)


async def test_a_browser_that_leaves_ends_the_request_inside(tmp_path: Path) -> None:
    async with looking(tmp_path) as looked, browser() as client:
        address = await looked.address()
        cookie = (await client.get(address)).headers["set-cookie"].partition(";")[0]
        async with await connect(address) as stream:
            head = f"GET /endless HTTP/1.1\r\nHost: {urlsplit(address).netloc}\r\nCookie: {cookie}\r\n\r\n"
            await stream.send(head.encode())
            received = b""
            while not received.endswith(b"begun"):
                received += await stream.receive()
        while await looked.workspace.stat("left") is None:
            await anyio.lowlevel.checkpoint()


async def test_a_program_that_ends_is_started_again(tmp_path: Path) -> None:
    async with looking(tmp_path) as looked, browser() as client:
        address = await looked.address()
        await client.get(address)
        await client.get(f"{origin_of(address)}/x")
        await looked.workspace.run(f"pkill -f -- '{looked.view.port}$'")
        while (await client.get(f"{origin_of(address)}/x")).status_code != 200:
            pass
        assert await looked.workspace.read("started") == b"xx"


@pytest.mark.parametrize(
    ("command", "shown"),
    [
        (("no-such-program",), "could not be started"),
        ((sys.executable, "-c", "print('no display here'); raise SystemExit(3)"), "no display here"),
    ],
)
async def test_a_program_that_cannot_start_is_explained(tmp_path: Path, command: tuple[str, ...], shown: str) -> None:
    async with looking(tmp_path, command=command) as looked, browser() as client:
        address = await looked.address()
        await client.get(address)
        answer = await client.get(f"{origin_of(address)}/x")
        assert answer.status_code == 502
        assert shown in answer.text


async def test_a_workspace_has_the_views_of_its_image_and_those_that_are_offered(tmp_path: Path) -> None:
    label = format_views({"app": make_view(find_free_port())})
    workspace = BoxWorkspace(PlainBox(tmp_path, state=tmp_path / "state", views=label))
    with pytest.raises(WorkspaceNotOpen):
        await workspace.views()
    with anyio.fail_after(40):
        async with workspace, browser() as client:
            assert list(await workspace.views()) == ["app"]
            addresses = await workspace.views({"mine": make_view(find_free_port())})
            assert list(addresses) == ["app", "mine"]
            for address in addresses.values():
                await client.get(address)
                assert (await client.get(f"{origin_of(address)}/x")).status_code == 200
            with pytest.raises(ValueError, match="is not the name of a view"):
                await workspace.views({"../x": make_view(1)})
        assert await run_sync(commands_below, tmp_path) == []
        with pytest.raises(OSError, match=r"ttempt|efused"):
            await connect(addresses["app"])


@needs_bubblewrap
async def test_a_view_of_a_bubblewrap_box(tmp_path: Path) -> None:
    with anyio.fail_after(40):
        async with BubblewrapWorkspace(tmp_path) as workspace, browser() as client:
            addresses = await workspace.views({"app": make_view(8000, python="/usr/bin/python3")})
            await client.get(addresses["app"])
            answer = await client.get(f"{origin_of(addresses['app'])}/x")
            assert answer.json()["headers"]["host"] == "localhost:8000"


@pytest.mark.parametrize(
    "label",
    [
        "x",
        "[]",
        '{"a b": {"port": 1}}',
        '{"a": {"port": 0}}',
        '{"a": {"port": 1, "path": "//x"}}',
        '{"a": {"port": 1, "host": "x"}}',
    ],
)
def test_a_label_that_names_no_views_is_refused(label: str) -> None:
    with pytest.raises(WorkspaceError, match="agentcore sandbox build"):
        parse_views(label)


def test_a_first_page_can_name_the_path_below_which_it_is_served() -> None:
    view = WebView(port=1, path="/vnc.html?path={base}socket")
    assert view.first_page() == "/vnc.html?path=socket"
    assert view.first_page("/views/x/") == "/views/x/vnc.html?path=views/x/socket"
    assert WebView(port=1).first_page("/views/x/") == "/views/x/"


def test_tickets_and_sessions_are_bounded() -> None:
    tickets = Tickets(Clock())
    issued = [tickets.issue() for _ in range(100)]
    keys = [tickets.exchange(each) for each in issued]
    assert keys[0] is None
    assert keys[-1] is not None
    assert tickets.has_session(keys[-1])
    assert not tickets.has_session("")
    assert tickets.exchange(issued[-1]) is None
