"""An MCP server that costs as little as one can: the other side of `mcp_calls.py`. It needs the standard library alone."""

from __future__ import annotations

import json
import sys
from typing import Any

TOOLS = [
    {"name": "echo", "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}}},
    {"name": "large", "inputSchema": {"type": "object", "properties": {"size": {"type": "integer"}}}},
]


def result_of(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """Return the result of a request; None where it is not known."""
    if method == "initialize":
        info = {"name": "bench", "version": "1"}
        return {"protocolVersion": params["protocolVersion"], "capabilities": {"tools": {}}, "serverInfo": info}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "tools/call":
        arguments = params["arguments"]
        text = arguments["text"] if params["name"] == "echo" else "x" * arguments["size"]
        return {"content": [{"type": "text", "text": text}]}
    return None


def main() -> None:
    """Answer until the input ends."""
    for line in sys.stdin.buffer:
        message = json.loads(line)
        if "id" not in message:
            continue
        result = result_of(message["method"], message.get("params") or {})
        answer = {"error": {"code": -32601, "message": "Method not found"}} if result is None else {"result": result}
        sys.stdout.buffer.write(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}).encode() + b"\n")
        sys.stdout.buffer.flush()


main()
