"""Logging in to a server: mcp's provider for OAuth, a browser that a person uses, and the file that keeps the tokens.

Above: the command line, which alone logs in. Conversations use what is in the file: see `oauth.py`.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from typing import Final
from urllib.parse import parse_qs, urlsplit

import anyio
import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import AuthorizationCodeResult, OAuthClientInformationFull, OAuthClientMetadata
from pydantic import AnyUrl, ValidationError

from agentcore._groups import leaf_exceptions
from agentcore.errors import MCPServerError
from agentcore.mcp.login_requests import LoginFault, auth_client, describe, exchange, needs_https, quiet
from agentcore.mcp.oauth import ProviderStorage
from agentcore.mcp.redirect import RedirectListener, listen_for_redirect
from agentcore.mcp.server import MCPServer
from agentcore.mcp.tokens import Login, TokenFile, server_key
from agentcore.mcp.variables import expand
from agentcore.tools import ToolSecrets

LOGIN_SECONDS: Final = 300.0
"""How long the browser is waited for."""

OpenPage = Callable[[str], Awaitable[None]]
"""Shows a person the page at an address."""


async def log_in(
    server: MCPServer,
    secrets: ToolSecrets,
    open_page: OpenPage,
    *,
    file: TokenFile,
    client_id: str | None = None,
    port: int = 0,
) -> str | None:
    """Log in to a server in a person's browser, and keep the tokens.

    Args:
        server: The server, which is one with a url.
        secrets: Where the variables of its settings have their values, before the environment.
        open_page: Is called with the address of the page to log in at.
        file: Where the tokens are kept.
        client_id: What this program is registered as with the authorization server. None: it registers itself.
        port: The port of this machine that the browser is sent to at the end. 0: any that is free.

    Returns:
        Where the file was put, if it could not be understood.

    Raises:
        MCPServerError: There was no login, and why.
    """
    launch = await expand(server, secrets)
    try:
        needs_https(launch.url)
        headers = {name: text for name, text in launch.headers.items() if name.lower() != "authorization"}
        # Not a request that begins a session: whatever it is, who is asking is checked first.
        method, content = ("GET", None) if server.transport == "sse" else ("POST", _PING)
        probe = httpx2.Request(method, launch.url, headers={**headers, **_HEADERS}, content=content)
        async with listen_for_redirect(port) as redirect:
            login = await _run(probe, launch.url, redirect, open_page, client_id)
        async with file.locked() as held:
            return await held.write(server_key(launch.url), login)
    except Exception as error:
        problem = _explain(leaf_exceptions(error)[0], file, port)
        raise MCPServerError(f"No login to the MCP server {server.name!r}: {launch.mask(problem)}.") from None


def _explain(error: BaseException, file: TokenFile, port: int) -> str:
    match error:
        case LoginFault() | OAuthFlowError():
            return describe(error)
        case httpx2.HTTPError():
            return f"{type(error).__name__}: {error}"
        case TimeoutError():
            return f"another program holds {file.path}"
        case OSError(filename=None):
            return f"port {port} cannot be listened on ({error.strerror or error}). Choose another with --port"
        case OSError():
            return f"{error.strerror}: {error.filename}"
        case ValidationError() | ValueError():
            return "an answer of the server cannot be read"
        case _:
            raise error


_NO_SECRET: Final = "none"  # noqa: S105 the name of a method
"""How a program that everybody may read proves who it is: by PKCE alone."""
_PING: Final = b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}'
_HEADERS: Final = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


async def _run(
    probe: httpx2.Request, url: str, redirect: RedirectListener, open_page: OpenPage, client_id: str | None
) -> Login:
    async def show(address: str) -> None:
        (state,) = parse_qs(urlsplit(address).query)["state"]
        redirect.expect(state)
        await open_page(address)

    async def wait() -> AuthorizationCodeResult:
        with anyio.move_on_after(LOGIN_SECONDS):
            answer = await redirect.wait()
            if answer.error is not None:
                raise LoginFault(answer.error)
            return AuthorizationCodeResult(code=answer.code, state=answer.state, iss=answer.issuer)
        raise LoginFault(f"the browser did not come back within {LOGIN_SECONDS / 60:g} minutes")

    redirect_urls = [AnyUrl(redirect.url)]
    client = None
    if client_id is not None:
        client = OAuthClientInformationFull(
            client_id=client_id, redirect_uris=redirect_urls, token_endpoint_auth_method=_NO_SECRET
        )
    storage = ProviderStorage(client=client)
    metadata = OAuthClientMetadata(
        redirect_uris=redirect_urls, client_name="agentcore", token_endpoint_auth_method=_NO_SECRET
    )
    provider = OAuthClientProvider(url, metadata, storage, show, wait)
    status = 0
    flow = provider.async_auth_flow(probe)
    async with auth_client() as http, aclosing(flow):
        with quiet():
            outgoing = await anext(flow)
            while True:
                response = await exchange(http, outgoing, url, head_only=outgoing is probe)
                if outgoing is probe:
                    status = response.status_code
                try:
                    outgoing = await flow.asend(response)
                except StopAsyncIteration:
                    break
    if storage.tokens is None:
        raise LoginFault(f"it answers without one (HTTP {status})")
    if status in (401, 403):
        raise LoginFault(f"it refuses the token that the authorization server gave (HTTP {status})")
    return storage.login(provider)
