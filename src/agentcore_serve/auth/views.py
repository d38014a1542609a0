"""Views at hosts of their own: which host is whose, and who may look.

Above: the middleware, and the routes of views. Below: `Tickets`. What a view shows comes from inside of a box and may be hostile. So its pages
are of an origin that nothing else of the server has: they cannot read its pages, and a browser never sends them its cookie.
"""

from __future__ import annotations

import hashlib
import re
import secrets
import time
from collections.abc import Callable
from typing import Final, final

from starlette.datastructures import Headers
from starlette.types import Scope

from agentcore_sandbox.views import Tickets, WebView
from agentcore_sandbox.views.gate import PageRequest, refuse_stranger
from agentcore_serve.auth.exposure import is_loopback
from agentcore_serve.refused import Refused, not_authenticated

COOKIE: Final = "agentcore_view"
_LOCAL: Final = "localhost"
"""Browsers take every name below it for this machine."""
_PATH: Final = re.compile(r"/api/v1/workspaces/([^/]+)/views/([^/]+)(/.*)?", re.DOTALL)
_LABEL: Final = re.compile(r"view-[0-9a-f]{16}")
_SCHEMES: Final = {"ws": "http", "wss": "https"}
_MOST: Final = 1_000
"""How many views have tickets and sessions at once; the oldest gives way."""


@final
class ViewSessions:
    """Tickets and sessions of the views of one server, in memory: a restart voids them.

    Args:
        host: The host below which each view has one of its own, besides those below localhost.
        clock: A clock that never goes back, in seconds.
    """

    def __init__(self, host: str | None = None, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._host = host
        self._clock = clock
        self._secret = secrets.token_hex(16)
        self._doors: dict[tuple[str, str], _Door] = {}

    def host_of(self, scope: Scope, workspace: str, view: str) -> str | None:
        """Return the host and port of a view, for who asks as this request does; None where the server has no host for views."""
        name, port = _split_host(scope)
        below = _LOCAL if is_loopback(name) else self._host
        return None if below is None else f"{self._label(workspace, view)}.{below}{port}"

    def is_host(self, name: str) -> bool:
        """Return whether this is the name of a view's host, of whichever view."""
        label, _, below = name.lower().partition(".")
        return _LABEL.fullmatch(label) is not None and below in (_LOCAL, self._host)

    def is_at_host(self, scope: Scope) -> bool:
        """Return whether a request is addressed to the host of a view."""
        return self.is_host(_split_host(scope)[0])

    def issue(self, key_id: str, workspace: str, name: str, view: WebView) -> str:
        """Return a new ticket for a view, which stands for this key."""
        place = workspace, name
        while len(self._doors) >= _MOST and place not in self._doors:
            del self._doors[next(iter(self._doors))]
        door = self._doors.setdefault(place, _Door())
        door.view = view
        return door.keys.setdefault(key_id, Tickets(self._clock)).issue()

    def enter(self, scope: Scope, workspace: str, name: str, ticket: str) -> tuple[WebView, str | None]:
        """Take a ticket, and return the view and the key of a new session; None if this browser has one already.

        Raises:
            Refused: The ticket is wrong, used or older than a minute (401), or this is not the view's host (404).
        """
        if not self.is_at_host(scope):
            raise Refused(
                404, "view_not_here", "A view is looked at under a host of its own: GET .../views returns it."
            )
        door = self._doors.get((workspace, name))
        for tickets in () if door is None else door.keys.values():
            if (session := tickets.exchange(ticket)) is not None:
                assert door is not None
                return door.view, session
        if door is None or self._key_of(scope, workspace, name) is None:
            raise not_authenticated("This address was used already, or is older than a minute. Ask for a new one.")
        return door.view, None

    def admit(self, scope: Scope, path: str) -> str | None:
        """Return the id of the key whose session a request to the host of a view belongs to; None for the page that opens one.

        Raises:
            Refused: There is no such session (401), another page asks (403), or it is not for this view (404).
        """
        matched = _PATH.fullmatch(path)
        if matched is None or _split_host(scope)[0].partition(".")[0] != self._label(matched[1], matched[2]):
            raise Refused(
                404, "view_not_here", "There is nothing at this address but one view. Ask for a new address of it."
            )
        if matched[3] is None:
            return None
        key_id = self._key_of(scope, matched[1], matched[2])
        if key_id is None:
            raise not_authenticated("Nobody has opened this view in this browser. Ask for a new address of it.")
        scheme = _SCHEMES.get(scope["scheme"], scope["scheme"])
        refusal = refuse_stranger(page_request(scope), f"{scheme}://{Headers(scope=scope)['host']}".encode())
        if refusal is not None:
            raise Refused(refusal.status, "origin_not_allowed", refusal.text)
        return key_id

    def _key_of(self, scope: Scope, workspace: str, name: str) -> str | None:
        door = self._doors.get((workspace, name)) or _Door()
        sessions = _cookies(scope)
        for key_id, tickets in door.keys.items():
            if any(tickets.has_session(session) for session in sessions):
                return key_id
        return None

    def _label(self, workspace: str, name: str) -> str:
        # Not the same after a restart: what a page has kept in the browser is never that of another view.
        return f"view-{hashlib.sha256(f'{self._secret}/{workspace}/{name}'.encode()).hexdigest()[:16]}"


@final
class _Door:
    """One view, and who may look."""

    view: WebView

    def __init__(self) -> None:
        self.keys: dict[str, Tickets] = {}


def page_request(scope: Scope) -> PageRequest:
    """Return the head of a browser's request, as the views of a workspace here see it."""
    # A WebSocket over HTTP/2 has no such header.
    upgrade = [(b"upgrade", b"websocket")] if scope["type"] == "websocket" else []
    return PageRequest(scope.get("method", "GET").encode(), b"/", (*scope["headers"], *upgrade), None)


def _split_host(scope: Scope) -> tuple[str, str]:
    """Return the name and the port of the host that is asked, the port with its colon."""
    host = Headers(scope=scope).get("host", "").lower()
    matched = re.fullmatch(r"(.*?)(:[0-9]*)?", host)
    assert matched is not None
    return matched[1], matched[2] or ""


def _cookies(scope: Scope) -> list[str]:
    """Return the values of the cookie: a page of a neighbouring host may have set another one of the same name."""
    pairs = (part.strip().partition("=") for each in Headers(scope=scope).getlist("cookie") for part in each.split(";"))
    return [value for name, _, value in pairs if name == COOKIE]
