"""Each request has an id, and a line in the access log: never its query, its body or its key."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from typing import Final, final
from urllib.parse import quote

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentcore.ids import new_id
from agentcore.logs import get_logger
from agentcore_serve.auth.identity import IDENTITY, Identity
from agentcore_serve.auth.keys import mask_keys
from agentcore_serve.middleware.responses import REQUEST_ID

_logger = get_logger(__name__)

_ID: Final = re.compile(r"[A-Za-z0-9._-]{1,64}")

Observe = Callable[[Scope, int, float], None]
"""Called after each request with its scope, status and seconds: for metrics."""


@final
class RequestLog:
    """Mints ids and writes the access log."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        behind_proxy: bool = False,
        observe: Observe | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._app = app
        self._behind_proxy = behind_proxy
        self._observe = observe
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] not in ("http", "websocket"):
            await self._app(scope, receive, send)
            return
        request_id = scope[REQUEST_ID] = self._id_for(scope)
        start = self._clock()
        status = 0

        async def watch(message: Message) -> None:
            nonlocal status
            match message["type"]:
                case "http.response.start" | "websocket.http.response.start":
                    status = message["status"]
                    MutableHeaders(scope=message)["X-Request-ID"] = request_id
                case "websocket.accept":
                    status = 101
                case "websocket.close":
                    status = status or 403
                case _:
                    pass
            await send(message)

        try:
            await self._app(scope, receive, watch)
        finally:
            # Without an answer: the client left, or is left by a server that ends.
            self._log(scope, status or 499, self._clock() - start)

    def _id_for(self, scope: Scope) -> str:
        forwarded = Headers(scope=scope).get("x-request-id", "") if self._behind_proxy else ""
        return forwarded if _ID.fullmatch(forwarded) else new_id("req")

    def _log(self, scope: Scope, status: int, seconds: float) -> None:
        identity = scope.get(IDENTITY)
        _logger.info(
            "request",
            method=scope.get("method", "WEBSOCKET"),
            path=shown_path(scope),
            status=status,
            ms=round(seconds * 1000, 1),
            key=identity.key_id if isinstance(identity, Identity) else None,
            request_id=scope[REQUEST_ID],
        )
        if self._observe is not None:
            self._observe(scope, status, seconds)


def shown_path(scope: Scope) -> str:
    """Return a path for logs: without the query, on one line, and without keys that somebody put there."""
    return mask_keys(quote(scope["path"][:500], safe="/:@!$&'()*+,;=~-._", errors="replace"))
