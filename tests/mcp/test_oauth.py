"""Logins to MCP servers: got in a browser, kept in a file, used and renewed, and masked everywhere."""

from __future__ import annotations

import json
import logging
import re
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from agentcore import Agent, Conversation
from agentcore.errors import MCPServerError, ToolError
from agentcore.mcp import MCPServer, MCPToolset
from agentcore.mcp.login import log_in
from agentcore.mcp.tokens import Login, TokenFile, TokensUnreadable, server_key
from agentcore.secrets import SecretRegistry
from agentcore.testing import ScriptedLLM, call, say
from agentcore.testing.http import HTTPRequest, Responder, serve_http
from live_toolset import notices_of
from mcp_authorization import Authorization, serve_authorization
from mcp_opened import opened


@pytest.fixture
def web() -> Iterator[Authorization]:
    with serve_authorization() as authorization:
        yield authorization


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TokenFile:
    """The file of this user, in a folder of the test's."""
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    file = TokenFile()
    assert file.path == str(tmp_path / "config/agentcore/mcp-tokens.json")
    return file


def guarded(web: Authorization, **settings: Any) -> MCPServer:
    return MCPServer(name="web", url=web.mcp, **settings)


async def browser(address: str) -> None:
    """Be a browser with a person who says yes: follow the redirects to where they end."""
    async with httpx.AsyncClient(follow_redirects=True) as client:
        (await client.get(address)).raise_for_status()


def asynchronously(tasks: anyio.abc.TaskGroup, page: Callable[[str], Coroutine[Any, Any, None]] = browser) -> Any:
    """Return what opens a page as a browser does: beside the one that waits for it."""

    async def open_page(address: str) -> None:
        tasks.start_soon(page, address)

    return open_page


async def logged_in(web: Authorization, file: TokenFile, **settings: Any) -> str | None:
    aside = None
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            aside = await log_in(guarded(web), SecretRegistry(), asynchronously(tasks), file=file, **settings)
    return aside


async def refused(web: Authorization, file: TokenFile, page: Any = None, **settings: Any) -> str:
    """Try to log in; return why there was none, without a word of the log."""

    async def tolerant(address: str) -> None:
        async with httpx.AsyncClient(follow_redirects=True) as client:
            await client.get(address)

    with anyio.fail_after(30), pytest.raises(MCPServerError) as raised:
        try:
            async with anyio.create_task_group() as tasks:
                await log_in(
                    guarded(web), SecretRegistry(), asynchronously(tasks, page or tolerant), file=file, **settings
                )
        except BaseExceptionGroup as group:
            raise group.exceptions[0] from None
    assert await file.read(server_key(web.mcp)) is None
    return str(raised.value)


async def kept(web: Authorization, file: TokenFile) -> Login:
    login = await file.read(server_key(web.mcp))
    assert login is not None
    return login


async def expire(web: Authorization, file: TokenFile) -> Login:
    """Let the access token end."""
    login = await kept(web, file)
    over = login.model_copy(update={"expires_at": time.time() - 1})
    async with file.locked() as held:
        await held.write(server_key(web.mcp), over)
    web.tokens.discard(login.access_token)
    return over


async def test_a_login_is_kept_for_this_user_alone_and_used(
    web: Authorization, file: TokenFile, tmp_path: Path
) -> None:
    assert await logged_in(web, file) is None
    assert Path(file.path).stat().st_mode & 0o777 == 0o600
    (registered,) = web.registrations
    (redirect,) = registered["redirect_uris"]
    assert re.fullmatch(r"http://127\.0\.0\.1:\d+/callback", redirect)
    (grant,) = web.grants
    assert (grant["grant_type"], grant["resource"], len(grant["code_verifier"])) == ("authorization_code", web.mcp, 128)
    login = await kept(web, file)
    assert login.access_token not in repr(login)
    async with opened(guarded(web, auth="oauth"), tmp_path) as it:
        assert "the tokens are" in await it.text("whisper")
    used = {credentials for path, credentials in web.asked if path == "/mcp" and credentials}
    assert used == {f"Bearer {login.access_token}"}
    assert {credentials for path, credentials in web.asked if path != "/mcp"} == {None}


async def test_tokens_are_masked_in_all_that_a_conversation_has(
    web: Authorization, file: TokenFile, tmp_path: Path
) -> None:
    await logged_in(web, file)
    login = await kept(web, file)
    llm = ScriptedLLM([call("mcp__web__whisper"), say("They are secret.")])
    async with Conversation(Agent(llm=llm, tools=[MCPToolset(guarded(web))]), workspace=tmp_path) as conversation:
        await conversation.run("Tell.")
        recorded = "".join(event.model_dump_json() for event in conversation.state.events)
    assert "<secret:MCP_ACCESS_TOKEN>, <secret:MCP_REFRESH_TOKEN>" in recorded
    assert login.access_token not in recorded
    assert str(login.refresh_token) not in recorded


