"""Bodies: how large, of which type, and how long the server waits for more of one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, Literal, final

import anyio
from starlette.datastructures import Headers
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from agentcore_serve.limits import RequestLimits
from agentcore_serve.middleware.responses import app_path
from agentcore_serve.refused import Refused

BodyKind = Literal["json", "message", "file"]
"""JSON; JSON that may hold images; the bytes of a file, of any type."""

_FILE: Final = re.compile(r"/api/v1/workspaces/[^/]+/(files|folders|tar|archive|ports|views)(/.*)?")
_MESSAGE: Final = re.compile(r"/api/v1/conversations(/[^/]+(/(messages|run|ask|questions/[^/]+|asks/[^/]+|agent))?)?")
_JSON: Final = re.compile(r"application/([a-z0-9.-]+\+)?json\s*(;.*)?", re.IGNORECASE)

_PROGRESS: Final = 1024
"""Bytes that count as progress: one each half minute would hold a connection for ever."""


def body_kind(method: str, path: str) -> BodyKind:
    """Return which bodies an address takes."""
    if method in ("PUT", "POST", "PATCH") and _FILE.fullmatch(path):
        return "file"
    return "message" if _MESSAGE.fullmatch(path) else "json"


@final
class Bodies:
    """Bounds bodies. One is read by the app, piece by piece; what is too much is refused while it comes."""

    def __init__(
        self,
        app: ASGIApp,
        *,
        limits: RequestLimits,
        kind_of: Callable[[str, str], BodyKind] = body_kind,
        clock: Callable[[], float] = anyio.current_time,
    ) -> None:
        self._app = app
        self._limits = limits
        self._kind_of = kind_of
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] == "http":
            receive = self._bound(scope, receive)
        await self._app(scope, receive, send)

    def _bound(self, scope: Scope, receive: Receive) -> Receive:
        headers = Headers(scope=scope)
        kind = self._kind_of(scope["method"], app_path(scope))
        wrong_type = _check_type(headers, kind)
        if _announces_body(headers):
            if wrong_type is not None:
                raise wrong_type
        elif scope.get("http_version", "1.1").startswith("1"):
            return receive  # there is none: HTTP/1 announces each
        most = {
            "json": self._limits.json_bytes,
            "message": self._limits.message_bytes,
            "file": self._limits.file_bytes,
        }[kind]
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > most:
            raise _too_large(most)
        return _BoundedBody(receive, most, self._limits.body_stall_seconds, wrong_type, self._clock).receive


@final
class _BoundedBody:
    """Receives one body."""

    def __init__(
        self, receive: Receive, most: int, stall: float, wrong_type: Refused | None, clock: Callable[[], float]
    ) -> None:
        self._receive = receive
        self._most = most
        self._stall = stall
        self._wrong_type = wrong_type
        self._clock = clock
        self._read = 0
        self._ended = False
        self._since_progress = 0
        self._patience = stall

    async def receive(self) -> Message:
        """Receive the next piece, or after the end what the server says next."""
        if self._ended:
            return await self._receive()
        # Only waiting counts: an app that writes to a slow disk between two pieces is not the sender's fault.
        start = self._clock()
        with anyio.move_on_after(self._patience) as waiting:
            message = await self._receive()
            self._count(message, self._clock() - start)
            return message
        assert waiting.cancelled_caught
        raise Refused(
            408,
            "body_stalled",
            f"No more of the body came for {self._stall:g} seconds.",
            headers={"Connection": "close"},
        )

    def _count(self, message: Message, waited: float) -> None:
        self._ended = message["type"] != "http.request" or not message.get("more_body", False)
        size = len(message.get("body", b""))
        if size and self._wrong_type is not None:
            raise self._wrong_type
        self._read += size
        if self._read > self._most:
            raise _too_large(self._most)
        self._since_progress += size
        self._patience -= waited
        if self._since_progress >= _PROGRESS:
            self._since_progress, self._patience = 0, self._stall


def _check_type(headers: Headers, kind: BodyKind) -> Refused | None:
    if headers.get("content-encoding", "identity") != "identity":
        return Refused(415, "unsupported_media_type", "Send the body as it is, without a Content-Encoding.")
    if kind == "file" or _JSON.fullmatch(headers.get("content-type", "")):
        return None
    return Refused(
        415, "unsupported_media_type", "This address takes JSON: send it with `Content-Type: application/json`."
    )


def _announces_body(headers: Headers) -> bool:
    return "transfer-encoding" in headers or headers.get("content-length", "0") != "0"


def _too_large(most: int) -> Refused:
    return Refused(
        413,
        "body_too_large",
        f"The body is larger than {most:,} bytes, which is the most that this address takes.",
        headers={"Connection": "close"},
    )
