"""How much one key may ask, and how many streams are open."""

from __future__ import annotations

from typing import final

from starlette.types import ASGIApp, Receive, Scope, Send

from agentcore_serve.auth.identity import IDENTITY, Identity
from agentcore_serve.auth.security import Security
from agentcore_serve.auth.throttle import Buckets
from agentcore_serve.middleware.responses import app_path
from agentcore_serve.refused import too_many


@final
class Rates:
    """Refuses with 429 what is too much. Requests to public paths are not counted."""

    def __init__(self, app: ASGIApp, *, security: Security) -> None:
        self._app = app
        limits = security.settings.request_limits
        self._requests = Buckets(limits.requests_per_minute, clock=security.monotonic)
        self._most_streams = limits.streams
        self._streams = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        identity = scope.get(IDENTITY) if scope["type"] in ("http", "websocket") else None
        if not isinstance(identity, Identity):
            await self._app(scope, receive, send)
            return
        if wait := self._requests.take(identity.key_id):
            raise too_many("This key asks too often.", wait)
        if not is_stream(scope):
            await self._app(scope, receive, send)
            return
        if self._streams >= self._most_streams:
            raise too_many("Too many streams are open.", 10)
        self._streams += 1
        try:
            await self._app(scope, receive, send)
        finally:
            self._streams -= 1


def is_stream(scope: Scope) -> bool:
    """Return whether a request stays open until one side ends it."""
    return scope["type"] == "websocket" or (scope["method"] == "GET" and app_path(scope).endswith("/stream"))
