"""httpx's own transport, made so that a call that is cancelled leaves no connection open.

httpcore closes a connection that can't be secured, but forgets one that is given up while it is being secured.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from typing import Any, cast

import anyio
import httpcore
import httpx

__all__ = ["HTTPXTransport"]

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
