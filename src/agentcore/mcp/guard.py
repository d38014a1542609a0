"""A guard between a server and mcp's client: what the server asks at once is bounded, and what would spoil a list is taken out.

Above: mcp's client, which starts a task for each request. Below: the streams of a transport, of either kind.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from types import TracebackType
from typing import Any, Final, Self, final

import anyio
from mcp.shared.message import SessionMessage
from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse
from mcp_types.version import KNOWN_PROTOCOL_VERSIONS, LATEST_MODERN_VERSION

from agentcore.logs import get_logger
from agentcore.mcp.ending import Ending
from agentcore.mcp.listing import drop_unsound_tools

_log = get_logger(__name__)

_MOST_OPEN: Final = 1_000
_MOST_LEFT_OUT: Final = 100


@final
class Guard:
    """The guard of one connection."""

    def __init__(self, ending: Ending) -> None:
        self.left_out: list[str] = []
        """A sentence for each tool that was taken out of the lists since this was last emptied."""
        self._ids: set[str] = set()  # of the server's requests that have no answer yet
        self._ending = ending
        self._version = LATEST_MODERN_VERSION

    @asynccontextmanager
    async def watch(self, transport: AbstractAsyncContextManager[Any]) -> AsyncGenerator[tuple[Any, Any]]:
        """Open a transport; it ends when its server asks without waiting for answers."""
        async with transport as (read, write):
            yield _Incoming(read, self), _Outgoing(write, self)

    def admits(self, item: Any) -> bool:
        """Return whether the client is to see a message.

        Raises:
            EndOfStream: It is one request too many.
        """
        message = item.message if isinstance(item, SessionMessage) else None
        if isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            # The client does not answer it any more.
            self._ids.discard(str((message.params or {}).get("requestId")))
        if isinstance(message, JSONRPCResponse):
            self._look_at(message.result)
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

    def _look_at(self, result: dict[str, Any]) -> None:
        version = result.get("protocolVersion")
        if isinstance(version, str) and version in KNOWN_PROTOCOL_VERSIONS:
            self._version = version
        if isinstance(result.get("tools"), list) and "content" not in result:
            left_out = drop_unsound_tools(result, self._version)
            self.left_out += left_out[: _MOST_LEFT_OUT - len(self.left_out)]

    def note(self, item: SessionMessage) -> None:
        """Note what is sent."""
        if isinstance(item.message, JSONRPCResponse | JSONRPCError):
            self._ids.discard(str(item.message.id))


class _Stream:
    def __init__(self, stream: Any, guard: Guard) -> None:
        self._stream = stream
        self._guard = guard

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
        while not self._guard.admits(item := await self._stream.receive()):
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
        self._guard.note(item)
