"""The headers between a browser or program and what listens on a port inside of a workspace.

What runs inside may be hostile. It never sees the server's keys and cookies, and its answers can set none, read nothing of the server, and
change nothing about its address: their pages are of an origin of their own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final
from urllib.parse import parse_qsl

Headers = list[tuple[bytes, bytes]]

SANDBOX: Final = b"sandbox allow-scripts allow-forms allow-popups allow-modals allow-downloads allow-pointer-lock"
"""For pages: without `allow-same-origin` they have no cookies, and the server refuses what they ask of it."""

_OF_THE_CONNECTION: Final = frozenset(
    {
        b"connection",
        b"keep-alive",
        b"proxy-authenticate",
        b"proxy-authorization",
        b"proxy-connection",
        b"te",
        b"trailer",
        b"upgrade",
    }
)
_KEPT_FROM_INSIDE: Final = _OF_THE_CONNECTION | {
    b"authorization",
    b"cookie",
    b"cookie2",
    b"expect",
    b"forwarded",
    b"host",
    # Both name the server; programs inside that look at them would take its pages for those of a stranger.
    b"origin",
    b"referer",
    b"x-api-key",
    b"x-real-ip",
}
_KEPT_FROM_OUTSIDE: Final = _OF_THE_CONNECTION | {
    b"alt-svc",
    b"clear-site-data",
    b"nel",
    b"public-key-pins",
    b"refresh",
    b"report-to",
    b"reporting-endpoints",
    b"service-worker-allowed",
    b"set-cookie",
    b"set-cookie2",
    b"strict-transport-security",
    b"www-authenticate",
}
_TICKET: Final = b"ticket"
_OWN_ADDRESS: Final = re.compile(
    rb"(?:https?:)?//(?:localhost|127\.0\.0\.1|\[::1\])(?::([0-9]+))?(/.*)?", re.IGNORECASE
)


def request_headers(headers: Iterable[tuple[bytes, bytes]], port: int) -> Headers:
    """Return the headers of a request for what runs inside. It is asked as if from the machine that it runs on."""
    kept = _without(headers, _KEPT_FROM_INSIDE, b"x-forwarded-", b"sec-websocket-")
    return [(b"host", b"localhost:%d" % port), *kept]


def response_headers(headers: Iterable[tuple[bytes, bytes]], port: int, base: str, policy: bytes = SANDBOX) -> Headers:
    """Return the headers of a response for who asked.

    Args:
        headers: The headers that came from inside.
        port: The port inside.
        base: The path of the port on the server, to which redirects lead.
        policy: What its pages may do.
    """
    kept = _without(headers, _KEPT_FROM_OUTSIDE, b"access-control-")
    found = [
        (name, _redirect(value, port, base) if name.lower() in (b"location", b"content-location") else value)
        for name, value in kept
    ]
    # A policy of its own stays as well: a browser keeps them all.
    return [*found, (b"content-security-policy", policy), (b"cache-control", b"no-store")]


def without_ticket(query: bytes) -> bytes:
    """Return a query without the ticket by which a WebSocket shows who asks."""
    return b"&".join(part for part in query.split(b"&") if _TICKET not in {name for name, _ in parse_qsl(part, True)})


def _without(headers: Iterable[tuple[bytes, bytes]], names: frozenset[bytes], *prefixes: bytes) -> Headers:
    listed = [(name, value) for name, value in headers]
    named = {
        part.strip().lower() for name, value in listed if name.lower() == b"connection" for part in value.split(b",")
    }
    dropped = names | (named - {b"content-length", b"transfer-encoding"})
    return [
        (name, value) for name, value in listed if name.lower() not in dropped and not name.lower().startswith(prefixes)
    ]


def _redirect(target: bytes, port: int, base: str) -> bytes:
    own = _OWN_ADDRESS.fullmatch(target)
    if own is not None and int(own[1] or 80) == port:
        return base.encode() + (own[2] or b"/")
    if target.startswith(b"/") and not target.startswith((b"//", b"/\\")):
        return base.encode() + target
    return target
