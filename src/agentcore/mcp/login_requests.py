"""The requests of a login: what mcp's provider for OAuth sends beside the requests that it is for, within bounds.

Above: `oauth.py` and `login.py`.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from contextvars import ContextVar
from typing import Final

import httpx2
from anyio.to_thread import run_sync

import agentcore

_REQUEST_SECONDS: Final = 15.0
_MOST_BYTES: Final = 1024**2
_LONGEST: Final = 300
_LOOPBACK: Final = frozenset({"localhost", "127.0.0.1", "::1"})
_FRAMING: Final = frozenset({"content-encoding", "content-length", "transfer-encoding"})


class LoginFault(Exception):
    """A login that cannot be had, or used; why, in words that follow a colon."""


@asynccontextmanager
async def auth_client() -> AsyncGenerator[httpx2.AsyncClient]:
    """Open a client for the requests of a login."""
    # A thread: it reads the certificates.
    async with await run_sync(httpx2.AsyncClient) as client:
        yield client


async def exchange(
    client: httpx2.AsyncClient, request: httpx2.Request, url: str, *, head_only: bool = False
) -> httpx2.Response:
    """Send a request of a login to the server at `url`, and return the whole answer, within bounds.

    Raises:
        LoginFault: It would go unencrypted to another machine than that of the server, or the answer is too large.
        httpx2.HTTPError: There was no answer.
    """
    check_encrypted(request.url, url)
    request.headers.setdefault("User-Agent", f"agentcore/{agentcore.__version__}")
    request.headers["Accept-Encoding"] = "identity"  # a few bytes could become any number
    request.extensions = {**request.extensions, "timeout": httpx2.Timeout(_REQUEST_SECONDS).as_dict()}
    response = await client.send(request, stream=True, auth=None, follow_redirects=False)
    content = bytearray()
    try:
        if response.headers.get("content-encoding", "identity") != "identity" and not head_only:
            raise LoginFault(f"{request.url.host} compresses its answers, though it was asked not to")
        if not head_only:
            async for piece in response.aiter_raw():
                content += piece
                if len(content) > _MOST_BYTES:
                    raise LoginFault(f"{request.url.host} sent an answer of more than {_MOST_BYTES // 1024**2} MiB")
    finally:
        await response.aclose()
    kept = [pair for pair in response.headers.multi_items() if pair[0].lower() not in _FRAMING]
    whole = httpx2.Response(response.status_code, headers=kept, content=bytes(content), request=request)
    whole.next_request = response.next_request
    return whole


def check_encrypted(target: httpx2.URL, url: str) -> None:
    """Refuse an address without https, unless it is on this machine or of the server itself, whose address is the user's.

    Raises:
        LoginFault: It is one.
    """
    if target.scheme != "https" and target.host not in _LOOPBACK and origin(target) != origin(httpx2.URL(url)):
        raise LoginFault(f"its login would go unencrypted to {target.host}")


def needs_https(url: str) -> None:
    """Refuse the address of a server that tokens would go to unencrypted.

    Raises:
        LoginFault: It is one.
    """
    address = httpx2.URL(url)
    if address.scheme != "https" and address.host not in _LOOPBACK:
        raise LoginFault("its tokens would go unencrypted. Write an address that begins with https://")


def origin(url: httpx2.URL) -> tuple[str, str, int | None]:
    """Return the scheme, host and port of an address; the default port is None."""
    return url.scheme, url.host, url.port


def describe(error: Exception) -> str:
    """Return what mcp's provider says of a failure, without the content of an answer that could not be read."""
    text = str(error)
    if text.startswith("Invalid "):
        text = text.partition("\n")[0]
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]} ..."


_is_quiet: ContextVar[bool] = ContextVar("agentcore_mcp_login", default=False)


@contextmanager
def quiet() -> Generator[None]:
    """Keep mcp's provider from logging inside: what it logs may hold tokens, and who calls it says what went wrong."""
    before = _is_quiet.get()
    _is_quiet.set(True)
    try:
        yield
    finally:
        _is_quiet.set(before)


def _is_loud(record: logging.LogRecord) -> bool:
    del record
    return not _is_quiet.get()


logging.getLogger("mcp.client.auth.oauth2").addFilter(_is_loud)
