"""How long headers and paths may be. Servers have bounds of their own, which differ."""

from __future__ import annotations

from typing import final

from starlette.types import ASGIApp, Receive, Scope, Send

from agentcore_serve.refused import Refused


@final
class HeaderSize:
    """Refuses headers and paths that are too long, before anything looks into them."""

    def __init__(self, app: ASGIApp, *, most: int) -> None:
        self._app = app
        self._most = most

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] in ("http", "websocket"):
            # Each line has ": " and a line break besides.
            if sum(len(name) + len(value) + 4 for name, value in scope["headers"]) > self._most:
                raise Refused(
                    431, "headers_too_large", f"The headers are larger than {self._most:,} bytes.", headers=_CLOSE
                )
            if len(scope.get("raw_path") or scope["path"].encode()) + len(scope.get("query_string", b"")) > self._most:
                raise Refused(414, "path_too_long", f"The path is longer than {self._most:,} bytes.", headers=_CLOSE)
        await self._app(scope, receive, send)


_CLOSE = {"Connection": "close"}
