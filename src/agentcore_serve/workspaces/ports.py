"""HTTP to a port inside of a workspace, through its own stream.

Above: the routes of ports and of views. Below: `connect`, which opens a stream to the port. One connection inside for each request.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Final, final

import anyio
import h11
from anyio.abc import ByteStream
from anyio.lowlevel import checkpoint
from starlette.types import Receive, Scope, Send

from agentcore._groups import leaf_exceptions
from agentcore.errors import WorkspaceError
from agentcore_sandbox.network.port_headers import SANDBOX, request_headers, response_headers
from agentcore_sandbox.views.policy import PAGE_HEADERS
from agentcore_serve.refused import Refused

Connect = Callable[[int], AbstractAsyncContextManager[ByteStream]]
"""Opens a stream to a port on 127.0.0.1 inside."""

UNREACHABLE: Final = (anyio.BrokenResourceError, anyio.ClosedResourceError, anyio.EndOfStream, OSError, WorkspaceError)
"""The errors of a stream that cannot be opened, or is gone."""
_FAILED: Final = (*UNREACHABLE, h11.ProtocolError)
_MAX_HEAD: Final = 64 * 1024


async def pass_http(
    scope: Scope,
    receive: Receive,
    send: Send,
    *,
    connect: Connect,
    port: int,
    path: bytes,
    base: str,
    policy: bytes = SANDBOX,
) -> None:
    """Pass on a request, and its response.

    Args:
        scope: The request, authorized.
        receive: For its body.
        send: For the response.
        connect: Opens a stream to a port inside.
        port: The port.
        path: The path inside, as it was sent, without the query.
        base: The path of the port on the server.
        policy: What its pages may do.

    Raises:
        Refused: Nothing listens there, or what does speaks no HTTP (502).
    """
    exchange = _Exchange(port, base, policy)
    try:
        async with connect(port) as stream, anyio.create_task_group() as tasks:
            tasks.start_soon(exchange.send_request, scope, receive, path, stream, tasks.cancel_scope)
            await exchange.pass_response(stream, send)
            tasks.cancel_scope.cancel("the response has ended")
    except Exception as error:
        if exchange.has_begun or not all(isinstance(leaf, _FAILED) for leaf in leaf_exceptions(error)):
            raise
        raise not_reached(port) from None


def not_reached(port: int) -> Refused:
    """Return the refusal of a port behind which nothing answers."""
    return Refused(
        502, "port_not_reached", f"Nothing answers on port {port} of the workspace. Does the program listen there?"
    )


@final
class _Exchange:
    """One request and its response."""

    def __init__(self, port: int, base: str, policy: bytes) -> None:
        self._port = port
        self._base = base
        self._policy = policy
        self._http = h11.Connection(h11.CLIENT, _MAX_HEAD)
        self.has_begun = False
        """True once the response has."""

    async def send_request(
        self, scope: Scope, receive: Receive, path: bytes, stream: ByteStream, exchange: anyio.CancelScope
    ) -> None:
        """Pass on the request; then cancel the exchange if its client leaves."""
        headers = request_headers(scope["headers"], self._port)
        query = scope.get("query_string", b"")
        target = path + (b"?" + query if query else b"")
        try:
            await self._send(stream, h11.Request(method=scope["method"], target=target, headers=headers))
            more = not {b"content-length", b"transfer-encoding"}.isdisjoint(name.lower() for name, _ in headers)
            while more:
                message = await receive()
                if message["type"] != "http.request":
                    exchange.cancel("the client has left")
                    return
                more = message.get("more_body", False)
                if data := message.get("body", b""):
                    await self._send(stream, h11.Data(data=data))
            await self._send(stream, h11.EndOfMessage())
        except UNREACHABLE:
            pass  # a program that has enough of a body answers all the same
        while (await receive())["type"] != "http.disconnect":
            pass
        exchange.cancel("the client has left")

    async def _send(self, stream: ByteStream, event: h11.Event) -> None:
        data = self._http.send(event)
        if data:
            await stream.send(data)

    async def pass_response(self, stream: ByteStream, send: Send) -> None:
        """Pass on the response as it comes."""
        while True:
            await checkpoint()
            event = self._http.next_event()
            if event is h11.NEED_DATA:
                try:
                    data = await stream.receive()
                except anyio.EndOfStream:
                    data = b""
                self._http.receive_data(data)
            elif isinstance(event, h11.Response):
                self.has_begun = True
                passed = response_headers(event.headers, self._port, self._base, self._policy)
                headers = [
                    (name.lower(), value)
                    for name, value in (*passed, *PAGE_HEADERS)
                    if name.lower() != b"transfer-encoding"  # which is the server's business
                ]
                await send({"type": "http.response.start", "status": event.status_code, "headers": headers})
            elif isinstance(event, h11.Data):
                await send({"type": "http.response.body", "body": bytes(event.data), "more_body": True})
            elif isinstance(event, h11.EndOfMessage):
                await send({"type": "http.response.body", "body": b""})
                return
            elif not isinstance(event, h11.InformationalResponse) or event.status_code == 101:
                raise h11.RemoteProtocolError("It is not a response, or changes the protocol.")
