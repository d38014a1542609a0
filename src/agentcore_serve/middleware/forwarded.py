"""Behind a proxy: the client's address, scheme and host are those that the proxy names."""

from __future__ import annotations

from typing import Final, final

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

_SECURE: Final = {"http": "https", "websocket": "wss"}


@final
class Forwarded:
    """Believes the nearest proxy: of each header its last value, which is the one that this proxy added.

    Hypercorn's own ProxyFixMiddleware copies the scope with all that is in it, and so the app's state.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] in _SECURE:
            headers = Headers(scope=scope)
            if address := _last(headers, "x-forwarded-for"):
                scope["client"] = (address.strip("[]"), 0)
            is_plain = _last(headers, "x-forwarded-proto") in ("http", "ws")
            scope["scheme"] = {"http": "http", "websocket": "ws"}[scope["type"]] if is_plain else _SECURE[scope["type"]]
            if host := _last(headers, "x-forwarded-host"):
                others = [(name, value) for name, value in scope["headers"] if name != b"host"]
                scope["headers"] = [*others, (b"host", host.encode("latin-1"))]
        await self._app(scope, receive, send)


def _last(headers: Headers, name: str) -> str:
    values = headers.getlist(name)
    return values[-1].rpartition(",")[2].strip() if values else ""
