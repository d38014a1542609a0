"""Which names and pages the server answers: its own.

A page of another site can have a browser call this server, also one on loopback: by its address, or by a name that the site
points at it (DNS rebinding). Such a call carries that site in `Origin`, or that name in `Host`.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable, Collection
from typing import Final, final
from urllib.parse import urlsplit

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from agentcore_serve.auth.exposure import is_loopback, is_wildcard
from agentcore_serve.refused import Refused

_SCHEMES: Final = {"http": "http", "https": "https", "ws": "http", "wss": "https"}
_PORTS: Final = {"http": 80, "https": 443}


@final
class OwnHosts:
    """Refuses other hosts and other origins. There is no CORS.

    Args:
        app: The app.
        bound: The host that the server listens on.
        allowed: Other names of it.
        is_view: Returns whether a name is that of a view's host.
    """

    def __init__(
        self, app: ASGIApp, *, bound: str, allowed: Collection[str] = (), is_view: Callable[[str], bool] | None = None
    ) -> None:
        self._app = app
        self._is_view = is_view
        # A page is never served from a bare address that is not its own, so any address will do where all are bound.
        self._any_address = is_wildcard(bound)
        # A name may come with a port, which does not matter here; an IPv6 address has more colons.
        names = (name.partition(":")[0] if name.count(":") == 1 else name for name in (bound, *allowed))
        self._names = {name.lower().strip("[]") for name in names}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on."""
        if scope["type"] in ("http", "websocket"):
            headers = Headers(scope=scope)
            scheme = _SCHEMES.get(scope.get("scheme", "http"), "http")
            hosts = headers.getlist("host")
            own = _split(f"{scheme}://{hosts[0]}") if len(hosts) == 1 else None
            if own is None or not self._is_ours(own[1]):
                raise Refused(
                    400,
                    "host_not_allowed",
                    "The server does not answer to this name. If it is one of its own, start it with --allowed-host NAME.",
                )
            origins = headers.getlist("origin")
            if origins and [_split(origin) for origin in origins] != [own]:
                raise Refused(
                    403,
                    "origin_not_allowed",
                    "Pages of other sites cannot use this server: its own page, or a program, can.",
                )
        await self._app(scope, receive, send)

    def _is_ours(self, name: str) -> bool:
        if name in self._names or is_loopback(name) or (self._is_view is not None and self._is_view(name)):
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return self._any_address


def is_same_origin(scope: Scope) -> bool:
    """Return whether a browser says that a page of this server, or the address bar, makes this request."""
    headers = Headers(scope=scope)
    # An Origin that is there was compared by `OwnHosts`.
    return "origin" in headers or headers.get("sec-fetch-site") in ("same-origin", "none")


def _split(origin: str) -> tuple[str, str, int] | None:
    """Return scheme, host and port of an origin, or None where it is none."""
    try:
        parts = urlsplit(origin)
        port = parts.port
    except ValueError:
        return None
    if parts.scheme not in _PORTS or not parts.hostname or parts.path or parts.query or parts.fragment or "@" in origin:
        return None
    return parts.scheme, parts.hostname, port if port is not None else _PORTS[parts.scheme]
