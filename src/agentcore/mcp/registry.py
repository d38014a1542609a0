"""The MCP servers that this program named, by which a log's record of one is made a toolset again.

A record holds the name of a server and the hash of its settings, and nothing that could be started or reached: a log may come from
anywhere. Above: programs, by `mcp_toolsets`; the command line, by `--mcp`.
"""

from __future__ import annotations

from os import PathLike
from typing import Final, final

from pydantic import JsonValue

from agentcore._arguments import checked, instance_of
from agentcore.errors import MCPFileError, ToolNotFound
from agentcore.logs import get_logger
from agentcore.mcp.files import MCPFile, read_mcp_file
from agentcore.mcp.server import MCPServer
from agentcore.mcp.toolset import MCPToolset
from agentcore.tools import register_toolset

_log = get_logger(__name__)

_SERVER: Final = instance_of(MCPServer, description="an MCPServer")
_FILE: Final = instance_of(str, PathLike, MCPFile, description="the path of a file, or an MCPFile")


@final
class MCPServerRegistry:
    """The servers that a record may name."""

    def __init__(self) -> None:
        self._servers: dict[str, dict[str, MCPServer]] = {}

    def register(self, server: MCPServer) -> None:
        """Let records name this server. There may be several of one name, as in two files of two agents."""
        self._servers.setdefault(server.name, {})[server.digest] = server

    def resolve(self, name: JsonValue, digest: JsonValue = None) -> MCPToolset:
        """Return the toolset of a server that was registered.

        Args:
            name: The server's name.
            digest: The hash of its settings. None: those that it has, where there is one server of that name.

        Raises:
            ToolNotFound: There is no such server, or its settings are others.
        """
        servers = self._servers.get(name, {}) if isinstance(name, str) else {}
        shown = name if isinstance(name, str) else repr(name)
        if not servers:
            raise _refusal(shown, "this program has no MCP server of that name.")
        if digest is None and len(servers) == 1:
            (server,) = servers.values()
            return MCPToolset(server)
        if digest is None:
            raise _refusal(shown, "this program has several MCP servers of that name.")
        server = servers.get(digest) if isinstance(digest, str) else None
        if server is None:
            raise _refusal(shown, "its settings have changed since.")
        return MCPToolset(server)


def _refusal(name: str, reason: str) -> ToolNotFound:
    return ToolNotFound(
        name,
        f"{reason} Pass --mcp FILE with the file that lists it, or in a program the agent with its tools, or call "
        "`register_mcp_server`.",
        what="MCP server",
    )


# The one registry of the process, for programs that need no second one.
_REGISTRY: Final = MCPServerRegistry()

resolve_mcp_server = _REGISTRY.resolve


@checked(server=_SERVER)
def register_mcp_server(server: MCPServer) -> None:
    """Let logs name this server, so that a conversation that used it can be resumed without passing the agent again."""
    _REGISTRY.register(server)
    # An installed distribution declares it; a source checkout does not.
    register_toolset("mcp", resolve_mcp_server)


@checked(file=_FILE)
def mcp_toolsets(file: str | PathLike[str] | MCPFile) -> list[MCPToolset]:
    """Return the servers of a file as toolsets: `Agent(tools=[*mcp_toolsets(".mcp.json")])`. They are registered, too.

    Programs run in the conversation's workspace. For those that are to run on this machine, whatever the workspace is, pass
    `read_mcp_file(path, runs="host")`. It touches the disk.

    Raises:
        MCPFileError: Nothing in the file can be understood. A bad entry is logged as a warning, and left out.
    """
    read = file if isinstance(file, MCPFile) else read_mcp_file(file)
    if not read.readable:
        raise MCPFileError(str(read.problems[0]))
    for problem in read.problems:
        _log.warning("MCP server file", problem=str(problem))
    for server in read.servers:
        register_mcp_server(server)
    return [MCPToolset(server) for server in read.servers]
