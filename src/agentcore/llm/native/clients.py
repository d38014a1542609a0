"""Connections to providers: few per process and event loop, shared by all that ask, closed with the loop."""

from __future__ import annotations

import asyncio  # noqa: TID251 - to know whether it is what runs
import os
import ssl
import threading
import zlib
from collections.abc import AsyncGenerator, Callable
from contextlib import suppress
from heapq import heappop, heappush
from importlib import import_module
from urllib.request import getproxies

import anyio
import anyio.to_thread
import httpx
from anyio.lowlevel import RunVar

from agentcore.llm.native.httpx_transport import HTTPXTransport, post

_CLOSE_SECONDS = 5.0
_LIMITS = httpx.Limits(max_connections=None, max_keepalive_connections=8, keepalive_expiry=60)
_PER_POOL = 2
_PER_AIOHTTP = 1000

_turn = threading.Lock()
_tls: ssl.SSLContext | None = None


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
    made = await anyio.to_thread.run_sync(make_clients, _on_asyncio(), limiter=anyio.CapacityLimiter(1))
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
