"""The routes of ports: what listens inside of a workspace's box, behind the server's keys.

A workspace that is a folder of the server's own machine has none: its ports are those of the machine, and of all that is served there.
"""

from __future__ import annotations

import re
from typing import Any, Final

from agentcore_sandbox.tunnels import Tunnels
from agentcore_serve.refused import Refused
from agentcore_serve.routes.table import WEBSOCKET, Call, Route
from agentcore_serve.workspaces.calls import hub_of
from agentcore_serve.workspaces.passing import Way, answer_http, answer_websocket, split_path

_PORT: Final = re.compile(r"[1-9][0-9]{0,4}")
_HIGHEST: Final = 65535


async def _pass_http(call: Call) -> Any:
    # Before anything is passed on: what is another's is refused as what is not there.
    hub_of(call).find(call.identity, call.params["workspace"])
    port = port_of(call)
    base, path = split_path(call.connection.scope, f"ports/{port}")
    return answer_http(call, lambda opened: Way(tunnels_of(opened.workspace).connect, port), base, path)


async def _pass_websocket(call: Call) -> None:
    port = port_of(call)
    _, path = split_path(call.connection.scope, f"ports/{port}")
    await answer_websocket(call, lambda opened: Way(tunnels_of(opened.workspace).connect, port), path)


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


def port_of(call: Call) -> int:
    """Return the port of the path.

    Raises:
        Refused: It is not one (404).
    """
    text = call.params["port"]
    if not _PORT.fullmatch(text) or int(text) > _HIGHEST:
        raise Refused(404, "port_not_found", f"A port is a number from 1 to {_HIGHEST}.")
    return int(text)


_PATH: Final = "/api/v1/workspaces/{workspace}/ports/{port}/{path:path}"
_SUMMARY: Final = "Pass a request on to a port inside of a box."
METHODS: Final = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS")
"""The methods that are passed on."""

PORTS: Final = (
    *(
        Route(method, _PATH, _pass_http, "workspace", summary=_SUMMARY, media="*/*", any_query=True, tag="workspaces")
        for method in METHODS
    ),
    Route(WEBSOCKET, _PATH, _pass_websocket, "workspace", summary=_SUMMARY, any_query=True, tag="workspaces"),
)
"""For the one list of the server's routes."""
