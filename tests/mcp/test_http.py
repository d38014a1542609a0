"""Servers that are reached by HTTP: mcp's own in another process, and one on the loopback that does what a test wants."""

from __future__ import annotations

import json
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from agentcore.errors import MCPCallLost, MCPServerError, ToolError
from agentcore.mcp import MCPServer
from agentcore.testing.http import HTTPRequest, Responder, serve_http
from agentcore.workspace import LocalWorkspace, Process
from mcp_opened import SERVERS, Opened, opened

KEY = "hush-this-is-the-key"

Answer = Callable[[HTTPRequest, Responder, Any], Awaitable[None]]


@asynccontextmanager
async def real(transport: Literal["http", "sse"], folder: Path) -> AsyncGenerator[tuple[str, Process]]:
    """Start mcp's own server; yield its URL."""
    async with (
        LocalWorkspace(folder) as workspace,
        workspace.open_process([sys.executable, str(SERVERS / "plain.py"), transport]) as process,
    ):
        said = b""
        while not said.endswith(b"\n"):
            said += await process.receive()
        yield f"http://127.0.0.1:{int(said)}/{'sse' if transport == 'sse' else 'mcp'}", process


@pytest.mark.parametrize("transport", ["http", "sse"])
async def test_a_real_server_is_called_and_its_end_is_noticed(
    tmp_path: Path, transport: Literal["http", "sse"]
) -> None:
    async with real(transport, tmp_path) as (url, process):
        async with opened(MCPServer(name="plain", url=url, transport=transport), tmp_path) as it:
            assert await it.text("add", a=1, b=2) == "3"
            assert it.tool("add").resources_of(it.tool("add").parse({"a": 1, "b": 2}), "/") == ()
            with anyio.move_on_after(0.3):
                await it.call("wait")
            await process.terminate()
            with pytest.raises(ToolError, match=r"is gone|without an answer"):
                await it.call("add", a=1, b=2)
            assert await it.toolset.wait_closed()


class Scripted:
    """A server of the older protocol that answers each request with one JSON, and notes what it was sent."""

    def __init__(self, answer: Answer | None = None) -> None:
        self.requests: list[HTTPRequest] = []
        self._answer = answer

    async def __call__(self, request: HTTPRequest, respond: Responder) -> None:
        self.requests.append(request)
        message: Any = request.json() if request.content else {}
        method, session = message.get("method"), {"mcp-session-id": "s1"}
        if method == "tools/call" and self._answer is not None:
            await self._answer(request, respond, message)
        elif "id" not in message:
            await respond.send(202 if request.method == "POST" else 405, b"")
        elif method == "server/discover":
            await respond.send_json(200, error(message, -32601, "Method not found"))
        elif method == "initialize":
            info = {"name": "scripted", "version": "1"}
            result: Any = {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}
            await respond.send_json(200, answer(message, result), session)
        elif method == "tools/list":
            tool: Any = {"name": "act", "inputSchema": {"type": "object"}}
            await respond.send_json(200, answer(message, {"tools": [tool]}))
        else:
            result = {"content": [{"type": "text", "text": "done"}]}
            await respond.send_json(200, answer(message, result))


def answer(message: Any, result: Any) -> Any:
    return {"jsonrpc": "2.0", "id": message["id"], "result": result}


def error(message: Any, code: int, text: str) -> Any:
    return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": text}}


def at(url: str, **settings: Any) -> MCPServer:
    headers = {"Authorization": "Bearer ${MCP_KEY}"}
    return MCPServer(name="web", url=f"{url}/mcp?key=${{MCP_KEY}}", headers=headers, **settings)


