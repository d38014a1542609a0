"""The parts that the routes of workspaces share: which hub, which workspace, and which start of the server a request means."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

from agentcore_serve.routes.table import Call
from agentcore_serve.workspaces.commands import lost
from agentcore_serve.workspaces.hub import OpenWorkspace, WorkspaceHub

BOOT_HEADER = "Agentcore-Boot"
"""On answers: which start of the server this is. On a repeated request: which one the first attempt went to."""


def hub_of(call: Call) -> WorkspaceHub:
    """Return the workspaces of the server, as its lifespan set them: `app.state.workspaces`."""
    return call.state.workspaces


def use(call: Call) -> AbstractAsyncContextManager[OpenWorkspace]:
    """Hold open the workspace of the path."""
    return hub_of(call).use(call.identity, call.params["workspace"])


def check_boot(call: Call) -> None:
    """Refuse what was begun at an earlier start of the server, which took the memory of it along.

    Raises:
        Refused: It was (409).
    """
    boot = call.connection.headers.get(BOOT_HEADER)
    if boot is not None and boot != hub_of(call).boot:
        raise lost()
