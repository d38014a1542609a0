"""A server that is what it should be, made with mcp's own: over stdio, or with the argument "http" or "sse" over that."""

from __future__ import annotations

import os
import socket
import sys

import anyio
import uvicorn
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import ToolAnnotations

server = MCPServer("plain", instructions="Add before you multiply.")


@server.tool()
async def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


@server.tool(annotations=ToolAnnotations(read_only_hint=True, title="Say it again"))
async def echo(text: str) -> str:
    """Return the text."""
    return text


@server.tool()
async def wait(ctx: Context) -> str:
    """Wait for ever, and note when that is cancelled."""
    await ctx.report_progress(1, 2, "waiting")
    try:
        await anyio.sleep_forever()
    finally:
        print("the call was cancelled", file=sys.stderr, flush=True)
    return "never"


@server.tool()
async def die() -> str:
    """End the process."""
    print("I can't go on", file=sys.stderr, flush=True)
    os._exit(3)


@server.tool()
async def fail() -> str:
    """Raise."""
    raise ToolError("this is wrong")


@server.tool()
async def variable(name: str) -> str:
    """Return one of its variables."""
    return os.environ.get(name, "not set")


def serve(transport: str) -> None:
    """Serve over HTTP, at a port that is printed."""
    app = server.sse_app() if transport == "sse" else server.streamable_http_app()
    listening = socket.create_server(("127.0.0.1", 0))
    print(listening.getsockname()[1], flush=True)
    uvicorn.Server(uvicorn.Config(app, log_level="warning")).run(sockets=[listening])


if __name__ == "__main__":
    if sys.argv[1:]:
        serve(sys.argv[1])
    else:
        server.run("stdio")
