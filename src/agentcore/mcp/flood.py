"""A bound on what a server may ask at once: each of its requests is held until it is answered.

Above: mcp's client, which starts a task for each request. Below: the streams of a transport, of either kind.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Final, Self

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from agentcore.logs import get_logger
from agentcore.mcp.ending import Ending

_log = get_logger(__name__)

_MOST_OPEN: Final = 1_000


@asynccontextmanager
async def bounded(transport: AbstractAsyncContextManager[Any], ending: Ending) -> AsyncGenerator[tuple[Any, Any]]:
    """Open a transport; it ends when its server asks without waiting for answers."""
    async with transport as (read, write):
        requests = _OpenRequests(ending)
        yield _Incoming(read, requests), _Outgoing(write, requests)


class _OpenRequests:
    """The ids of the server's requests that have no answer yet."""

    def __init__(self, ending: Ending) -> None:
        self._ids: set[str] = set()
        self._ending = ending

    def admits(self, item: Any) -> bool:
        """Return whether the client is to see a message.

        Raises:
            EndOfStream: It is one request too many.
        """
        message = item.message if isinstance(item, SessionMessage) else None
        if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            # The client does not answer it any more.
            self._ids.discard(str((message.params or {}).get("requestId")))
        if not isinstance(message, JSONRPCRequest):
            return True
        if str(message.id) in self._ids:
            _log.debug("request of an MCP server left out: one with its id has no answer yet")
            return False
        if len(self._ids) >= _MOST_OPEN:
            self._ending.set(f"it asked more than {_MOST_OPEN:,} things at once")
            raise anyio.EndOfStream
        self._ids.add(str(message.id))
        return True

    def note(self, item: SessionMessage) -> None:
        """Note what is sent."""
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._ids.discard(str(item.message.id))


class _Stream:
    def __init__(self, stream: Any, requests: _OpenRequests) -> None:
        self._stream = stream
        self._requests = requests

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._stream.aclose()


class _Incoming(_Stream):
    @property
    def last_context(self) -> Any:
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        while not self._requests.admits(item := await self._stream.receive()):
            pass
        return item

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None


class _Outgoing(_Stream):
    async def send(self, item: SessionMessage) -> None:
        await self._stream.send(item)
        self._requests.note(item)
