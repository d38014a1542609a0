"""Requests that are passed on to a program inside of a box, while its workspace is held open.

Above: the routes of ports, of tunnels and of views. Below: the exchange itself (`ports`, `port_sockets`).
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import NamedTuple

import anyio
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketState

from agentcore_sandbox.network.port_headers import SANDBOX
from agentcore_serve.refused import Refused, draining
from agentcore_serve.routes.table import Call
from agentcore_serve.workspaces.calls import hub_of
from agentcore_serve.workspaces.hub import OpenWorkspace
from agentcore_serve.workspaces.port_sockets import pass_websocket
from agentcore_serve.workspaces.ports import Connect, pass_http

_GOING_AWAY = 1001


class Way(NamedTuple):
    """The way to a program inside."""

    connect: Connect
    port: int


FindWay = Callable[[OpenWorkspace], Way]
"""Finds the way in a workspace that is open. It raises `Refused` where there is none."""


def answer_http(call: Call, find: FindWay, base: str, path: bytes, policy: bytes = SANDBOX) -> ASGIApp:
    """Return the response that passes a request on.

    Args:
        call: The request.
        find: Finds where to.
        base: The path of the program on this server.
        path: The path inside.
        policy: What its pages may do.
    """

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        has_begun = False

        async def note(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        async def pass_on(opened: OpenWorkspace) -> None:
            connect, port = find(opened)
            await pass_http(scope, receive, note, connect=connect, port=port, path=path, base=base, policy=policy)

        if not await until_the_server_ends(call, pass_on) and not has_begun:
            raise draining()

    return serve


async def answer_websocket(call: Call, find: FindWay, path: bytes) -> None:
    """Pass a WebSocket on."""
    websocket = call.websocket

    async def pass_on(opened: OpenWorkspace) -> None:
        connect, port = find(opened)
        await pass_websocket(websocket.scope, websocket.receive, websocket.send, connect=connect, port=port, path=path)

    await hold_websocket(call, pass_on)


async def hold_websocket(call: Call, pass_on: Callable[[OpenWorkspace], Awaitable[None]]) -> None:
    """Serve a WebSocket; it is closed, or refused, when the server ends."""
    if not await until_the_server_ends(call, pass_on):
        if call.websocket.application_state is WebSocketState.CONNECTING:
            raise draining()
        await call.websocket.close(_GOING_AWAY)


async def until_the_server_ends(call: Call, pass_on: Callable[[OpenWorkspace], Awaitable[None]]) -> bool:
    """Hold the workspace open meanwhile; return False if it was cut off by the end of the server.

    Raises:
        Refused: It is not there (404), it has nothing of its own to pass on to (409), or nothing answers (502).
    """
    hub = hub_of(call)
    failure: Exception | None = None
    is_done = False
    async with hub.use(call.identity, call.params["workspace"]) as opened, anyio.create_task_group() as tasks:

        async def end() -> None:
            await hub.ending.wait()
            tasks.cancel_scope.cancel("the server ends")

        tasks.start_soon(end)
        try:
            await pass_on(opened)
            is_done = True
        except Exception as error:  # not in a group, for who answers it
            failure = error
        tasks.cancel_scope.cancel("it is answered")
    if failure is not None:
        raise failure
    return is_done


def split_path(scope: Scope, room: str) -> tuple[str, bytes]:
    """Return the path of a program on this server, and the one inside as it was sent.

    Args:
        scope: The request.
        room: The end of the first, as "ports/8000".
    """
    sent: bytes = (scope.get("raw_path") or scope["path"].encode()).partition(b"?")[0]
    found = re.match(rb".*?/api/v1/workspaces/[^/]+/%b(?=/)" % re.escape(room.encode()), sent)
    if found is None:  # some of it is encoded that need not be
        place = room.partition("/")[0].removesuffix("s")
        raise Refused(
            404, f"{place}_not_found", f"The address of a {place} is written without %-encoding up to its name."
        )
    return found[0].decode("ascii", "replace"), sent[found.end() :]
