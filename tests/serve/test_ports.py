"""HTTP and WebSockets to a port inside of a workspace: what is passed on, and what never is."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import httpx
import pytest
from anyio.abc import ByteStream, SocketStream
from httpx_ws import AsyncWebSocketSession, WebSocketDisconnect, WebSocketUpgradeError, aconnect_ws
from starlette.applications import Starlette
from starlette.routing import WebSocketRoute
from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket

from agentcore.errors import WorkspaceLost
from agentcore.workspace.ports import connect_local
from agentcore_sandbox.network.port_headers import SANDBOX, response_headers, without_ticket
from agentcore_serve.refused import Refused
from agentcore_serve.workspaces.port_sockets import pass_websocket
from agentcore_serve.workspaces.ports import Connect, pass_http
from boxes_network import Responder, listening, read_all
from serving import Serving, serve

BASE = "/api/v1/workspaces/ws_1/ports/8000"


@asynccontextmanager
async def serving_port(port: int, connect: Connect = connect_local) -> AsyncGenerator[Serving]:
    """Serve one port inside, below `BASE`, as a route would."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            for event in ("startup", "shutdown"):
                await receive()
                await send({"type": f"lifespan.{event}.complete"})
            return
        path = scope["raw_path"].partition(b"?")[0].removeprefix(BASE.encode())
        try:
            if scope["type"] == "websocket":
                await pass_websocket(scope, receive, send, connect=connect, port=port, path=path)
            else:
                await pass_http(scope, receive, send, connect=connect, port=port, path=path, base=BASE)
        except Refused as error:
            if scope["type"] == "websocket":
                await receive()
                await send({"type": "websocket.close", "code": 4000 + error.status})
            else:
                await send({"type": "http.response.start", "status": error.status, "headers": []})
                await send({"type": "http.response.body", "body": error.code.encode()})

    with anyio.fail_after(30):
        async with serve(app) as serving:
            yield serving


def client_of(serving: Serving) -> httpx.AsyncClient:
    return httpx.AsyncClient(base_url=f"{serving.url}{BASE}", trust_env=False)


async def test_a_request_goes_inside_without_the_servers_keys_and_cookies() -> None:
    inside = Responder(after=b"body!")
    async with listening(inside.handle) as port, serving_port(port) as serving, client_of(serving) as client:
        answer = await client.put(
            "/a%20b/c?d=e%20f",
            content=b"the body!",
            headers={
                "Authorization": "Bearer SECRET",
                "X-API-Key": "SECRET",
                "Cookie": "agentcore=SECRET",
                "Referer": f"{serving.url}/SECRET",
                "Origin": serving.url,
                "X-Forwarded-For": "SECRET",
                "Forwarded": "for=SECRET",
                "Proxy-Authorization": "SECRET",
                "Connection": "X-Hop",
                "X-Hop": "SECRET",
                "X-Kept": "kept",
            },
        )
        assert (answer.status_code, answer.text) == (200, "ok")
        (received,) = await inside.wait_ended()
    head, _, body = received.partition(b"\r\n\r\n")
    assert body == b"the body!"
    assert head.startswith(b"PUT /a%20b/c?d=e%20f HTTP/1.1\r\n")
    assert f"host: localhost:{port}".encode() in head.lower().split(b"\r\n")
    assert b"x-kept: kept" in head.lower()
    assert b"SECRET" not in received
    assert str(serving.port).encode() not in received


async def test_an_answer_sets_no_cookie_and_its_page_has_an_origin_of_its_own() -> None:
    response = (
        b"HTTP/1.1 302 Found\r\nSet-Cookie: agentcore=evil\r\nSet-Cookie: b=c\r\nClear-Site-Data: *\r\nLocation: /next?a=b\r\n"
        b"Access-Control-Allow-Origin: *\r\nService-Worker-Allowed: /\r\nStrict-Transport-Security: max-age=1\r\n"
        b"Content-Security-Policy: sandbox allow-same-origin allow-scripts\r\nCache-Control: public\r\nContent-Length: 0\r\n"
        b"Content-Type: text/html\r\n\r\n"
    )
    async with (
        listening(Responder(response).handle) as port,
        serving_port(port) as serving,
        client_of(serving) as client,
    ):
        answer = await client.get("/")
    assert answer.headers["location"] == f"{BASE}/next?a=b"
    assert answer.headers["content-type"] == "text/html"
    for name in ("set-cookie", "clear-site-data", "access-control-allow-origin", "service-worker-allowed"):
        assert name not in answer.headers
    assert "strict-transport-security" not in answer.headers
    # A browser keeps both policies, so that the stricter one holds.
    policies = answer.headers.get_list("content-security-policy")
    assert SANDBOX.decode() in policies
    assert "allow-same-origin" not in SANDBOX.decode()


def test_redirects_to_the_port_itself_lead_to_its_path() -> None:
    def to(target: bytes) -> bytes:
        return dict(response_headers([(b"Location", target)], 8000, BASE))[b"Location"]

    base = BASE.encode()
    assert to(b"http://localhost:8000/x") == base + b"/x"
    assert to(b"//127.0.0.1:8000") == base + b"/"
    assert to(b"/x/../y") == base + b"/x/../y"
    for other in (
        b"x",
        b"https://example.org/",
        b"http://localhost:9000/",
        b"//example.org/x",
        b"/\\example.org",
        b"?a=b",
    ):
        assert to(other) == other


