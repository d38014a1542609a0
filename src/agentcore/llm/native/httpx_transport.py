"""Requests and connections of httpx, made so that a cancelled call leaves nothing open.

httpcore closes a connection whose TLS handshake fails, but forgets one that is cancelled during the handshake.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Iterable
from functools import lru_cache
from typing import Any, Self, cast

import anyio
import httpcore
import httpx

CONNECT_SECONDS = 30.0
"""How long a connection may take to be made."""

_TIMEOUT = httpx.Timeout(None, connect=CONNECT_SECONDS).as_dict()
_HEADERS = {"accept": "*/*", "accept-encoding": "gzip, deflate", "user-agent": "agentcore"}
_PIECE = 1024 * 1024


class Body(httpx.AsyncByteStream):
    """A request's body. httpx's own is an async generator, which a cancelled request leaves to the garbage collector."""

    def __init__(self, data: bytes) -> None:
        self.data = data

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Pieces(self.data)


class _Pieces:
    """A body of many megabytes is sent in turns with what else the event loop has to do."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._at >= len(self._data):
            raise StopAsyncIteration
        piece = self._data[self._at : self._at + _PIECE]
        self._at += _PIECE
        return piece


@lru_cache(maxsize=256)
def _address(url: str) -> tuple[httpx.URL, dict[str, str]]:
    """Return an address and its headers. A name and a password in it become a header."""
    try:
        address = httpx.URL(url)
        address.host.encode("idna")
    except UnicodeError as error:
        raise httpx.InvalidURL(str(error)) from None
    if address.scheme not in {"http", "https"} or not address.host:
        raise httpx.InvalidURL("it begins with neither http:// nor https://")
    if not 0 < (address.port or 80) < 65536:
        raise httpx.InvalidURL(f"there is no port {address.port}")
    if not address.userinfo:
        return address, {}
    who = next(httpx.BasicAuth(address.username, address.password).auth_flow(httpx.Request("POST", address)))
    return address.copy_with(userinfo=b""), {"authorization": who.headers["authorization"]}


def post(url: str, headers: dict[str, str], body: bytes) -> httpx.Request:
    """Make a request that posts a body. The names of the headers are in lower case, so that none is there twice.

    Raises:
        httpx.InvalidURL: It is no address.
    """
    address, own = _address(url)
    return httpx.Request(
        "POST",
        address,
        headers={
            "host": address.netloc.decode("ascii"),
            **_HEADERS,
            **headers,
            **own,
            "content-length": str(len(body)),
        },
        stream=Body(body),
        extensions={"timeout": _TIMEOUT},
    )


_CLOSE_SECONDS = 1.0


class HTTPXTransport(httpx.AsyncHTTPTransport):
    """A pool of connections straight to their servers."""

    def __init__(self, tls: ssl.SSLContext, limits: httpx.Limits, *, on_asyncio: bool) -> None:
        super().__init__(verify=tls, limits=limits)
        backend = httpcore.AnyIOBackend if on_asyncio else httpcore.TrioBackend
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=tls,
            max_connections=limits.max_connections,
            max_keepalive_connections=limits.max_keepalive_connections,
            keepalive_expiry=limits.keepalive_expiry,
            network_backend=_Network(cast("httpcore.AsyncNetworkBackend", backend())),
        )


class _Network(httpcore.AsyncNetworkBackend):
    def __init__(self, inner: httpcore.AsyncNetworkBackend) -> None:
        self._inner = inner

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        return _Plain(await self._inner.connect_tcp(host, port, timeout, local_address, socket_options))

    async def sleep(self, seconds: float) -> None:
        await self._inner.sleep(seconds)


class _Plain(httpcore.AsyncNetworkStream):
    """A connection that is not secured, or not yet."""

    def __init__(self, inner: httpcore.AsyncNetworkStream) -> None:
        self._inner = inner

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        return await self._inner.read(max_bytes, timeout)

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        await self._inner.write(buffer, timeout)

    async def aclose(self) -> None:
        await self._inner.aclose()

    async def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            return await self._inner.start_tls(ssl_context, server_hostname, timeout)
        except BaseException:
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                await self._inner.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)
