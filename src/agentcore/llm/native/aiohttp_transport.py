"""aiohttp behind httpx's interface, on asyncio.

What httpx's pool costs per request grows with its connections; aiohttp's stays, and is half of httpx's with one connection. It is
not what agentcore needs, but comes with litellm and aiodocker: used where it is there.
"""

from __future__ import annotations

import ssl
from typing import Self

import aiohttp
import httpx
from yarl import URL

from agentcore.llm.native.clients import CONNECT_SECONDS, Body

if tuple(map(int, aiohttp.__version__.split(".")[:2])) < (3, 10):
    raise ImportError(f"aiohttp {aiohttp.__version__} does not know the limits that are set here", name="aiohttp")

_KEEP_SECONDS = 60.0
_LONGEST_HEADER = 64 * 1024
_AT_ONCE = 64 * 1024
"""Longer bodies are given in pieces: aiohttp copies what it writes in one go, and the event loop waits for it."""


class AiohttpTransport(httpx.AsyncBaseTransport):
    """Sends the requests of `clients.post`, over any number of connections, straight to their servers.

    Redirects, cookies, proxies and packed bodies are left to the caller.
    """

    def __init__(self, tls: ssl.SSLContext) -> None:
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ssl=tls, keepalive_timeout=_KEEP_SECONDS),
            timeout=aiohttp.ClientTimeout(total=None, connect=CONNECT_SECONDS),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=("accept", "accept-encoding", "content-type", "user-agent"),
            max_line_size=_LONGEST_HEADER,
            max_field_size=_LONGEST_HEADER,
        )

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        """Send a request and give its answer, once its head is there."""
        body = request.stream
        assert isinstance(body, Body)
        # As pairs: walking httpx's own headers takes as long as all else here.
        headers = [(name.decode("latin-1"), value.decode("latin-1")) for name, value in request.headers.raw]
        # As it is: left to itself, yarl writes some characters otherwise than they were given.
        address = request.url
        url = URL(f"{address.scheme}://{address.netloc.decode()}{address.raw_path.decode()}", encoded=True)
        try:
            answered = await self._session.request(
                request.method,
                url,
                headers=headers,
                data=body.data if len(body.data) <= _AT_ONCE else body,
                allow_redirects=False,
            )
        except (aiohttp.ClientError, OSError) as error:
            raise _as_httpx(error) from error
        return httpx.Response(answered.status, headers=answered.raw_headers, stream=_Stream(answered), request=request)

    async def aclose(self) -> None:
        """Close all connections."""
        await self._session.close()


class _Stream(httpx.AsyncByteStream):
    """A body that comes: no generator, which a read that is cancelled would leave to the garbage collector."""

    def __init__(self, answered: aiohttp.ClientResponse) -> None:
        self._answered = answered

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._answered.content.readany()
        except (aiohttp.ClientError, OSError) as error:
            raise _as_httpx(error) from error
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def aclose(self) -> None:
        # One that was read to its end has given its connection back; of any other the connection can't be used again, and
        # the other side is not asked to agree that it ends.
        connection = self._answered.connection
        if connection is not None and connection.transport is not None:
            connection.transport.abort()
        self._answered.close()


def _as_httpx(error: Exception) -> Exception:
    """Translate an error of aiohttp to one of httpx."""
    # What aiohttp says of a connection that was not made has its own settings in it; the cause has the reason alone.
    cause = error.__cause__ or error
    reason = getattr(cause, "message", None) or str(cause) or type(error).__name__
    match error:
        case TimeoutError():
            return httpx.ConnectTimeout(reason)
        case aiohttp.InvalidURL():
            return httpx.InvalidURL(reason)
        case aiohttp.NonHttpUrlClientError():
            return httpx.UnsupportedProtocol(f"{reason} begins with neither http:// nor https://")
        case aiohttp.ClientConnectorError():
            return httpx.ConnectError(reason)
        case aiohttp.ClientResponseError():
            # Its other lines are what the server sent, whatever that may be.
            return httpx.RemoteProtocolError(f"its answer is not HTTP: {error.message.partition(':')[0]}")
        case aiohttp.ClientConnectionResetError():
            return httpx.WriteError("the other side closed it while the request was being sent")
        case aiohttp.ServerDisconnectedError() | aiohttp.ClientPayloadError():
            return httpx.RemoteProtocolError(reason)
        case _:
            return httpx.ReadError(reason)
