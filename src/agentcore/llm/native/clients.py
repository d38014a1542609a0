"""Connections to providers: few per process and event loop, shared by all that ask, closed with the loop."""

from __future__ import annotations

import ssl
import threading
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import suppress
from functools import lru_cache
from heapq import heappop, heappush
from typing import Self

import anyio
import anyio.to_thread
import httpx
from anyio.lowlevel import RunVar

__all__ = ["CONNECT_SECONDS", "Answered", "Clients", "clients", "read_through"]

CONNECT_SECONDS = 30.0
"""How long a connection may take to be made."""

_PER_CLIENT = 2
_CLOSE_SECONDS = 5.0

_tls_turn = threading.Lock()
_tls: ssl.SSLContext | None = None


class Answered:
    """An answer whose body is still to be read."""

    def __init__(self, response: httpx.Response, free: list[int], number: int) -> None:
        self.response = response
        self._free = free
        self._number = number
        self._closed = False

    async def aclose(self) -> None:
        """Give the connection back if all was read, else close it."""
        if self._closed:
            return
        self._closed = True
        try:
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                await self.response.aclose()
        finally:
            heappush(self._free, self._number)


_PACKED = frozenset({"gzip", "x-gzip", "deflate"})


def _unpacked(unpack: Callable[[bytes], bytes], data: bytes) -> bytes:
    try:
        return unpack(data)
    except zlib.error as error:
        raise httpx.DecodingError(str(error)) from error


async def read_through(response: httpx.Response) -> AsyncGenerator[bytes]:
    """Give the body's pieces; to be closed with `aclose` when no more are wanted.

    httpx reads through several async generators inside each other, and closing the outermost leaves the inner ones to
    the garbage collector. A read that is cancelled unwinds them all.
    """
    chunks = response.aiter_raw()
    # Unpacked here and not by httpx: what can't be unpacked would leave its generators open.
    packed = response.headers.get("content-encoding", "").strip().lower() in _PACKED
    unpack = zlib.decompressobj(zlib.MAX_WBITS | 32).decompress if packed else None
    ended = False
    try:
        async for chunk in chunks:
            data = chunk if unpack is None else _unpacked(unpack, chunk)
            if data:
                yield data
        ended = True
    finally:
        if not ended:
            with anyio.CancelScope() as scope, suppress(StopAsyncIteration, httpx.HTTPError, httpx.StreamError):
                scope.cancel()
                while True:
                    await anext(chunks)  # noqa: ASYNC102 - it is cancelled already: that is what ends it


class _Body(httpx.AsyncByteStream):
    """A request's body. httpx's own is an async generator, which a cancelled request leaves to the garbage collector."""

    def __init__(self, data: bytes) -> None:
        self._data = data

    def __aiter__(self) -> AsyncIterator[bytes]:
        return _Once(self._data)


class _Once:
    def __init__(self, data: bytes) -> None:
        self._data: bytes | None = data

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        data, self._data = self._data, None
        if data is None:
            raise StopAsyncIteration
        return data


_TIMEOUT = httpx.Timeout(None, connect=CONNECT_SECONDS).as_dict()
_HEADERS = {"accept": "*/*", "accept-encoding": "gzip, deflate", "user-agent": "agentcore"}


@lru_cache(maxsize=256)
def _address(url: str) -> httpx.URL:
    return httpx.URL(url)


def _request(url: str, headers: dict[str, str], body: bytes) -> httpx.Request:
    address = _address(url)
    own = {"host": address.netloc.decode("ascii"), "content-length": str(len(body))}
    return httpx.Request(
        "POST", address, headers=_HEADERS | own | headers, stream=_Body(body), extensions={"timeout": _TIMEOUT}
    )


class Clients:
    """Clients of HTTP, each with a few connections.

    What a client's pool costs per request grows with its connections (it looks at all of them), so a busy loop has many
    small pools rather than one large one. A request goes to the first that has room: few at a time reuse few connections.
    """

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._tls = tls
        self._clients: list[httpx.AsyncClient] = []
        self._free: list[int] = []
        """A heap of the numbers of clients that have room, each as often as it has."""
        self._keeping: set[int] = set()
        """The numbers of clients that may have connections from before."""

    async def post(self, url: str, headers: dict[str, str], body: bytes) -> Answered:
        """Post a body and give the answer as soon as its head is there, to be closed by the caller.

        Raises:
            httpx.TransportError: No answer came, or the connection broke.
        """
        if not self._free:
            self._add()
        number = heappop(self._free)
        try:
            response = await self._send(number, url, headers, body)
        except BaseException:
            heappush(self._free, number)
            raise
        self._keeping.add(number)
        return Answered(response, self._free, number)

    async def _send(self, number: int, url: str, headers: dict[str, str], body: bytes) -> httpx.Response:
        client = self._clients[number]
        try:
            return await client.send(_request(url, headers, body), stream=True)
        except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError):
            if number not in self._keeping:
                raise
            # The other side closed a connection from before, which it may at any moment, and answered nothing.
            self._keeping.discard(number)
            return await client.send(_request(url, headers, body), stream=True)

    def _add(self) -> None:
        self._clients.append(
            httpx.AsyncClient(
                verify=self._tls,
                limits=httpx.Limits(max_connections=None, max_keepalive_connections=8, keepalive_expiry=60),
            )
        )
        for _ in range(_PER_CLIENT):
            heappush(self._free, len(self._clients) - 1)

    async def aclose(self) -> None:
        """Close all connections."""
        for client in self._clients:
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                await client.aclose()


_open: RunVar[Clients] = RunVar("agentcore.clients")
_keepers: RunVar[AsyncGenerator[None]] = RunVar("agentcore.clients.keeper")


async def clients() -> Clients:
    """Give the clients of this event loop. Proxies and certificates are the environment's."""
    found = _open.get(None)
    if found is not None:
        return found
    # Reading the certificates takes tens of milliseconds.
    tls = _tls or await anyio.to_thread.run_sync(_make_tls, limiter=anyio.CapacityLimiter(1))
    found = _open.get(None)
    if found is None:
        found = Clients(tls)
        _open.set(found)
        keeper = _keep(found)
        _keepers.set(keeper)
        await anext(keeper)
    return found


def _make_tls() -> ssl.SSLContext:
    global _tls  # noqa: PLW0603 - one per process: certificates are read once
    with _tls_turn:
        if _tls is None:
            _tls = httpx.create_ssl_context()
        return _tls


async def _keep(held: Clients) -> AsyncGenerator[None]:
    # An async generator that is still open when an event loop ends is closed by it, in it: the one moment at which the
    # loop's connections can be closed well.
    try:
        yield
    finally:
        await held.aclose()