def test_the_ticket_of_a_websocket_stays_outside() -> None:
    assert without_ticket(b"a=b&ticket=SECRET&c") == b"a=b&c"
    assert without_ticket(b"%74icket=SECRET") == b""
    assert without_ticket(b"") == b""


async def test_a_long_answer_is_passed_on_while_it_comes() -> None:
    go_on = anyio.Event()

    async def in_two_parts(stream: SocketStream) -> None:
        await stream.receive()
        await stream.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        await go_on.wait()
        await stream.send(b"6\r\nsecond\r\n0\r\n\r\n")

    async with listening(in_two_parts) as port, serving_port(port) as serving, client_of(serving) as client:
        async with client.stream("GET", "/events") as answer:
            pieces = answer.aiter_raw()
            assert await anext(pieces) == b"first"
            go_on.set()
            assert b"".join([piece async for piece in pieces]) == b"second"


async def test_a_client_that_leaves_ends_the_request_inside() -> None:
    ended = anyio.Event()

    async def hang(stream: SocketStream) -> None:
        await stream.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n")
        await read_all(stream)
        ended.set()

    async with listening(hang) as port, serving_port(port) as serving, client_of(serving) as client:
        async with await anyio.connect_tcp("127.0.0.1", serving.port) as asking:
            await asking.send(f"GET {BASE}/events HTTP/1.1\r\nHost: {client.base_url.host}\r\n\r\n".encode())
            received = b""
            while b"first" not in received:
                received += await asking.receive()
        await ended.wait()


@pytest.mark.parametrize(
    "response",
    [b"", b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"],
)
async def test_what_speaks_no_http_is_refused(response: bytes) -> None:
    async with (
        listening(Responder(response).handle) as port,
        serving_port(port) as serving,
        client_of(serving) as client,
    ):
        answer = await client.get("/")
        assert (answer.status_code, answer.text) == (502, "port_not_reached")


async def test_a_port_where_nothing_listens_and_a_box_that_is_lost_are_refused() -> None:
    async with listening(Responder().handle) as port:
        pass

    @asynccontextmanager
    async def lost(port: int) -> AsyncGenerator[ByteStream]:
        raise WorkspaceLost(f"Port {port} went with its box.", reason="oom")
        yield

    for connect in (connect_local, lost):
        async with serving_port(port, connect) as serving, client_of(serving) as client:
            answer = await client.get("/")
            assert (answer.status_code, answer.text) == (502, "port_not_reached")
            with pytest.raises((WebSocketUpgradeError, WebSocketDisconnect)):
                async with open_socket(client):
                    pass


async def talk(websocket: WebSocket) -> None:
    """Send back what comes, and the request's headers first."""
    await websocket.accept(subprotocol="binary" if "binary" in websocket.scope["subprotocols"] else None)
    await websocket.send_json([[name.decode(), value.decode()] for name, value in websocket.scope["headers"]])
    await websocket.send_text(str(websocket.url.query))
    while (message := await websocket.receive())["type"] == "websocket.receive":
        if message.get("text") == "close":
            await websocket.close(4321)
            return
        if message.get("bytes") is not None:
            await websocket.send_bytes(message["bytes"])
        else:
            await websocket.send_text(message["text"])


@asynccontextmanager
async def open_socket(client: httpx.AsyncClient, query: str = "") -> AsyncGenerator[AsyncWebSocketSession]:
    url = f"{client.base_url}socket{query}".replace("http", "ws", 1)
    headers = {"Authorization": "Bearer SECRET", "Cookie": "a=SECRET", "X-API-Key": "SECRET"}
    async with aconnect_ws(
        url, client, subprotocols=["binary"], headers=headers, max_message_size_bytes=1 << 20
    ) as socket:
        yield socket


async def test_a_websocket_goes_inside_without_the_servers_keys() -> None:
    inside_app = Starlette(routes=[WebSocketRoute("/socket", talk)])
    async with serve(inside_app) as inside, serving_port(inside.port) as serving, client_of(serving) as client:
        async with open_socket(client, "?ticket=SECRET&a=b") as socket:
            assert socket.subprotocol == "binary"
            headers = await socket.receive_text()
            assert "SECRET" not in headers
            assert f"localhost:{inside.port}" in headers
            assert await socket.receive_text() == "a=b"
            await socket.send_text("hällo")
            assert await socket.receive_text() == "hällo"
            await socket.send_bytes(b"\x00\xff" * 100_000)
            assert await socket.receive_bytes() == b"\x00\xff" * 100_000
            await socket.send_text("close")
            with pytest.raises(WebSocketDisconnect) as disconnected:
                await socket.receive_text()
            assert disconnected.value.code == 4321


async def test_a_websocket_that_nothing_takes_is_refused() -> None:
    refuse = Responder(b"HTTP/1.1 403 Forbidden\r\nContent-Length: 0\r\n\r\n")
    async with listening(refuse.handle) as port, serving_port(port) as serving, client_of(serving) as client:
        with pytest.raises((WebSocketUpgradeError, WebSocketDisconnect)):
            async with open_socket(client):
                pass
