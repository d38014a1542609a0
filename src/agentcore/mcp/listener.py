"""The callbacks for a server that speaks by itself: changes of its lists, its log, questions, and where it may work."""

from __future__ import annotations

from typing import Any, Final, final
from urllib.parse import quote

import anyio
import mcp_types as types
from mcp.client import ClientRequestContext
from mcp.client.session import IncomingMessage

from agentcore._text import Mask, clip
from agentcore.logs import get_logger
from agentcore.mcp.questions import LiveCalls
from agentcore.mcp.server import MCPServer
from agentcore.workspace import LocalWorkspace, Workspace

_log = get_logger(__name__)

_LONGEST: Final = 2_000
_LARGEST: Final = 1_000_000
"""Characters of a line of its log that are looked at."""


@final
class Listener:
    """The callbacks of one connection."""

    def __init__(self, server: MCPServer, workspace: Workspace, mask: Mask) -> None:
        self.server = server
        self.live = LiveCalls(server.name, mask)
        self._workspace = workspace
        self._mask = mask
        self._changed = anyio.Event()

    def note_change(self) -> None:
        """Note that the list of tools is another by now."""
        self._changed.set()

    async def wait_changed(self) -> None:
        """Wait until that is noted, since this was last waited for."""
        await self._changed.wait()
        self._changed = anyio.Event()

    async def list_roots(self, context: ClientRequestContext) -> types.ListRootsResult:
        """Answer the server's question where it may work."""
        del context
        return self.roots()

    def roots(self) -> types.ListRootsResult:
        """Return the workspace's folder, where the server can see it."""
        is_here = self.server.runs == "workspace" or isinstance(self._workspace, LocalWorkspace)
        if self.server.transport != "stdio" or not is_here:
            return types.ListRootsResult(roots=[])
        uri: Any = f"file://{quote(self._workspace.root)}"
        return types.ListRootsResult(roots=[types.Root(uri=uri, name="workspace")])

    async def log(self, params: types.LoggingMessageNotificationParams) -> None:
        """Log what the server logs."""
        text = clip(str(params.data)[:_LARGEST], _LONGEST, mask=self._mask)
        _log.debug("MCP server logged", server=self.server.name, severity=params.level, text=text)

    async def hear(self, message: IncomingMessage) -> None:
        """Note that the list of tools has changed; nothing else is listened to."""
        if isinstance(message, types.ToolListChangedNotification):
            self.note_change()
