"""WebSockets to a port inside of a workspace.

Above: the routes of ports and of views. Below: `connect`, which opens a stream to the port, and wsproto.
"""

from __future__ import annotations

from typing import Final, final

import anyio
from anyio.abc import ByteStream
from anyio.lowlevel import checkpoint
from starlette.types import Message, Receive, Scope, Send
from wsproto import ConnectionType, WSConnection
from wsproto.events import (
    AcceptConnection,
    BytesMessage,
    CloseConnection,
    Event,
    Ping,
    RejectConnection,
    RejectData,
    Request,
    TextMessage,
)
from wsproto.utilities import LocalProtocolError, RemoteProtocolError

from agentcore._groups import leaf_exceptions
from agentcore_sandbox.network.port_headers import request_headers, without_ticket
from agentcore_serve.workspaces.ports import UNREACHABLE, Connect, not_reached

MAX_MESSAGE: Final = 16 << 20
"""The longest message, in bytes or characters: it is passed on whole."""
_OPEN_SECONDS: Final = 30.0
_GONE: Final = 1011
_TOO_LARGE: Final = 1009


async def pass_websocket(
    scope: Scope, receive: Receive, send: Send, *, connect: Connect, port: int, path: bytes
) -> None:
    """Pass on a WebSocket, until one of the two sides closes it.

    Args:
        scope: The WebSocket, authorized and not accepted.
        receive: Its messages.
        send: For messages to it.
        connect: Opens a stream to a port inside.
        port: The port.
        path: The path inside, as it was sent, without the query.

    Raises:
        Refused: Nothing there takes a WebSocket (502).
    """
    accepted = False
    try:
        async with connect(port) as stream:
            inside = _Inside(stream)
            with anyio.fail_after(_OPEN_SECONDS):
                protocol = await inside.open(scope, port, path)
            await receive()  # the client's own beginning
            await send({"type": "websocket.accept", "subprotocol": protocol, "headers": []})
            accepted = True
            code = _GONE
            async with anyio.create_task_group() as tasks:

                async def send_on() -> None:
                    while (message := await receive())["type"] == "websocket.receive":
                        await inside.send(_event(message))
                    await inside.send(CloseConnection(message.get("code") or 1000))
                    tasks.cancel_scope.cancel("the client has left")

                tasks.start_soon(send_on)
                code = await inside.pass_on(send)
                tasks.cancel_scope.cancel("it is closed inside")
            await send({"type": "websocket.close", "code": code})
    except Exception as error:
        failures = (*UNREACHABLE, RemoteProtocolError, LocalProtocolError)
        if not all(isinstance(leaf, failures) for leaf in leaf_exceptions(error)):
            raise
        if not accepted:
            raise not_reached(port) from None
        await send({"type": "websocket.close", "code": _GONE})


def _event(message: Message) -> Event:
    data = message.get("bytes")
    return BytesMessage(data) if data is not None else TextMessage(message.get("text") or "")


@final
class _Inside:
    """The WebSocket to the program inside."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._protocol = WSConnection(ConnectionType.CLIENT)
        self._sending = anyio.Lock()

    async def open(self, scope: Scope, port: int, path: bytes) -> str | None:
        """Ask for the WebSocket, and return the subprotocol that was chosen.

        Raises:
            anyio.BrokenResourceError: It is refused.
        """
        query = without_ticket(scope.get("query_string", b""))
        headers = [each for each in request_headers(scope["headers"], port) if each[0].lower() != b"host"]
        target = (path + (b"?" + query if query else b"")).decode("ascii")
        await self.send(
            Request(
                f"localhost:{port}", target, subprotocols=list(scope.get("subprotocols", [])), extra_headers=headers
            )
        )
        while True:
            self._protocol.receive_data(await self._stream.receive())
            for event in self._protocol.events():
                if isinstance(event, AcceptConnection):
                    return event.subprotocol
                if isinstance(event, RejectConnection | RejectData):
                    raise anyio.BrokenResourceError

    async def send(self, event: Event) -> None:
        async with self._sending:
            await self._stream.send(self._protocol.send(event))

    async def pass_on(self, send: Send) -> int:
        """Pass on messages to the client, and return the code with which the program closes."""
        texts: list[str] = []
        data = bytearray()
        size = 0
        while True:
            await checkpoint()
            # What came with the answer to the request is there already.
            for event in self._protocol.events():
                match event:
                    case Ping():
                        await self.send(event.response())
                        continue
                    case CloseConnection(code=code):
                        return code
                    case TextMessage(data=text):
                        texts.append(text)
                        size += len(text)
                    case BytesMessage(data=piece):
                        data += piece
                        size += len(piece)
                    case _:
                        continue
                if size > MAX_MESSAGE:
                    return _TOO_LARGE
                if event.message_finished:
                    is_text = isinstance(event, TextMessage)
                    await send(
                        {"type": "websocket.send", "text": "".join(texts)}
                        if is_text
                        else {"type": "websocket.send", "bytes": bytes(data)}
                    )
                    texts, data, size = [], bytearray(), 0
            try:
                received = await self._stream.receive()
            except anyio.EndOfStream:
                return _GONE
            self._protocol.receive_data(received)
