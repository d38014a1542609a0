"""MCP servers as toolsets."""

from agentcore.mcp.files import MCPFile as MCPFile
from agentcore.mcp.files import MCPProblem as MCPProblem
from agentcore.mcp.files import read_mcp_file as read_mcp_file
from agentcore.mcp.prompts import MCPPrompts as MCPPrompts
from agentcore.mcp.registry import mcp_toolsets as mcp_toolsets
from agentcore.mcp.registry import register_mcp_server as register_mcp_server
from agentcore.mcp.server import MCPServer as MCPServer
from agentcore.mcp.toolset import MCPToolset as MCPToolset
