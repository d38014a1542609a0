"""One WebSocket to a server, as messages: text and bytes. The one place that knows httpx-ws."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from importlib import import_module
from typing import Any, Final, Protocol, final

import anyio
import httpx

from agentcore._groups import leaf_exceptions
from agentcore.errors import ConnectionLost, MissingExtra, NotAuthorized, ServerError

# Shielded: a peer that reads no more would hold up the last message for ever.
_CLOSE_SECONDS: Final = 2.0


class Socket(Protocol):
    """A WebSocket that is open. One task sends and one receives; a send that was cancelled ends the socket."""

    async def send(self, message: str | bytes) -> None:
        """Send a message.

        Raises:
            ConnectionLost: The connection is gone.
        """
        ...

    async def receive(self) -> str | bytes:
        """Return the next message.

        Raises:
            anyio.EndOfStream: The server closed it.
            ConnectionLost: The connection is gone.
        """
        ...


@asynccontextmanager
async def open_socket(client: httpx.AsyncClient, address: httpx.URL, shown: str) -> AsyncGenerator[Socket]:
    """Open a WebSocket; see `ServerClient.stream_socket`.

    Args:
        client: With the key in its headers.
        address: Of the route.
        shown: The address for messages.
    """
    library = load_library()
    raised: list[BaseException] = []
    try:
        # No pings of its own: they end the session in a group of exceptions, and those above have theirs.
        opening = library.aconnect_ws(
            str(address), client, keepalive_ping_interval_seconds=None, max_message_size_bytes=1 << 16
        )
        async with opening as session:
            try:
                yield _HttpxSocket(library, session, shown)
            except BaseException as error:
                raised.append(error)
                raise
            finally:
                with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                    await session.close()
                with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                    await session.stream.aclose()
    except library.WebSocketUpgradeError as error:
        raise _refusal(error.response.status_code) from None
    except httpx.TransportError as error:
        raise ConnectionLost(shown, str(error) or type(error).__name__) from error
    except BaseExceptionGroup as group:
        # The session runs a task group of its own: what the caller raised leaves as itself.
        if raised:
            raise raised[0] from None
        first = leaf_exceptions(group)[0]
        raise ConnectionLost(shown, str(first) or type(first).__name__) from first


def load_library() -> Any:
    """Import httpx-ws.

    Raises:
        MissingExtra: It is not installed.
    """
    try:
        return import_module("httpx_ws")
    except ImportError as error:
        if (error.name or "").split(".")[0] not in ("httpx_ws", "wsproto"):
            raise
        raise MissingExtra("A process or a port of a RemoteWorkspace", "remote") from None


def _refusal(status: int) -> ServerError:
    text = f"The server refused a WebSocket with status {status}."
    kind = NotAuthorized if status in (401, 403) else ServerError
    return kind(text, status=status, code="not_authorized" if kind is NotAuthorized else "socket_refused")


@final
class _HttpxSocket:
    def __init__(self, library: Any, session: Any, shown: str) -> None:
        self._library = library
        self._session = session
        self._shown = shown

    async def send(self, message: str | bytes) -> None:
        send = self._session.send_text if isinstance(message, str) else self._session.send_bytes
        sent = False
        try:
            await send(message)
            sent = True
        except Exception as error:
            # A closed session raises what its state machine, its stream or httpcore says.
            raise self._lost(error) from error
        finally:
            if not sent:
                # Half a message may have gone out, and nothing can follow it.
                with anyio.CancelScope(shield=True):
                    await self._session.stream.aclose()

    async def receive(self) -> str | bytes:
        try:
            event = await self._session.receive()
        except self._library.WebSocketDisconnect as error:
            raise anyio.EndOfStream from error
        except (self._library.HTTPXWSException, anyio.EndOfStream, anyio.ClosedResourceError) as error:
            raise self._lost(error) from error
        return event.data

    def _lost(self, error: Exception) -> ConnectionLost:
        return ConnectionLost(self._shown, str(error) or type(error).__name__)