async def test_a_login_is_used_without_auth_and_not_in_the_place_of_a_header(
    web: Authorization, file: TokenFile, tmp_path: Path
) -> None:
    await logged_in(web, file)
    async with opened(guarded(web), tmp_path) as it:
        assert "mcp__web__whisper" in it.names
    with pytest.raises(MCPServerError, match="HTTP 401 Unauthorized: check its headers"):
        async with opened(guarded(web, headers={"Authorization": "Bearer mine"}), tmp_path):
            pass
    assert web.asked[-1] == ("/mcp", "Bearer mine")


@pytest.mark.parametrize("auth", ["oauth", None])
async def test_without_a_login_the_server_is_left_out_and_the_command_named(
    web: Authorization, file: TokenFile, tmp_path: Path, auth: Any
) -> None:
    agent = Agent(llm=ScriptedLLM(["Done."]), tools=[MCPToolset(guarded(web, auth=auth))])
    async with Conversation(agent, workspace=tmp_path) as conversation:
        result = await conversation.run("Do it.")
        assert result.text == "Done."
        ((code, detail),) = notices_of(conversation)
    assert code == "missing"
    assert "The MCP server 'web' can't be opened: it needs login: run `agentcore mcp login web`." in detail, detail
    # One that says so is not even asked, and no browser is opened for the other.
    assert {path for path, _ in web.asked} == (set() if auth else {"/mcp"})
    assert await file.read(server_key(web.mcp)) is None


async def test_an_expired_token_is_renewed_and_the_new_ones_are_kept(
    web: Authorization, file: TokenFile, tmp_path: Path
) -> None:
    await logged_in(web, file)
    before = await expire(web, file)
    async with opened(guarded(web), tmp_path) as it:
        assert await it.text("whisper")
        after = await kept(web, file)
        text = await it.text("whisper")
        for token in (before.access_token, before.refresh_token, after.access_token, after.refresh_token):
            assert str(token) not in it.secrets.mask(f"{text} {token}")
    assert [grant["grant_type"] for grant in web.grants] == ["authorization_code", "refresh_token"]
    assert web.grants[1]["refresh_token"] == before.refresh_token
    assert web.grants[1]["resource"] == web.mcp
    assert after.access_token in web.tokens
    assert after.refresh_token in web.refresh_tokens
    assert after.client == before.client
    assert not after.has_expired


async def test_a_token_that_is_refused_while_it_is_open_is_renewed_once_for_all_calls(
    web: Authorization, file: TokenFile, tmp_path: Path
) -> None:
    await logged_in(web, file)
    async with opened(guarded(web), tmp_path) as it:
        web.tokens.clear()
        async with anyio.create_task_group() as tasks:
            for _ in range(20):
                tasks.start_soon(it.text, "whisper")
    assert len(web.grants) == 2


async def test_the_token_that_another_program_renewed_is_used(
    web: Authorization, file: TokenFile, tmp_path: Path
) -> None:
    await logged_in(web, file)
    async with opened(guarded(web), tmp_path) as it:
        login = await kept(web, file)
        old = ("/mcp", f"Bearer {login.access_token}")
        web.revoke()
        given = web.issue()
        tokens = {name: given[name] for name in ("access_token", "refresh_token")}
        async with anyio.create_task_group() as tasks:
            async with file.locked() as held:  # the other program, in the middle of it
                before = web.asked.count(old)
                tasks.start_soon(it.text, "whisper")
                while web.asked.count(old) == before:
                    await anyio.lowlevel.checkpoint()
                await held.write(server_key(web.mcp), login.model_copy(update=tokens))
    assert len(web.grants) == 1
    assert (await kept(web, file)).access_token == given["access_token"]


async def test_a_server_of_the_older_transport_is_logged_in_to_and_its_token_renewed(
    web: Authorization, file: TokenFile, tmp_path: Path
) -> None:
    server = MCPServer(name="web", url=f"{web.url}/sse", transport="sse", auth="oauth")
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            await log_in(server, SecretRegistry(), asynchronously(tasks), file=file)
    async with opened(server, tmp_path) as it:
        web.tokens.clear()
        assert "the tokens are" in await it.text("whisper")
    assert [grant["grant_type"] for grant in web.grants] == ["authorization_code", "refresh_token"]


