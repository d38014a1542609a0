"""MCP servers as toolsets."""

from agentcore.mcp.server import MCPServer as MCPServer
from agentcore.mcp.toolset import MCPToolset as MCPToolset
