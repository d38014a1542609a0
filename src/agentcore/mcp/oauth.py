"""A login to a server in use: its token goes with each request, and is renewed by mcp's provider when it has ended.

Above: the HTTP transports. Below: the file with the logins. No browser is opened here: `login.py` does that, for the command line.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import aclosing, suppress
from functools import partial
from typing import Final, final

import anyio
import httpx2
from mcp.client.auth import OAuthClientProvider, OAuthFlowError
from mcp.shared.auth import (
    OAuthClientInformationFull,
    OAuthClientMetadata,
    OAuthMetadata,
    OAuthToken,
    ProtectedResourceMetadata,
)
from pydantic import ValidationError

from agentcore.errors import MCPServerError, SecretError
from agentcore.mcp.login_requests import LoginFault, auth_client, describe, exchange, origin, quiet
from agentcore.mcp.server import MCPServer
from agentcore.mcp.tokens import Login, TokenFile, TokensUnreadable, needs_login, server_key, wants_login
from agentcore.secrets import SecretRegistry
from agentcore.tools import ToolSecrets

_RENEW_SECONDS: Final = 15.0
"""How long renewing may take. It holds the lock of the file, and is not cancelled: a token that came must not be lost."""
_VERSION: Final = "mcp-protocol-version"
_OVER: Final = 1.0
"""A time that is over, in seconds since 1970."""


async def find_login(server: MCPServer, url: str, secrets: ToolSecrets) -> LoginSession | None:
    """Return the login that this user has to a server.

    Raises:
        MCPServerError: There is none, and the server's settings say that it takes one.
    """
    if not wants_login(server):
        return None
    file = TokenFile()
    login, problem = None, needs_login(server.name)
    try:
        login = await file.read(server_key(url))
    except TokensUnreadable as error:
        problem = f"{error}: `agentcore mcp login {server.name}` sets it aside"
    except ValueError as error:
        raise MCPServerError(f"The MCP server {server.name!r} can't be opened: {error}") from None
    if login is not None:
        return LoginSession(server.name, url, login, file, partial(_hide, secrets))
    if server.auth == "oauth":
        raise MCPServerError(f"The MCP server {server.name!r} can't be opened: {problem}.")
    return None


def _hide(secrets: ToolSecrets, login: Login) -> None:
    """Have the tokens masked in all that the conversation keeps; nothing can ask for them by name."""
    if isinstance(secrets, SecretRegistry):
        for name, value in (
            ("MCP_ACCESS_TOKEN", login.access_token),
            ("MCP_REFRESH_TOKEN", login.refresh_token),
            ("MCP_CLIENT_SECRET", login.client.get("client_secret")),
        ):
            if isinstance(value, str):
                with suppress(SecretError):  # too short to be masked
                    secrets.hide(name, value)


@final
class LoginSession:
    """The login of one connection. Used from any task."""

    def __init__(self, name: str, url: str, login: Login, file: TokenFile, hide: Callable[[Login], None]) -> None:
        """Take a login that was read; `hide` is called with each that comes, before it is used."""
        self._name = name
        self._url = url
        self._key = server_key(url)
        self._origin = origin(httpx2.URL(url))
        self._login = login
        self._file = file
        self._hide = hide
        self._lock = anyio.Lock()
        hide(login)

    async def token_for(self, request: httpx2.Request) -> str | None:
        """Return the token for a request; None where it goes to another origin.

        Raises:
            LoginFault: It has ended and cannot be renewed.
        """
        if origin(request.url) != self._origin:
            return None
        if self._login.has_expired:
            return await self.renew(self._login.access_token, request)
        return self._login.access_token

    async def renew(self, refused: str, request: httpx2.Request) -> str:
        """Return a token in the place of one that the server has refused, or that has ended.

        Raises:
            LoginFault: It cannot be renewed.
        """
        async with self._lock:
            if self._login.access_token == refused:
                try:
                    self._login = await self._renew(refused, request.headers.get(_VERSION))
                except TokensUnreadable as error:
                    raise LoginFault(str(error)) from None
                except (OSError, TimeoutError) as error:
                    raise LoginFault(f"its login can't be renewed ({type(error).__name__}: {error})") from None
                self._hide(self._login)
            return self._login.access_token

    async def _renew(self, refused: str, version: str | None) -> Login:
        async with self._file.locked() as file:
            # Another conversation, or another program, may have been first. A token to renew with is often good for once.
            found = await file.read(self._key)
            if found is not None and found.access_token != refused and not found.has_expired:
                return found
            if found is None:
                raise LoginFault(needs_login(self._name))
            self._hide(found)
            renewed = None
            with anyio.CancelScope(shield=True):
                renewed = None if found.refresh_token is None else await self._refresh(found, version)
                await file.write(self._key, renewed)
            if renewed is None:
                raise LoginFault(needs_login(self._name))
            return renewed

    async def _refresh(self, login: Login, version: str | None) -> Login | None:
        """Return the login with new tokens; None where the authorization server does not give any more."""
        try:
            with anyio.fail_after(_RENEW_SECONDS):
                return await refresh(self._url, login, version)
        except TimeoutError:
            problem = f"no answer within {_RENEW_SECONDS:g} s"
        except httpx2.HTTPError as error:
            problem = f"{type(error).__name__}: {error}"
        except (LoginFault, OAuthFlowError) as error:
            problem = describe(error)
        raise LoginFault(f"its login can't be renewed ({problem})")


async def refresh(url: str, login: Login, version: str | None) -> Login | None:
    """Have mcp's provider renew a login; None where the authorization server refuses that.

    Raises:
        LoginFault: The authorization server failed, or answered with something else.
        OAuthFlowError: The same, as mcp's provider has it.
        httpx2.HTTPError: It cannot be reached.
    """
    storage = ProviderStorage(login)
    provider = OAuthClientProvider(url, OAuthClientMetadata(redirect_uris=None), storage)
    try:
        if login.authorization is not None:
            provider.context.oauth_metadata = OAuthMetadata.model_validate(login.authorization)
        if login.resource is not None:
            provider.context.protected_resource_metadata = ProtectedResourceMetadata.model_validate(login.resource)
        # mcp's provider does not know when a stored token ends. One that has ended it renews first of all.
        provider.context.token_expiry_time = _OVER
        request = httpx2.Request("GET", url, headers={} if version is None else {_VERSION: version})
        last: httpx2.Response | None = None
        flow = provider.async_auth_flow(request)
        async with auth_client() as client, aclosing(flow):
            with quiet():
                outgoing = await anext(flow)
                while outgoing is not request:
                    last = await exchange(client, outgoing, url)
                    if last.status_code == 200:
                        OAuthToken.model_validate_json(last.content)
                    outgoing = await flow.asend(last)
    except ValidationError:
        raise LoginFault("the answer of the authorization server holds no token") from None
    if storage.tokens is not None:
        return storage.login(provider)
    status = 0 if last is None else last.status_code
    if last is None or status in (400, 401, 403):
        return None
    raise LoginFault(f"the authorization server answered with HTTP {status}")


@final
class ProviderStorage:
    """The storage of one run of mcp's provider: what it is to know, and what it found."""

    def __init__(self, login: Login | None = None, client: OAuthClientInformationFull | None = None) -> None:
        """Begin with a login that there is, or with what this program is registered as."""
        self._login = login
        self.client = client if login is None else OAuthClientInformationFull.model_validate(login.client)
        self.tokens: OAuthToken | None = None
        """The tokens that came."""
        self._came_at = 0.0

    async def get_tokens(self) -> OAuthToken | None:
        """Return the tokens that there were."""
        if self._login is None:
            return None
        login = self._login
        return OAuthToken(access_token=login.access_token, refresh_token=login.refresh_token, scope=login.scope)

    async def set_tokens(self, tokens: OAuthToken) -> None:
        """Take the tokens that came."""
        self.tokens = tokens
        self._came_at = time.time()

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        """Return what this program is registered as."""
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        """Take what it was registered as."""
        self.client = client_info

    def login(self, provider: OAuthClientProvider) -> Login:
        """Return what is to be kept of what came."""
        tokens, client, context = self.tokens, self.client, provider.context
        assert tokens is not None
        assert client is not None
        authorization, resource = context.oauth_metadata, context.protected_resource_metadata
        return Login(
            access_token=tokens.access_token,
            refresh_token=tokens.refresh_token,
            expires_at=None if tokens.expires_in is None else self._came_at + tokens.expires_in,
            scope=tokens.scope,
            client=client.model_dump(mode="json", exclude_none=True),
            authorization=None if authorization is None else authorization.model_dump(mode="json", exclude_none=True),
            resource=None if resource is None else resource.model_dump(mode="json", exclude_none=True),
        )