async def test_headers_and_url_have_the_secrets_and_errors_do_not(tmp_path: Path) -> None:
    async def refuse(request: HTTPRequest, respond: Responder, message: Any) -> None:
        await respond.send_json(200, error(message, -32000, f"bad {request.headers['authorization']}"))

    server = Scripted(refuse)
    async with serve_http(server) as web, opened(at(web.url), tmp_path, {"MCP_KEY": KEY}) as it:
        with pytest.raises(ToolError) as raised:
            await it.call("act")
    assert "Bearer <secret:MCP_KEY>" in str(raised.value)
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}
    assert all(f"key={KEY}" in request.path for request in server.requests)


async def test_a_redirect_to_another_origin_is_not_followed(tmp_path: Path) -> None:
    elsewhere = Scripted()
    async with serve_http(elsewhere) as other:

        async def redirect(_: HTTPRequest, respond: Responder) -> None:
            await respond.send(307, b"", {"Location": f"{other.url}/mcp"})

        async with serve_http(redirect) as web:
            with pytest.raises(MCPServerError, match="can't be opened") as raised:
                async with opened(at(web.url), tmp_path, {"MCP_KEY": KEY}):
                    pass
    assert elsewhere.requests == []
    assert KEY not in str(raised.value)


@pytest.mark.parametrize("status", [401, 403, 500])
async def test_a_server_that_refuses_is_named_with_the_status(tmp_path: Path, status: int) -> None:
    async def refuse(_: HTTPRequest, respond: Responder) -> None:
        await respond.send(status, b"no")

    async with serve_http(refuse) as web:
        with pytest.raises(MCPServerError, match=f"'web' can't be opened: .*HTTP {status}") as raised:
            async with opened(at(web.url), tmp_path, {"MCP_KEY": KEY}):
                pass
    assert KEY not in str(raised.value)


async def test_a_key_that_the_server_repeats_in_its_status_line_is_masked(tmp_path: Path) -> None:
    async def refuse(stream: SocketStream) -> None:
        async with stream:
            await stream.receive()
            await stream.send(f"HTTP/1.1 500 Bearer {KEY}\r\nContent-Length: 0\r\n\r\n".encode())

    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener, anyio.create_task_group() as tasks:
        tasks.start_soon(listener.serve, refuse)
        port = listener.extra(SocketAttribute.local_port)
        with pytest.raises(MCPServerError, match=r"HTTP 500 Bearer <secret:MCP_KEY>") as raised:
            async with opened(at(f"http://127.0.0.1:{port}"), tmp_path, {"MCP_KEY": KEY}):
                pass
        assert KEY not in str(raised.value)
        tasks.cancel_scope.cancel()


async def test_mcp_writes_nothing_to_standard_error_where_nobody_asked_for_logs() -> None:
    program = "import logging, agentcore.mcp.connection; logging.getLogger('mcp.client.sse').warning('a key')"
    ended = await anyio.run_process([sys.executable, "-c", program])
    assert ended.stderr == b""


async def test_a_server_that_is_not_there_is_named(tmp_path: Path) -> None:
    async with serve_http(Scripted()) as web:
        pass
    with pytest.raises(MCPServerError, match="'web' can't be opened: it can't be reached"):
        async with opened(at(web.url), tmp_path, {"MCP_KEY": KEY}):
            pass


async def test_a_session_that_the_server_has_ended_is_over(tmp_path: Path) -> None:
    async def forget(_: HTTPRequest, respond: Responder, __: Any) -> None:
        await respond.send(404, b"")

    async with serve_http(Scripted(forget)) as web, opened(at(web.url), tmp_path, {"MCP_KEY": KEY}) as it:
        with pytest.raises(ToolError):
            await it.call("act")
        assert await it.toolset.wait_closed() == "it has ended the session"


async def test_an_answer_over_the_bound_ends_the_connection(tmp_path: Path) -> None:
    async def flood(_: HTTPRequest, respond: Responder, message: Any) -> None:
        await respond.start(200, {"Content-Type": "application/json", "Content-Length": str(1024**3)})
        del message
        for _piece in range(1024):
            await respond.write(b"x" * 1024**2)

    async with serve_http(Scripted(flood)) as web, opened(at(web.url), tmp_path, {"MCP_KEY": KEY}) as it:
        with pytest.raises(MCPCallLost, match="more than 64 MiB"):
            await it.call("act")
        assert "more than 64 MiB" in await it.toolset.wait_closed()


