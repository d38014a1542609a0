"""Who asks: a key in a header, the cookie of a page or of a view, or the ticket of a WebSocket."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Collection
from typing import Final, final

import anyio
from starlette.datastructures import Headers, QueryParams
from starlette.routing import compile_path
from starlette.types import ASGIApp, Receive, Scope, Send

from agentcore_serve.auth.identity import IDENTITY, LOCAL
from agentcore_serve.auth.keys import ValidKey, contains_key, digest_of
from agentcore_serve.auth.pages import session_token
from agentcore_serve.auth.security import Security
from agentcore_serve.auth.throttle import Buckets, client_address
from agentcore_serve.middleware.hosts import is_same_origin
from agentcore_serve.middleware.responses import app_path
from agentcore_serve.refused import Refused, not_authenticated, too_many

_IN_URL: Final = frozenset(
    {"key", "api_key", "apikey", "api-key", "token", "access_token", "x-api-key", "authorization"}
)
_TICKET: Final = "ticket"
_REMEMBERED: Final = 1_000

WRONG_KEY: Final = "agentcore.wrong_key"
"""Set in the scope of a request that came with a wrong key, code or ticket."""


@final
class Authentication:
    """Finds the identity of each request, or refuses it. Public paths need none, and get none.

    Args:
        app: The app.
        security: Keys, page sessions and tickets.
        public: Paths that need no key, as routes have them: "/livez", "/assets/{name}".
    """

    def __init__(self, app: ASGIApp, *, security: Security, public: Collection[str] = ()) -> None:
        self._app = app
        self._security = security
        self._public = frozenset(path for path in public if "{" not in path)
        self._public_patterns = [compile_path(path)[0] for path in public if "{" in path]
        limits = security.settings.request_limits
        self._wrong = Buckets(limits.wrong_keys_per_minute, clock=security.monotonic)
        # Keys that were right lately: a neighbour behind the same address who tries wrong ones does not lock them out.
        self._right: OrderedDict[bytes, None] = OrderedDict()
        self._strangers = anyio.Lock()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] in ("http", "websocket"):
            scope.pop(IDENTITY, None)
            query = QueryParams(scope.get("query_string", b""))
            # Where no key is taken, names are those of the program inside.
            is_view = self._security.views.is_at_host(scope)
            if (
                (not is_view and not _IN_URL.isdisjoint(name.lower() for name in query))
                or contains_key(scope["path"])
                or any(contains_key(text) for pair in query.multi_items() for text in pair)
            ):
                raise Refused(
                    400,
                    "key_in_url",
                    "A key in a URL ends up in logs and histories: send it as `Authorization: Bearer KEY` or `X-API-Key: KEY`. "
                    "Revoke this one and make another: agentcore keys revoke ID.",
                )
            path = app_path(scope)
            if is_view:
                # Nothing but that view is there, and no key and no other cookie opens it.
                if (key_id := self._security.views.admit(scope, path)) is not None:
                    scope[IDENTITY] = (await self._find_viewer(key_id)).identity
            elif not self._is_public(path):
                scope[IDENTITY] = (await self._identify(scope, query)).identity
        await self._app(scope, receive, send)

    async def _find_viewer(self, key_id: str) -> ValidKey:
        if not self._security.settings.auth:
            return ValidKey(LOCAL, b"")
        valid = await self._security.keys.find(key_id)
        if valid is None:
            raise not_authenticated("The key that opened this view was revoked, or has expired.")
        return valid

    def _is_public(self, path: str) -> bool:
        return path in self._public or any(pattern.match(path) for pattern in self._public_patterns)

    async def _identify(self, scope: Scope, query: QueryParams) -> ValidKey:
        if not self._security.settings.auth:
            return ValidKey(LOCAL, b"")
        key = _key_of(Headers(scope=scope))
        if key is not None:
            return await self._verify(scope, key, is_key=True)
        ticket = query.get(_TICKET)
        if scope["type"] == "websocket":
            if ticket is None:
                raise not_authenticated("A WebSocket needs a key in its headers, or ?ticket= of POST /api/v1/tickets.")
            return await self._redeem(scope, ticket)
        token = session_token(scope)
        if token is None:
            raise not_authenticated("Send a key as `Authorization: Bearer KEY` or `X-API-Key: KEY`.")
        if not is_same_origin(scope):
            # SameSite does not tell the ports of a host apart.
            raise Refused(403, "origin_not_allowed", "Only the server's own page can use its cookie.")
        return await self._verify(scope, token, is_key=False)

    async def _verify(self, scope: Scope, secret: str, *, is_key: bool) -> ValidKey:
        digest = digest_of(secret)
        if digest in self._right:
            return await self._check(scope, secret, digest, is_key=is_key)
        # One after the other, so that as many wrong keys at once are counted as well.
        async with self._strangers:
            if digest not in self._right:
                self._check_address(client_address(scope))
            return await self._check(scope, secret, digest, is_key=is_key)

    async def _check(self, scope: Scope, secret: str, digest: bytes, *, is_key: bool) -> ValidKey:
        valid = await (self._security.keys if is_key else self._security.pages).verify(secret)
        if valid is None:
            self._right.pop(digest, None)
            self._count_wrong(scope, client_address(scope))
            raise not_authenticated(
                "This key is wrong, revoked or expired."
                if is_key
                else "This page's session is over. Open the page anew."
            )
        self._right[digest] = None
        self._right.move_to_end(digest)
        if len(self._right) > _REMEMBERED:
            self._right.popitem(last=False)
        return valid

    async def _redeem(self, scope: Scope, ticket: str) -> ValidKey:
        address = client_address(scope)
        self._check_address(address)
        key_id = self._security.tickets.redeem(ticket)
        valid = None if key_id is None else await self._security.keys.find(key_id)
        if valid is None:
            self._count_wrong(scope, address)
            raise not_authenticated("This ticket is wrong, was used, or is older than 30 seconds. Ask for a new one.")
        return valid

    def _count_wrong(self, scope: Scope, address: str) -> None:
        scope[WRONG_KEY] = True
        self._wrong.take(address)

    def _check_address(self, address: str) -> None:
        wait = self._wrong.wait_for(address)
        if wait:
            raise too_many("Too many wrong keys came from this address.", wait)


def _key_of(headers: Headers) -> str | None:
    """Return the key in the headers, or None where there is none.

    Raises:
        Refused: Several are there, or a header of another scheme.
    """
    given = [*headers.getlist("authorization"), *headers.getlist("x-api-key")]
    if not given:
        return None
    if len(given) > 1:
        raise not_authenticated("Send one key, in one header.")
    if "authorization" not in headers:
        return given[0].strip()
    scheme, _, key = given[0].strip().partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise not_authenticated("Send the key as `Authorization: Bearer KEY`.")
    return key.strip()
