"""A server that speaks MCP with the standard library alone, so that it starts at once. It notes that it was started, and what it sees.

Its arguments are the names of its tools, each of which takes a text and returns it behind the tool's name. It has one prompt.
"""

from __future__ import annotations

import json
import os
import sys

names = sys.argv[1:] or ["echo"]
schema = {"type": "object", "properties": {"text": {"type": "string"}}}
tools = [{"name": name, "description": f"Return the text, {name}.", "inputSchema": schema} for name in names]

if note := os.environ.get("TINY_NOTE"):
    with open(note, "a", encoding="utf-8") as file:
        looked = os.environ.get("TINY_LOOK")
        file.write(f"{os.getcwd()}\n" if looked is None else f"{os.path.exists(looked)}\n")

for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    match message["method"]:
        case "initialize":
            server = {"name": "tiny", "version": "1"}
            version = message["params"]["protocolVersion"]
            answer["result"] = {
                "protocolVersion": version,
                "capabilities": {"tools": {}, "prompts": {}},
                "serverInfo": server,
            }
        case "tools/list":
            answer["result"] = {"tools": tools}
        case "tools/call":
            text = f"{message['params']['name']}: {message['params'].get('arguments', {}).get('text')}"
            answer["result"] = {"content": [{"type": "text", "text": text}]}
        case "prompts/list":
            answer["result"] = {"prompts": [{"name": "review", "description": "Review it."}]}
        case "prompts/get":
            content = {"type": "text", "text": "Look for typing errors."}
            answer["result"] = {"messages": [{"role": "user", "content": content}]}
        case "ping":
            answer["result"] = {}
        case _:
            answer["error"] = {"code": -32601, "message": "no such method"}
    print(json.dumps(answer), flush=True)
