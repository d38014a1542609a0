"""An MCP server as a toolset.

Above: agents (`Agent(tools=[MCPToolset(server)])`). Below: the connection, whose modules import the package `mcp` and are imported
here, when a server is first opened.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from types import ModuleType
from typing import Final, TypeAlias, final

from agentcore._arguments import Argument, checked
from agentcore._threads import Threads
from agentcore.errors import MissingExtra
from agentcore.mcp.server import MCPServer
from agentcore.tools import OpenToolset, ToolsetContext, ToolsetSpec


def _is_server(value: object) -> bool:
    return isinstance(value, MCPServer)


_SERVER: Final = Argument("an MCPServer", _is_server)
_THREADS: Final = Threads("mcp", 1)

_Open: TypeAlias = Callable[[MCPServer, ToolsetContext], AbstractAsyncContextManager[OpenToolset]]


@final
@checked(server=_SERVER)
@dataclass(frozen=True)
class MCPToolset:
    """The tools of an MCP server: `Agent(tools=[MCPToolset(MCPServer(name="time", command="mcp-server-time"))])`.

    They are called `mcp__server__tool`. Each conversation has a connection of its own, which is opened with its first message,
    and again when it broke.
    """

    server: MCPServer

    @property
    def name(self) -> str:
        """The server's name."""
        return self.server.name

    @property
    def session_key(self) -> str | None:
        """None: a server may hold a state for each conversation."""
        return None

    def record(self) -> ToolsetSpec:
        """Return the server's name and digest: a log must not be able to start a program."""
        return ToolsetSpec(name="mcp", params={"name": self.server.name, "digest": self.server.digest})

    @asynccontextmanager
    async def open(self, context: ToolsetContext, /) -> AsyncGenerator[OpenToolset]:
        """Start the server or connect to it, and list its tools.

        Raises:
            MCPServerError: It can't be started or reached, or a variable in its settings has no value.
            MissingExtra: The package `mcp` is not installed.
        """
        # A thread, because importing it takes a second.
        open_server: _Open = (await _THREADS.run(load, "connection", abandon_on_cancel=True)).open_server
        async with open_server(self.server, context) as opened:
            yield opened


def load(module: str) -> ModuleType:
    """Import one of the modules here that import the package `mcp`. It takes a second.

    Raises:
        MissingExtra: The package `mcp` is not installed.
    """
    try:
        return import_module(f"agentcore.mcp.{module}")
    except ImportError as error:
        if (error.name or "").partition(".")[0] not in ("mcp", "mcp_types", "httpx2"):
            raise
        raise MissingExtra("An MCP server", "mcp") from None
