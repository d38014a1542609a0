"""A server written by hand, which says whatever a test wants it to. It needs nothing but the standard library, so it starts at once.

Arguments: `--modern` speaks 2026-07-28 instead of 2025-11-25, `--tools FILE` lists the tools in a file besides its own, `--silent`
answers nothing, `--lines FILE` notes each message that it gets, `--stay` goes on when its input ends.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

ARGS = sys.argv[1:]
MODERN = "--modern" in ARGS


def after(option: str) -> str | None:
    return ARGS[ARGS.index(option) + 1] if option in ARGS else None


def send(message: dict[str, Any]) -> None:
    write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")


def write(data: bytes) -> None:
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def answer(request: Any, result: dict[str, Any]) -> None:
    send({"id": request, "result": {"resultType": "complete", **result} if MODERN else result})


def text(*texts: str, **fields: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": each} for each in texts], **fields}


def schema(**properties: str) -> dict[str, Any]:
    return {"type": "object", "properties": {name: {"type": kind} for name, kind in properties.items()}}


LISTED: list[dict[str, Any]] = [
    {"name": "echo", "description": "Return the text.", "inputSchema": schema(text="string")},
    {"name": "hang", "description": "Answer never.", "inputSchema": schema()},
    {"name": "die", "description": "End.", "inputSchema": schema(signal="integer")},
    {"name": "large", "description": "Return so many characters.", "inputSchema": schema(size="integer")},
    {
        "name": "raw",
        "description": "Write a line; ID in it is the request's id.",
        "inputSchema": schema(line="string", hex="string"),
    },
    {"name": "result", "description": "Return this result.", "inputSchema": schema(result="object")},
    {"name": "error", "description": "Return this error.", "inputSchema": schema(code="integer", message="string")},
    {"name": "flood", "description": "Write so many bytes without an end.", "inputSchema": schema(size="integer")},
    {
        "name": "request",
        "description": "Ask the client; return its answer.",
        "inputSchema": schema(method="string", params="object"),
    },
    {"name": "notify", "description": "Tell the client.", "inputSchema": schema(method="string", params="object")},
    {
        "name": "list",
        "description": "List other tools from now on.",
        "inputSchema": schema(tools="array", silent="boolean"),
    },
    {"name": "deaf", "description": "Read nothing any more.", "inputSchema": schema()},
    {"name": "mute", "description": "Close the output.", "inputSchema": schema()},
    {"name": "environment", "description": "Return a variable.", "inputSchema": schema(variable="string")},
    {
        "name": "structured",
        "description": "Return structured content.",
        "inputSchema": schema(value="object"),
        "outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]},
    },
]
RESOURCES = [
    {"uri": "note://one", "name": "one", "description": "The first note.", "mimeType": "text/plain"},
    {"uri": "note://two", "name": "two"},
]
CAPABILITIES: dict[str, Any] = {
    "tools": {"listChanged": True},
    "resources": {},
    "prompts": {},
    "logging": {},
}


class Server:
    def __init__(self) -> None:
        more = after("--tools")
        self.tools: list[dict[str, Any]] = LISTED + (json.loads(Path(more).read_text()) if more else [])
        self.lines = after("--lines")
        self.waiting: dict[Any, Any] = {}
        self.listeners: list[Any] = []
        self.asked = 0

    def run(self) -> None:
        for line in sys.stdin.buffer:
            message = json.loads(line)
            if self.lines:
                with open(self.lines, "a", encoding="utf-8") as file:
                    file.write(json.dumps(message) + "\n")
            if "--silent" not in ARGS:
                self.take(message)
        while "--stay" in ARGS:
            signal.pause()

    def take(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            request = self.waiting.pop(message["id"], None)
            answer(request, text(json.dumps(message.get("result", message.get("error")))))
            return
        params: dict[str, Any] = message.get("params") or {}
        method, request = message["method"], message.get("id")
        handler = getattr(self, method.replace("/", "_"), None)
        if handler is not None:
            handler(request, params)
        elif request is not None:
            send({"id": request, "error": {"code": -32601, "message": f"Method not found: {method}"}})

    def initialize(self, request: Any, params: dict[str, Any]) -> None:
        info = {"name": "raw", "version": "1"}
        result = {"protocolVersion": params["protocolVersion"], "capabilities": CAPABILITIES, "serverInfo": info}
        answer(request, {**result, "instructions": os.environ.get("INSTRUCTIONS", "Be kind.")})

    def server_discover(self, request: Any, _: dict[str, Any]) -> None:
        if not MODERN:
            send({"id": request, "error": {"code": -32601, "message": "Method not found"}})
            return
        result = {"supportedVersions": ["2026-07-28"], "capabilities": CAPABILITIES, "instructions": "Be kind."}
        answer(request, {**result, "ttlMs": 0, "cacheScope": "private"})

    def subscriptions_listen(self, request: Any, params: dict[str, Any]) -> None:
        self.listeners.append(request)
        self.tell("notifications/subscriptions/acknowledged", {"notifications": params["notifications"]})

    def tell(self, method: str, params: dict[str, Any]) -> None:
        if not MODERN:
            send({"method": method, "params": params})
        for listener in self.listeners:
            meta = {"io.modelcontextprotocol/subscriptionId": listener}
            send({"method": method, "params": {**params, "_meta": meta}})

    def tools_list(self, request: Any, params: dict[str, Any]) -> None:
        begin = int(params.get("cursor") or 0)
        page: dict[str, Any] = {"tools": self.tools[begin : begin + 100]}
        if begin + 100 < len(self.tools):
            page["nextCursor"] = str(begin + 100)
        answer(request, {**page, "ttlMs": 0, "cacheScope": "private"} if MODERN else page)

    def resources_list(self, request: Any, _: dict[str, Any]) -> None:
        answer(request, {"resources": RESOURCES, **({"ttlMs": 0, "cacheScope": "private"} if MODERN else {})})

    def resources_templates_list(self, request: Any, _: dict[str, Any]) -> None:
        templates = [{"uriTemplate": "note://{name}", "name": "note"}]
        answer(request, {"resourceTemplates": templates, **({"ttlMs": 0, "cacheScope": "private"} if MODERN else {})})

    def resources_read(self, request: Any, params: dict[str, Any]) -> None:
        uri = params["uri"]
        if uri not in [each["uri"] for each in RESOURCES]:
            send({"id": request, "error": {"code": -32002, "message": "Resource not found"}})
            return
        contents = [
            {"uri": uri, "text": f"The words of {uri}."},
            {"uri": uri, "blob": "AAECAw==", "mimeType": "audio/wav"},
        ]
        answer(request, {"contents": contents, **({"ttlMs": 0, "cacheScope": "private"} if MODERN else {})})

    def prompts_list(self, request: Any, _: dict[str, Any]) -> None:
        prompt = {"name": "greet", "description": "Greet somebody.", "arguments": [{"name": "who", "required": True}]}
        answer(request, {"prompts": [prompt], **({"ttlMs": 0, "cacheScope": "private"} if MODERN else {})})

    def prompts_get(self, request: Any, params: dict[str, Any]) -> None:
        words = f"Greet {params.get('arguments', {}).get('who', 'nobody')}."
        answer(request, {"messages": [{"role": "user", "content": {"type": "text", "text": words}}]})

    def tools_call(self, request: Any, params: dict[str, Any]) -> None:
        name: str = params["name"]
        if "inputResponses" in params or "requestState" in params:
            again = {key: params.get(key) for key in ("inputResponses", "requestState")}
            answer(request, text(json.dumps(again)))
            return
        arguments: dict[str, Any] = params.get("arguments") or {}
        if name == "list":
            self.tools = arguments["tools"] + [tool for tool in LISTED if tool["name"] == "list"]
            if not arguments.get("silent"):
                self.tell("notifications/tools/list_changed", {})
            answer(request, text("listed"))
        elif name == "request":
            self.asked += 1
            self.waiting[f"server-{self.asked}"] = request
            message: dict[str, Any] = {"id": f"server-{self.asked}", "method": arguments["method"]}
            send({**message, "params": arguments["params"]} if "params" in arguments else message)
        else:
            meta: dict[str, Any] = params.get("_meta") or {}
            call(name, request, arguments, meta)


def call(name: str, request: Any, arguments: dict[str, Any], meta: dict[str, Any]) -> None:
    match name:
        case "echo":
            answer(request, text(arguments.get("text", "")))
        case "hang":
            send(
                {
                    "method": "notifications/progress",
                    "params": {"progressToken": meta["progressToken"], "progress": 1, **arguments},
                }
            )
        case "large":
            answer(request, text("x" * arguments["size"]))
        case "result":
            answer(request, arguments["result"])
        case "error":
            send({"id": request, "error": arguments})
        case "notify":
            send(arguments)
            answer(request, text("told"))
        case "environment":
            answer(request, text(os.environ.get(arguments["variable"], "not set")))
        case "structured":
            answer(request, {"content": [], "structuredContent": arguments["value"]})
        case "die" | "raw" | "flood" | "deaf" | "mute":
            misbehave(name, request, arguments)
        case _:
            answer(request, text(f"{name} was called with {json.dumps(arguments)}"))


def misbehave(name: str, request: Any, arguments: dict[str, Any]) -> None:
    match name:
        case "die":
            print("something broke", file=sys.stderr, flush=True)
            if "signal" in arguments:
                os.kill(os.getpid(), arguments["signal"])
                signal.pause()
            os._exit(3)
        case "raw":
            line = bytes.fromhex(arguments["hex"]) if "hex" in arguments else arguments["line"].encode()
            write(line.replace(b"ID", json.dumps(request).encode()) + b"\n")
        case "flood":
            write(b'{"jsonrpc": "2.0", "result": "')
            for _ in range(arguments["size"] // 2**20):
                write(b"x" * 2**20)
        case "deaf":
            answer(request, text("deaf"))
            while True:
                signal.pause()
        case _:
            os.close(1)
            signal.pause()


if __name__ == "__main__":
    Server().run()
