"""The HTTP transports: mcp's own, over a client that keeps the headers to itself, bounds what it reads and knows how it ended."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Literal, cast

import anyio
import httpx2
from anyio.to_thread import run_sync
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from agentcore._text import Mask
from agentcore.mcp.ending import Ending
from agentcore.mcp.login_requests import LoginFault
from agentcore.mcp.oauth import LoginSession
from agentcore.mcp.stdio import MOST_BYTES
from agentcore.mcp.variables import Launch

_CONNECT_SECONDS: Final = 30.0
_SESSION: Final = "mcp-session-id"


@asynccontextmanager
async def open_http(
    launch: Launch,
    transport: Literal["http", "sse"],
    *,
    ending: Ending,
    login: LoginSession | None = None,
    unauthorized: str | None = None,
) -> AsyncGenerator[Any]:
    """Connect to a server and yield its streams.

    A redirect to another origin is not followed, so that it never has the headers.

    Args:
        launch: The address and the headers.
        transport: The protocol.
        ending: Is told how the connection ends.
        login: The token to send.
        unauthorized: What to do where the server wants a login, in words that follow a colon. None: look at the headers.
    """
    # A thread: it reads the certificates.
    client = await run_sync(_client, launch, ending)
    client.login, client.unauthorized = login, unauthorized
    if transport == "http":
        async with (
            client,
            streamable_http_client(launch.url, http_client=client, max_sse_event_size=MOST_BYTES) as opened,
        ):
            yield opened
        return
    client.is_sse = True

    def give(
        headers: dict[str, str] | None = None, timeout: httpx2.Timeout | None = None, auth: httpx2.Auth | None = None
    ) -> httpx2.AsyncClient:
        del headers, timeout, auth  # it has its own
        return client

    # The one that takes the client closes it.
    async with cast("AbstractAsyncContextManager[Any]", sse_client(launch.url, httpx_client_factory=give)) as opened:
        yield opened


def _client(launch: Launch, ending: Ending) -> _Client:
    # A server may be silent for as long as it works: each call has a time limit of its own.
    timeout = httpx2.Timeout(_CONNECT_SECONDS, read=None)
    # Not compressed: a few bytes could become any number.
    headers = {"accept-encoding": "identity", **launch.headers}
    client = _Client(headers=headers, timeout=timeout, follow_redirects=False)
    client.ending, client.mask = ending, launch.mask
    return client


class _Client(httpx2.AsyncClient):
    """A client that notes why the connection is over."""

    ending: Ending
    mask: Mask
    is_sse = False
    login: LoginSession | None = None
    unauthorized: str | None = None

    async def send(self, request: httpx2.Request, **settings: Any) -> httpx2.Response:
        try:
            response = await self._send_with_token(request, settings)
        except LoginFault as error:
            self.ending.set(self.mask(str(error)), is_refusal=True)
            return httpx2.Response(401, request=request)
        except httpx2.TransportError as error:
            if request.method != "POST":
                raise
            unsent = isinstance(error, httpx2.ConnectError | httpx2.ConnectTimeout)
            problem = "it can't be reached" if unsent else "the connection broke"
            self.ending.set(f"{problem} ({type(error).__name__}: {error})", is_refusal=unsent)
            # mcp's transport would end with the error, and take along the task that holds the server.
            return httpx2.Response(503, request=request)
        if response.status_code >= 400:
            status = f"{response.status_code} {self.mask(response.reason_phrase)}"  # a server may repeat a header in it
            self.ending.hint = f"it answered with HTTP {status}".rstrip()
        if response.status_code == 401:
            self.ending.set(self.unauthorized or f"{self.ending.hint}: check its headers", is_refusal=True)
            self.ending.hint = None
        elif response.status_code == 404 and _SESSION in request.headers:
            self.ending.set("it has ended the session", is_refusal=True)
        stream = response.stream
        if isinstance(stream, httpx2.AsyncByteStream):
            response.stream = _Bounded(stream, response, self.ending, is_whole=self.is_sse and request.method == "GET")
        return response

    async def _send_with_token(self, request: httpx2.Request, settings: dict[str, Any]) -> httpx2.Response:
        login = self.login
        token = None if login is None else await login.token_for(request)
        if login is None or token is None:
            return await super().send(request, **settings)
        request.headers["Authorization"] = f"Bearer {token}"
        response = await super().send(request, **settings)
        if response.status_code != 401:
            return response
        await response.aclose()
        request.headers["Authorization"] = f"Bearer {await login.renew(token, request)}"
        return await super().send(request, **settings)


class _Bounded(httpx2.AsyncByteStream):
    """The content of an answer, which breaks off where it is too long. mcp bounds the events of a stream itself."""

    def __init__(
        self, stream: httpx2.AsyncByteStream, response: httpx2.Response, ending: Ending, *, is_whole: bool
    ) -> None:
        self._stream = stream
        self._is_whole = is_whole  # all that comes, comes by this stream
        self._is_packed = response.headers.get("content-encoding", "identity") != "identity"
        self._is_endless = "event-stream" in response.headers.get("content-type", "")
        self._ending = ending

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if self._is_packed:
            raise self._end("it compresses its answers, though it was asked not to")
        read = 0
        try:
            chunks = aiter(self._stream)
            async for chunk in chunks:
                read += len(chunk)
                if read > MOST_BYTES and not self._is_endless:
                    await _abandon(chunks)
                    raise self._end(f"it sent a message of more than {MOST_BYTES // 1024**2} MiB")
                yield chunk
            if self._is_whole:
                raise self._end("it closed the stream")
        except httpx2.TransportError as error:
            if self._is_endless and not self._is_whole:
                raise  # mcp goes on listening, where the server lets it
            raise self._end(f"the connection broke ({type(error).__name__}: {error})") from None

    def _end(self, reason: str) -> Exception:
        self._ending.set(reason)
        # Of a kind that mcp's transport takes for a bad answer, and not for its own end.
        return httpx2.StreamError(reason)

    async def aclose(self) -> None:
        await self._stream.aclose()


async def _abandon(chunks: AsyncIterator[bytes]) -> None:
    """Cancel the reading where it waits, so that the generators below are not left in the middle."""
    with anyio.CancelScope() as scope:
        scope.cancel()
        async for _ in chunks:
            pass