async def test_a_revoked_login_is_removed_and_the_server_needs_another(
    web: Authorization, file: TokenFile, tmp_path: Path
) -> None:
    await logged_in(web, file)
    async with opened(guarded(web), tmp_path) as it:
        web.revoke()
        with pytest.raises(ToolError, match="needs login: run `agentcore mcp login web`"):
            await it.call("whisper")
        assert await it.toolset.wait_closed() == "it needs login: run `agentcore mcp login web`"
    assert await file.read(server_key(web.mcp)) is None
    asked = len(web.asked)
    with pytest.raises(MCPServerError, match="needs login"):
        async with opened(guarded(web, auth="oauth"), tmp_path):
            pass
    assert len(web.asked) == asked
    await logged_in(web, file)
    async with opened(guarded(web, auth="oauth"), tmp_path) as it:
        assert it.names


async def test_an_authorization_server_that_fails_costs_no_login(
    web: Authorization, file: TokenFile, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    await logged_in(web, file)
    before = await expire(web, file)
    caplog.set_level(logging.DEBUG)
    for status, body, problem in (
        (503, {}, "answered with HTTP 503"),
        (200, {"refresh_token": "hush-this-came"}, "holds no token"),
    ):
        web.token_status, web.token_body = status, body
        with pytest.raises(MCPServerError, match=f"its login can't be renewed .*{problem}") as raised:
            async with opened(guarded(web), tmp_path):
                pass
        assert await kept(web, file) == before
        assert "hush" not in f"{raised.value}{caplog.text}"
    web.token_status, web.token_body = 200, None
    async with opened(guarded(web), tmp_path) as it:
        assert it.names


async def test_a_token_without_an_end_and_without_another_is_used_until_it_is_refused(
    web: Authorization, file: TokenFile, tmp_path: Path
) -> None:
    web.expires_in, web.gives_refresh_tokens = None, False
    await logged_in(web, file)
    login = await kept(web, file)
    assert (login.expires_at, login.refresh_token) == (None, None)
    async with opened(guarded(web), tmp_path) as it:
        assert await it.text("whisper")
    web.revoke()
    with pytest.raises(MCPServerError, match="needs login"):
        async with opened(guarded(web), tmp_path):
            pass
    assert len(web.grants) == 1


async def test_what_keeps_one_from_logging_in_is_named(web: Authorization, file: TokenFile) -> None:
    web.refuses = "access_denied"
    assert "it was refused (access_denied: The person said no.)" in await refused(web, file)
    web.refuses, web.state = None, "another"
    assert "the answer is not one to this login" in await refused(web, file)
    web.state, web.registers = None, False
    assert "Registration failed: 403" in await refused(web, file)
    web.registers, web.token_status, web.token_body = True, 400, {"error": "invalid_grant"}
    assert "Token exchange failed (400)" in await refused(web, file)
    web.token_status, web.token_body = 200, {"refresh_token": "hush-this-came"}
    problem = await refused(web, file)
    assert "Invalid token response" in problem
    assert "hush" not in problem
    web.token_body, web.is_public = None, True
    assert "it answers without one (HTTP 4" in await refused(web, file)


async def test_the_browser_is_waited_for_within_bounds(
    web: Authorization, file: TokenFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def closed(address: str) -> None:
        del address

    monkeypatch.setattr("agentcore.mcp.login.LOGIN_SECONDS", 0.2)
    assert "the browser did not come back within" in await refused(web, file, closed)


async def test_a_port_that_is_taken_is_named(web: Authorization, file: TokenFile) -> None:
    async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
        port = listener.extra(anyio.abc.SocketAttribute.local_port)
        problem = await refused(web, file, port=port)
    assert f"port {port} cannot be listened on" in problem
    assert "Choose another with --port" in problem


async def test_other_requests_to_the_port_do_not_end_the_login(web: Authorization, file: TokenFile) -> None:
    async def stray(address: str) -> None:
        back = httpx.URL(address).params["redirect_uri"]
        async with httpx.AsyncClient() as client:
            assert (await client.get(httpx.URL(back).join("/favicon.ico"))).status_code == 404
        async with await anyio.connect_tcp("127.0.0.1", httpx.URL(back).port or 0):
            pass  # as browsers do in advance
        await browser(address)

    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            await log_in(guarded(web), SecretRegistry(), asynchronously(tasks, stray), file=file)
    assert await kept(web, file)


async def test_a_client_that_was_registered_by_hand_is_used(web: Authorization, file: TokenFile) -> None:
    web.registers = False
    await logged_in(web, file, client_id="by-hand")
    assert web.grants[0]["client_id"] == "by-hand"


async def test_no_token_goes_to_an_address_without_https_elsewhere(web: Authorization, file: TokenFile) -> None:
    web.metadata = {"token_endpoint": "http://tokens.example/give"}
    assert "would go unencrypted to tokens.example" in await refused(web, file)
    with pytest.raises(MCPServerError, match="its tokens would go unencrypted"):
        await log_in(MCPServer(name="far", url="http://far.example/mcp"), SecretRegistry(), browser, file=file)


async def test_metadata_of_another_server_is_refused(web: Authorization, file: TokenFile) -> None:
    web.metadata = {"issuer": "https://other.example"}
    assert "metadata issuer mismatch" in await refused(web, file)
    web.metadata, web.resource = {}, {"resource": "https://other.example/mcp"}
    assert "does not match expected" in await refused(web, file)


async def test_a_redirect_to_another_origin_gets_neither_code_nor_token(
    web: Authorization, file: TokenFile, tmp_path: Path
) -> None:
    got: list[HTTPRequest] = []

    async def take(request: HTTPRequest, respond: Responder) -> None:
        got.append(request)
        await respond.send_json(200, {"access_token": "stolen"})

    async with serve_http(take) as other:

        async def redirect(_: HTTPRequest, respond: Responder) -> None:
            await respond.send(307, b"", {"Location": f"{other.url}/take"})

        async with serve_http(redirect) as redirecting:
            web.metadata = {"token_endpoint": f"{redirecting.url}/give"}
            assert "Token exchange failed (307)" in await refused(web, file)
            web.metadata = {}
            await logged_in(web, file)
            login = await expire(web, file)
            assert login.authorization is not None
            moved = login.model_copy(
                update={"authorization": {**login.authorization, "token_endpoint": f"{redirecting.url}/give"}}
            )
            async with file.locked() as held:
                await held.write(server_key(web.mcp), moved)
            with pytest.raises(MCPServerError, match="answered with HTTP 307"):
                async with opened(guarded(web), tmp_path):
                    pass
    assert got == []


async def test_a_damaged_file_is_named_and_set_aside_by_the_next_login(
    web: Authorization, file: TokenFile, tmp_path: Path
) -> None:
    await logged_in(web, file)
    damaged = Path(file.path).read_text()[:-20]
    Path(file.path).write_text(damaged)
    with pytest.raises(TokensUnreadable, match=re.escape(file.path)) as raised:
        await file.read("https://example.org/mcp")
    assert "access-" not in str(raised.value)
    with pytest.raises(MCPServerError, match=r"mcp-tokens\.json .* sets it aside"):
        async with opened(guarded(web, auth="oauth"), tmp_path):
            pass
    assert Path(file.path).read_text() == damaged
    aside = await logged_in(web, file)
    assert aside == f"{file.path}.broken"
    assert Path(f"{file.path}.broken").read_text() == damaged
    assert await kept(web, file)


async def test_what_a_newer_version_wrote_is_kept(web: Authorization, file: TokenFile) -> None:
    await logged_in(web, file)
    content = json.loads(Path(file.path).read_text())
    content["newer"] = True
    content["servers"]["https://other.example/mcp"] = {**content["servers"][server_key(web.mcp)], "proof": "hush"}
    Path(file.path).write_text(json.dumps(content))
    assert await logged_in(web, file) is None
    again = json.loads(Path(file.path).read_text())
    assert (again["newer"], again["servers"]["https://other.example/mcp"]["proof"]) == (True, "hush")
    assert "hush" not in repr(await file.read("https://other.example/mcp"))


_WRITER = """
import sys, anyio
from agentcore.mcp.tokens import Login, TokenFile
async def main():
    for number in range(20):
        async with TokenFile(sys.argv[1]).locked() as held:
            await held.write(f"https://{sys.argv[2]}.example/{number}", Login(access_token="a" * 8, client={"client_id": "c"}))
anyio.run(main)
"""


def test_programs_that_log_in_at_once_lose_nothing(tmp_path: Path) -> None:
    path = tmp_path / "config/tokens.json"
    writers = [subprocess.Popen([sys.executable, "-c", _WRITER, str(path), name]) for name in ("one", "two", "three")]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0]
    assert len(json.loads(path.read_text())["servers"]) == 60


def test_a_login_is_filed_under_origin_and_path() -> None:
    assert server_key("HTTPS://Example.org:443/mcp?key=hush#x") == "https://example.org/mcp"
    assert server_key("http://[::1]:80") == "http://[::1]/"
    assert server_key("https://a:b@example.org:8443/a") == "https://example.org:8443/a"
    with pytest.raises(ValueError, match="begins with https"):
        server_key("ftp://example.org")
