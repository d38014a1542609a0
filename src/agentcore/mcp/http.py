"""The HTTP transports: mcp's own, over a client that keeps the headers to itself, bounds what it reads and knows how it ended."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Literal, cast

import httpx2
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from agentcore.mcp.ending import Ending
from agentcore.mcp.stdio import MOST_BYTES
from agentcore.mcp.variables import Launch

_CONNECT_SECONDS: Final = 30.0
_SESSION: Final = "mcp-session-id"


@asynccontextmanager
async def open_http(
    launch: Launch, transport: Literal["http", "sse"], *, ending: Ending, auth: httpx2.Auth | None = None
) -> AsyncGenerator[Any]:
    """Connect to a server and yield its streams.

    A redirect to another origin is not followed, so that it never has the headers.
    """
    if transport == "sse":

        def make(
            headers: dict[str, str] | None = None,
            timeout: httpx2.Timeout | None = None,
            auth: httpx2.Auth | None = None,
        ) -> httpx2.AsyncClient:
            del headers, timeout  # our own client has its own
            return _client(launch, ending, auth)

        streams = sse_client(launch.url, httpx_client_factory=make, auth=auth)
        async with cast("AbstractAsyncContextManager[Any]", streams) as opened:
            yield opened
        return
    async with (
        _client(launch, ending, auth) as client,
        streamable_http_client(launch.url, http_client=client, max_sse_event_size=MOST_BYTES) as opened,
    ):
        yield opened


def _client(launch: Launch, ending: Ending, auth: httpx2.Auth | None) -> _Client:
    # A server may be silent for as long as it works: each call has a time limit of its own.
    timeout = httpx2.Timeout(_CONNECT_SECONDS, read=None)
    # Not compressed: a few bytes could become any number.
    headers = {"accept-encoding": "identity", **launch.headers}
    client = _Client(headers=headers, timeout=timeout, auth=auth, follow_redirects=False)
    client.ending = ending
    return client


class _Client(httpx2.AsyncClient):
    """A client that notes why the connection is over."""

    ending: Ending

    async def send(self, request: httpx2.Request, **settings: Any) -> httpx2.Response:
        try:
            response = await super().send(request, **settings)
        except httpx2.TransportError as error:
            if request.method == "POST":
                self.ending.set(f"it can't be reached ({type(error).__name__}: {error})")
            raise
        if response.status_code >= 400:
            self.ending.hint = f"it answered with HTTP {response.status_code} {response.reason_phrase}".rstrip()
        if response.status_code == 401:
            self.ending.set(f"{self.ending.hint}: check its headers")
        elif response.status_code == 404 and _SESSION in request.headers:
            self.ending.set("it has ended the session")
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise httpx2.DecodingError(
                "The server compresses its answers although it was asked not to.", request=request
            )
        stream = response.stream
        if isinstance(stream, httpx2.AsyncByteStream):
            response.stream = _Bounded(
                stream, self.ending, is_endless="event-stream" in response.headers.get("content-type", "")
            )
        return response


class _Bounded(httpx2.AsyncByteStream):
    """A response that breaks off where one message is too long. mcp bounds the events of a stream itself."""

    def __init__(self, stream: httpx2.AsyncByteStream, ending: Ending, *, is_endless: bool) -> None:
        self._stream = stream
        self._ending = ending
        self._is_endless = is_endless

    async def __aiter__(self) -> AsyncIterator[bytes]:
        read = 0
        async for chunk in self._stream:
            read += len(chunk)
            if read > MOST_BYTES and not self._is_endless:
                self._ending.set(f"it sent a message of more than {MOST_BYTES // 1024**2} MiB")
                raise httpx2.ReadError(f"The answer is larger than {MOST_BYTES // 1024**2} MiB.")
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()
