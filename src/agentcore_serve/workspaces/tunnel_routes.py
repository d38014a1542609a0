"""The route of tunnels: one connection to a port inside of a box, as bytes over a WebSocket. It is what `RemoteWorkspace.expose` talks to.

Above: programs with a key. Below: the ports of a workspace. The messages are those of `agentcore.wire.workspaces`.
"""

from __future__ import annotations

from contextlib import AsyncExitStack
from typing import Final

import anyio
from anyio.abc import ByteStream
from starlette.websockets import WebSocket

from agentcore._groups import leaf_exceptions
from agentcore.wire.workspaces import PIECE, PING_SECONDS, SILENCE_SECONDS, TUNNEL_END, TUNNEL_PING
from agentcore_serve.routes.table import WEBSOCKET, Call, Route
from agentcore_serve.workspaces.calls import hub_of
from agentcore_serve.workspaces.hub import OpenWorkspace
from agentcore_serve.workspaces.passing import hold_websocket
from agentcore_serve.workspaces.port_routes import port_of, tunnels_of
from agentcore_serve.workspaces.ports import UNREACHABLE, not_reached

_GONE: Final = 1011


async def _open(call: Call) -> None:
    hub_of(call).find(call.identity, call.params["workspace"])
    port = port_of(call)

    async def pass_on(opened: OpenWorkspace) -> None:
        tunnels = tunnels_of(opened.workspace)
        async with AsyncExitStack() as stack:
            try:
                inside = await stack.enter_async_context(tunnels.connect(port))
            except UNREACHABLE:
                raise not_reached(port) from None
            await call.websocket.accept()
            await _pass_bytes(call.websocket, inside)

    await hold_websocket(call, pass_on)


async def _pass_bytes(websocket: WebSocket, inside: ByteStream) -> None:
    """Pass on both ways, until the client leaves or the connection inside is gone."""
    sending = anyio.Lock()

    async def send(message: bytes | str) -> None:
        async with sending:
            await (websocket.send_bytes(message) if isinstance(message, bytes) else websocket.send_text(message))

    try:
        async with anyio.create_task_group() as tasks:

            async def pass_out() -> None:
                try:
                    while True:
                        await send(await inside.receive(PIECE))
                except anyio.EndOfStream:
                    await send(TUNNEL_END)

            async def ping() -> None:
                while True:
                    await anyio.sleep(PING_SECONDS)
                    await send(TUNNEL_PING)

            tasks.start_soon(pass_out)
            tasks.start_soon(ping)
            await _pass_in(websocket, inside)
            tasks.cancel_scope.cancel("the client has left")
    except Exception as error:
        if not all(isinstance(leaf, UNREACHABLE) for leaf in leaf_exceptions(error)):
            raise
        await websocket.close(_GONE)


async def _pass_in(websocket: WebSocket, inside: ByteStream) -> None:
    while True:
        message = None
        with anyio.move_on_after(SILENCE_SECONDS):
            message = await websocket.receive()
        if message is None or message["type"] != "websocket.receive":
            return
        if data := message.get("bytes"):
            await inside.send(data)
        elif message.get("text") == TUNNEL_END:
            await inside.send_eof()


TUNNELS: Final = (
    Route(
        WEBSOCKET,
        "/api/v1/workspaces/{workspace}/tunnels/{port}",
        _open,
        "workspace",
        summary="Connect to a port inside of a box: bytes as they are, both ways.",
        tag="workspaces",
    ),
)
"""For the one list of the server's routes."""
