"""Connections to providers: few per process and event loop, shared by all that ask, closed with the loop."""

from __future__ import annotations

import asyncio  # noqa: TID251 - to know whether it is what runs
import os
import ssl
import threading
import zlib
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterable
from contextlib import suppress
from functools import lru_cache
from heapq import heappop, heappush
from importlib import import_module
from typing import Any, Self, cast
from urllib.request import getproxies

import anyio
import httpcore
import httpx
from anyio.lowlevel import RunVar

from agentcore._threads import Threads

_CLOSE_SECONDS = 5.0
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=8, keepalive_expiry=60)
_PER_POOL = 2
_PER_AIOHTTP = 1000

_threads = Threads("llm_clients", 1)
_turn = threading.Lock()
_tls: ssl.SSLContext | None = None


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


_CLOSE_BROKEN_SECONDS = 1.0


class HTTPXTransport(httpx.AsyncHTTPTransport):
    """A pool of connections straight to their servers.

    httpcore closes a connection whose TLS handshake fails, but forgets one that is cancelled during the handshake.
    """

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
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.AsyncNetworkStream:
        try:
            return await self._inner.start_tls(ssl_context, server_hostname, timeout)
        except BaseException:
            with anyio.move_on_after(_CLOSE_BROKEN_SECONDS, shield=True):
                await self._inner.aclose()
            raise

    def get_extra_info(self, info: str) -> Any:
        return self._inner.get_extra_info(info)


class Answered:
    """An answer whose body is still to be read."""

    def __init__(self, response: httpx.Response, free: list[int], number: int) -> None:
        self.response = response
        self._free = free
        self._number = number
        self._closed = False

    async def aclose(self) -> None:
        """Release the connection if all was read, else close it."""
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
    """Yield the body's pieces; close it with `aclose` when no more are wanted.

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


class _BehindProxies(httpx.AsyncBaseTransport):
    """httpx's own client, which knows for whom the proxies of the environment are, and for whom not."""

    def __init__(self, tls: ssl.SSLContext) -> None:
        try:
            self._client = httpx.AsyncClient(verify=tls, limits=_LIMITS)
        except (ImportError, ValueError) as error:
            raise httpx.UnsupportedProtocol(f"the proxy of the environment can't be used: {error}") from error

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        return await self._client.send(request, stream=True)

    async def aclose(self) -> None:
        await self._client.aclose()


class Clients:
    """Transports of HTTP, each for a few requests at once.

    What a pool of httpx costs per request grows with its connections (it looks at all of them), so a busy loop has many
    small pools rather than one large one. A request goes to the first that has room: few at a time reuse few connections.
    """

    def __init__(self, open_transport: Callable[[], httpx.AsyncBaseTransport], at_once: int) -> None:
        """Make it, without a connection yet.

        Args:
            open_transport: Makes a transport, when one more is needed.
            at_once: How many requests one is given at a time.
        """
        self._open_transport = open_transport
        self._at_once = at_once
        self._transports: list[httpx.AsyncBaseTransport] = []
        self._free: list[int] = []
        """A heap of the numbers of transports that have room, each as often as it has."""
        self._keeping: dict[int, int] = {}
        """How many connections from before a transport may have, by its number."""

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
        self._keeping[number] = min(self._keeping.get(number, 0) + 1, self._at_once)
        return Answered(response, self._free, number)

    async def _send(self, number: int, url: str, headers: dict[str, str], body: bytes) -> httpx.Response:
        transport, request = self._transports[number], post(url, headers, body)
        kept = self._keeping.get(number, 0)
        if kept:
            self._keeping[number] = kept - 1
        try:
            response = await transport.handle_async_request(request)
        except (httpx.ReadError, httpx.WriteError, httpx.RemoteProtocolError):
            if not kept:
                raise
            # The other side closed a connection from before, which it may at any moment, and answered nothing.
            response = await transport.handle_async_request(request)
        response.request = request
        return response

    def _add(self) -> None:
        self._transports.append(self._open_transport())
        for _ in range(self._at_once):
            heappush(self._free, len(self._transports) - 1)

    async def aclose(self) -> None:
        """Close all connections."""
        for transport in self._transports:
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                await transport.aclose()


_open: RunVar[Clients] = RunVar("agentcore.clients")
_keepers: RunVar[AsyncGenerator[None]] = RunVar("agentcore.clients.keeper")


async def clients() -> Clients:
    """Return the clients of this event loop. Proxies and certificates are the environment's."""
    found = _open.get(None)
    if found is not None:
        return found
    # Reading the certificates, and importing aiohttp, takes a tenth of a second.
    made = await _threads.run(make_clients, _on_asyncio())
    found = _open.get(None)
    if found is None:
        found = made
        _open.set(found)
        keeper = _keep(found)
        _keepers.set(keeper)
        await anext(keeper)
    return found


def make_clients(on_asyncio: bool) -> Clients:
    """Choose how requests are sent: no connection is made yet, nor anything that belongs to an event loop."""
    tls = _certificates()
    if any(getproxies().get(scheme) for scheme in ("http", "https", "all")):
        return Clients(lambda: _BehindProxies(tls), _PER_POOL)
    if on_asyncio and os.environ.get("AGENTCORE_HTTP") != "httpx":
        with suppress(ImportError):
            aiohttp_transport = import_module("agentcore.llm.native.aiohttp_transport").AiohttpTransport
            return Clients(lambda: aiohttp_transport(tls), _PER_AIOHTTP)
    return Clients(lambda: HTTPXTransport(tls, _LIMITS, on_asyncio=on_asyncio), _PER_POOL)


def _certificates() -> ssl.SSLContext:
    global _tls  # noqa: PLW0603 - one per process: certificates are read once
    with _turn:
        if _tls is None:
            _tls = httpx.create_ssl_context()
        return _tls


def _on_asyncio() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def _keep(held: Clients) -> AsyncGenerator[None]:
    # An async generator that is still open when an event loop ends is closed by it, in it: the one moment at which the
    # loop's connections can be closed well.
    try:
        yield
    finally:
        await held.aclose()