async def test_a_compressed_answer_is_refused(tmp_path: Path) -> None:
    async def squeeze(_: HTTPRequest, respond: Responder, __: Any) -> None:
        await respond.send(200, b"\x1f\x8b", {"Content-Type": "application/json", "Content-Encoding": "gzip"})

    async with serve_http(Scripted(squeeze)) as web, opened(at(web.url), tmp_path, {"MCP_KEY": KEY}) as it:
        with pytest.raises(MCPCallLost, match="compresses its answers"):
            await it.call("act")


async def test_a_connection_that_breaks_during_a_call_leaves_open_what_was_done(tmp_path: Path) -> None:
    async def break_off(_: HTTPRequest, respond: Responder, __: Any) -> None:
        await respond.abort()

    async with serve_http(Scripted(break_off)) as web, opened(at(web.url), tmp_path, {"MCP_KEY": KEY}) as it:
        with pytest.raises(MCPCallLost, match="the connection broke"):
            await it.call("act")
        assert "the connection broke" in await it.toolset.wait_closed()


async def test_a_call_that_never_ends_is_cancelled(tmp_path: Path) -> None:
    async def hang(_: HTTPRequest, __: Responder, ___: Any) -> None:
        await anyio.sleep_forever()

    server = Scripted(hang)
    async with serve_http(server) as web, opened(at(web.url, call_seconds=0.5), tmp_path, {"MCP_KEY": KEY}) as it:
        with pytest.raises(MCPCallLost, match=r"did not answer within 0\.5 s"):
            await it.call("act")
        while b"notifications/cancelled" not in server.requests[-1].content:
            await anyio.lowlevel.checkpoint()


async def test_a_call_under_way_when_another_is_turned_away_may_have_been_done(tmp_path: Path) -> None:
    under_way = anyio.Event()
    lost: list[ToolError] = []

    async def act(_: HTTPRequest, respond: Responder, message: Any) -> None:
        if message["params"].get("arguments"):
            await respond.send(401, b"")
        else:
            under_way.set()
            await anyio.sleep_forever()

    async with serve_http(Scripted(act)) as web, anyio.create_task_group() as tasks:

        async def wait(it: Opened) -> None:
            with pytest.raises(MCPCallLost, match="without an answer") as raised:
                await it.call("act")
            lost.append(raised.value)

        async with opened(at(web.url), tmp_path, {"MCP_KEY": KEY}) as it:
            tasks.start_soon(wait, it)
            await under_way.wait()
            with pytest.raises(ToolError, match="Nothing was done"):
                await it.call("act", second=True)
            assert await it.toolset.wait_closed()
    assert len(lost) == 1


async def test_a_server_that_asks_without_end_is_left(tmp_path: Path) -> None:
    async def ask(_: HTTPRequest, respond: Responder, message: Any) -> None:
        del message
        await respond.start(200, {"Content-Type": "text/event-stream"})
        for number in range(1_000_000):
            asked = {"jsonrpc": "2.0", "id": f"q{number}", "method": "roots/list"}
            await respond.write(f"event: message\ndata: {json.dumps(asked)}\n\n".encode())

    scripted = Scripted(ask)

    async def serve(request: HTTPRequest, respond: Responder) -> None:
        if request.content and "method" not in request.json():
            await anyio.sleep_forever()  # it takes no answer
        await scripted(request, respond)

    async with serve_http(serve) as web, opened(MCPServer(name="web", url=f"{web.url}/mcp"), tmp_path) as it:
        with pytest.raises(MCPCallLost, match="asked more than 1,000 things at once"):
            await it.call("act")
        assert await it.toolset.wait_closed() == "it asked more than 1,000 things at once"
