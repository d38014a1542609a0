"""Which requests of a browser reach a view: those of its own page, in a session that a ticket has opened.

Above: the server of views here, and the one on a server. It looks at heads alone. Other pages, programs and users of this machine can reach the port; so can pages whose
name was made to lead to it.
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple

from agentcore_sandbox.network.http_head import BadMessage, Headers, read_framing, split_head

_REQUEST_LINE: Final = re.compile(rb"([A-Z]{1,16}) (/[\x21-\x7e]*) (HTTP/1\.[01])")
_TICKET_PATH: Final = re.compile(rb"/([A-Za-z0-9_-]{43})/")


class PageRequest(NamedTuple):
    """The head of a browser's request."""

    method: bytes
    target: bytes
    """The path and query."""
    headers: Headers
    length: int | None
    """How many bytes the body has; None: it is in chunks."""

    def header(self, name: bytes) -> bytes | None:
        """Return the value of a header; None if there is none, or more than one."""
        values = [value for each, value in self.headers if each.lower() == name]
        return values[0] if len(values) == 1 else None

    def has(self, name: bytes) -> bool:
        """Return True if there is a header of this name."""
        return any(each.lower() == name for each, _ in self.headers)

    @property
    def is_websocket(self) -> bool:
        """True if it asks for a WebSocket."""
        return self.has(b"upgrade")

    @property
    def ticket(self) -> str | None:
        """The ticket, if this is the address of one."""
        matched = _TICKET_PATH.fullmatch(self.target)
        return matched[1].decode() if matched and self.method == b"GET" and not self.is_websocket else None

    def cookie(self, name: str) -> str:
        """Return the value of a cookie; empty if there is none."""
        for pair in b";".join(value for each, value in self.headers if each.lower() == b"cookie").split(b";"):
            found, _, value = pair.strip().partition(b"=")
            if found == name.encode():
                return value.decode("ascii", "replace")
        return ""


class GateRefusal(NamedTuple):
    """Why a request is not passed on."""

    status: int
    text: str
    """For the person at the browser."""


def parse_page_request(head: bytes) -> PageRequest:
    """Parse the head of a request, without the empty line at its end.

    Raises:
        BadMessage: It is not one, or can be read in more than one way.
    """
    first, headers = split_head(head)
    matched = _REQUEST_LINE.fullmatch(first)
    if matched is None:
        raise BadMessage("The first line is not that of a request of HTTP/1.1.")
    is_chunked, length = read_framing(headers, matched[3])
    request = PageRequest(matched[1], matched[2], headers, None if is_chunked else length)
    if request.is_websocket and not (
        request.method == b"GET"
        and (request.header(b"upgrade") or b"").lower() == b"websocket"
        and not (is_chunked or length)
    ):
        raise BadMessage("Only a WebSocket can be changed to.")
    return request


def refuse_host(request: PageRequest, authority: bytes) -> GateRefusal | None:
    """Return why a request is not for this server; None if it is. A page whose name was made to lead here names that one."""
    if request.header(b"host") != authority:
        return GateRefusal(421, f"This is {authority.decode()}, and was asked for as something else.")
    return None


def refuse_ticket_use(request: PageRequest) -> GateRefusal | None:
    """Return why a ticket is not taken, and not spent either; None if it is."""
    # What looks at an address before a person does, or fetches it from within another page.
    if (
        request.has(b"purpose")
        or request.has(b"sec-purpose")
        or (request.header(b"sec-fetch-mode") or b"navigate") != b"navigate"
    ):
        return GateRefusal(403, "Open this address in a browser's tab.")
    return None


def refuse_stranger(request: PageRequest, own: bytes) -> GateRefusal | None:
    """Return why a request with a session's cookie is not passed on: a browser also sends that along for other pages. None if it is.

    Args:
        request: The request.
        own: The view's origin.
    """
    origin = request.header(b"origin")
    if request.has(b"origin") and origin != own:
        return GateRefusal(403, "Another page asked for this.")
    if request.is_websocket and origin is None:
        return GateRefusal(403, "A WebSocket has to say which page it belongs to.")
    if (request.header(b"sec-fetch-site") or b"same-origin") not in (b"same-origin", b"none"):
        return GateRefusal(403, "Another page asked for this.")
    if request.has(b"service-worker"):
        # It would stay in the browser, and serve whatever listens at this address one day.
        return GateRefusal(403, "A view cannot have a service worker.")
    return None
