"""MCP servers that are open without a conversation: `async with opened(plain()) as it: await it.call("add", a=1, b=2)`."""

from __future__ import annotations

import sys
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
from pydantic import JsonValue

from agentcore import OpenToolset, ToolContext, ToolsetContext
from agentcore.mcp import MCPServer, MCPToolset
from agentcore.mcp.names import tool_name
from agentcore.secrets import SecretRegistry
from agentcore.tools import AnyTool, Observation, Resumption, Toolset
from agentcore.workspace import LocalWorkspace, Workspace
from opened_tool import KeepingHost

SERVERS = Path(__file__).parent / "mcp" / "servers"


def program(name: str, *args: str, called: str | None = None, **settings: Any) -> MCPServer:
    """Return the settings of a server program of the folder `servers`."""
    return MCPServer(name=called or name, command=sys.executable, args=(str(SERVERS / f"{name}.py"), *args), **settings)


class Opened:
    """An open server, and what people were told of it."""

    def __init__(
        self, server: MCPServer, toolset: OpenToolset, workspace: Workspace, secrets: SecretRegistry, notices: list[str]
    ) -> None:
        self.server = server
        self.toolset = toolset
        self.workspace = workspace
        self.secrets = secrets
        self.notices = notices
        self.host = KeepingHost(workspace, secrets)
        self._count = 0

    def tool(self, name: str) -> AnyTool:
        """Find a tool by the server's own name."""
        return next(tool for tool in self.toolset.tools() if tool.name == tool_name(self.server.name, name))

    @property
    def names(self) -> list[str]:
        return [tool.name for tool in self.toolset.tools()]

    async def call(self, name: str, **arguments: JsonValue) -> Observation:
        """Call a tool as a conversation does."""
        tool = self.tool(name)
        assert tool.execute is not None
        observation: Observation = await tool.execute(tool.parse(arguments), self._context(tool))
        return observation

    async def resumed(self, name: str, resumption: Resumption, **arguments: JsonValue) -> str:
        """Continue a call that asked something; return its words."""
        tool = self.tool(name)
        assert tool.resume is not None
        return _words(await tool.resume(tool.parse(arguments), resumption, self._context(tool)))

    def _context(self, tool: AnyTool) -> ToolContext:
        self._count += 1
        return ToolContext(
            workspace=self.workspace,
            secrets=self.secrets,
            conversation_id="conversation",
            action_id=f"ev_{self._count}",
            call_id=f"call_{self._count}",
            tool_name=tool.name,
            host=self.host,
        )

    async def text(self, name: str, **arguments: JsonValue) -> str:
        """Call a tool; return its words."""
        return _words(await self.call(name, **arguments))


def _words(observation: Observation) -> str:
    return "\n".join(getattr(block, "text", repr(block)) for block in observation.blocks())


@asynccontextmanager
async def opened(
    server: MCPServer,
    folder: Path | str = ".",
    secrets: Mapping[str, Any] | None = None,
    *,
    seconds: float = 60,
    toolset: Toolset | None = None,
) -> AsyncGenerator[Opened]:
    """Open a server, within a bound."""
    registry, notices = SecretRegistry(secrets), list[str]()
    with anyio.fail_after(seconds):
        async with LocalWorkspace(folder) as workspace:
            context = ToolsetContext(
                workspace=workspace, conversation_id="conversation", secrets=registry, notice=notices.append
            )
            async with (toolset or MCPToolset(server)).open(context) as it:
                yield Opened(server, it, workspace, registry, notices)
