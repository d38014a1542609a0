"""The policy of a view's pages, for the view's own origin, and the page that a ticket opens.

Above: the server of views here, and the one on a server. What runs inside may be hostile: each view has a host of its own.
"""

from __future__ import annotations

import html
from typing import Final

_POLICY: Final = (
    "default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; connect-src 'self' {sockets} data: blob:; frame-ancestors 'self';"
    " base-uri 'self'; form-action 'self'; object-src 'none';"
    " sandbox allow-same-origin allow-scripts allow-forms allow-popups allow-modals allow-downloads allow-pointer-lock"
)
"""Pages from inside speak with the view alone, and not with other views, this machine's servers or the internet; navigation and WebRTC aside."""
PAGE_HEADERS: Final = ((b"X-DNS-Prefetch-Control", b"off"), (b"Referrer-Policy", b"no-referrer"))
"""Headers of all answers of a view, beside the policy."""
OWN_PAGE_POLICY: Final = b"default-src 'none'; frame-ancestors 'self'; base-uri 'none'; form-action 'none'"
"""For pages of ours, which have neither script nor pictures."""


def page_policy(sockets: str) -> bytes:
    """Return the policy of a view's pages.

    Args:
        sockets: The view's origin for WebSockets, as in "ws://127.1.2.3:4000".
    """
    return _POLICY.format(sockets=sockets).encode()


def first_page_link(path: str) -> str:
    """Return the body of a page that goes on to a view's first page.

    It is not a redirect: after one, a browser that came from another page would not send a strict cookie.
    """
    link = html.escape(path, quote=True)
    return f'<meta http-equiv="refresh" content="0;url={link}"><p><a href="{link}">Open the view</a></p>'


def format_page(body: str) -> bytes:
    """Return a small page."""
    return f"<!doctype html><meta charset=utf-8><title>View</title>{body}\n".encode()
