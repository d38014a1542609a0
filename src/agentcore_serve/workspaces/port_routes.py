"""The routes of ports: what listens inside of a workspace's box, behind the server's keys.

A workspace that is a folder of the server's own machine has none: its ports are those of the machine, and of all that is served there.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

import anyio
from starlette.types import Message, Receive, Scope, Send
from starlette.websockets import WebSocketState

from agentcore_sandbox.tunnels import Tunnels
from agentcore_serve.refused import Refused, draining
from agentcore_serve.routes.table import WEBSOCKET, Call, Route
from agentcore_serve.workspaces.calls import hub_of
from agentcore_serve.workspaces.port_sockets import pass_websocket
from agentcore_serve.workspaces.ports import pass_http

_PORT: Final = re.compile(r"[1-9][0-9]{0,4}")
_HIGHEST: Final = 65535
_GOING_AWAY: Final = 1001


async def _pass_http(call: Call) -> Any:
    # Before anything is passed on: what is another's is refused as what is not there.
    hub_of(call).find(call.identity, call.params["workspace"])
    port = _port_of(call)

    async def serve(scope: Scope, receive: Receive, send: Send) -> None:
        base, path = _split(scope, port)
        has_begun = False

        async def note(message: Message) -> None:
            nonlocal has_begun
            has_begun = True
            await send(message)

        async def pass_on(inside: Tunnels) -> None:
            await pass_http(scope, receive, note, connect=inside.connect, port=port, path=path, base=base)

        if not await _until_the_server_ends(call, pass_on) and not has_begun:
            raise draining()

    return serve


async def _pass_websocket(call: Call) -> None:
    websocket, port = call.websocket, _port_of(call)
    _, path = _split(websocket.scope, port)

    async def pass_on(inside: Tunnels) -> None:
        await pass_websocket(
            websocket.scope, websocket.receive, websocket.send, connect=inside.connect, port=port, path=path
        )

    if not await _until_the_server_ends(call, pass_on):
        if websocket.application_state is WebSocketState.CONNECTING:
            raise draining()
        await websocket.close(_GOING_AWAY)


async def _until_the_server_ends(call: Call, pass_on: Callable[[Tunnels], Awaitable[None]]) -> bool:
    """Hold the workspace open meanwhile; return False if it was cut off by the end of the server.

    Raises:
        Refused: It is not there (404), it has no ports of its own (409), or nothing answers at this one (502).
    """
    hub = hub_of(call)
    failure: Exception | None = None
    is_done = False
    async with hub.use(call.identity, call.params["workspace"]) as opened:
        inside = tunnels_of(opened.workspace)
        async with anyio.create_task_group() as tasks:

            async def end() -> None:
                await hub.ending.wait()
                tasks.cancel_scope.cancel("the server ends")

            tasks.start_soon(end)
            try:
                await pass_on(inside)
                is_done = True
            except Exception as error:  # not in a group, for who answers it
                failure = error
            tasks.cancel_scope.cancel("it is answered")
    if failure is not None:
        raise failure
    return is_done


def tunnels_of(workspace: object) -> Tunnels:
    """Return the ports of a workspace.

    Raises:
        Refused: Its ports are those of this machine (409).
    """
    if isinstance(workspace, Tunnels):
        return workspace
    raise Refused(
        409,
        "no_ports",
        "The workspace is a folder of the server's machine, whose own ports are not passed on. Start the server with --sandbox.",
    )


def _port_of(call: Call) -> int:
    text = call.params["port"]
    if not _PORT.fullmatch(text) or int(text) > _HIGHEST:
        raise Refused(404, "port_not_found", f"A port is a number from 1 to {_HIGHEST}.")
    return int(text)


def _split(scope: Scope, port: int) -> tuple[str, bytes]:
    """Return the path of the port on this server, and the one inside as it was sent."""
    sent: bytes = (scope.get("raw_path") or scope["path"].encode()).partition(b"?")[0]
    found = re.match(rb".*?/api/v1/workspaces/[^/]+/ports/%d(?=/)" % port, sent)
    if found is None:  # some of it is encoded that need not be
        raise Refused(404, "port_not_found", "The address of a port is written without %-encoding up to the port.")
    return found[0].decode("ascii", "replace"), sent[found.end() :]


_PATH: Final = "/api/v1/workspaces/{workspace}/ports/{port}/{path:path}"
_SUMMARY: Final = "Pass a request on to a port inside of a box."
_METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")

PORTS: Final = (
    *(
        Route(method, _PATH, _pass_http, "workspace", summary=_SUMMARY, media="*/*", any_query=True, tag="workspaces")
        for method in _METHODS
    ),
    Route(WEBSOCKET, _PATH, _pass_websocket, "workspace", summary=_SUMMARY, any_query=True, tag="workspaces"),
)
"""For the one list of the server's routes."""
