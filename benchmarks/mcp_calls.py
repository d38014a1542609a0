"""What a call of an MCP server's tool costs, and a large message, against mcp's own client and its own stdio transport."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

# A script beside this one may be called as the package mcp is: what is installed comes first.
sys.path.sort(key=lambda path: os.path.realpath(path or ".") == os.path.dirname(os.path.realpath(__file__)))

import anyio
from _report import Clock, Report, Settings, report
from mcp.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client

from agentcore import LocalWorkspace, ToolContext, ToolsetContext
from agentcore.mcp import MCPServer, MCPToolset
from agentcore.secrets import SecretRegistry
from agentcore.tools import ToolHost

SERVER = str(Path(__file__).with_name("_mcp_server.py"))
ARGUMENTS = ("-I", "-S", SERVER)

Call = Callable[[str, dict[str, Any]], Coroutine[Any, Any, object]]


def measure(settings: Settings) -> Report:
    """Measure calls one by one, many at once, and one with a large answer."""
    found = Report("What does a call of an MCP server's tool cost, and a message of 32 MB, against mcp's own client?")
    anyio.run(compare, settings, found)
    return found


async def compare(settings: Settings, found: Report) -> None:
    """Let both take turns; the best turn of each counts."""
    calls, at_once = settings.pick(300, 3), settings.pick(1_000, 5)
    ours: dict[str, list[float]] = {}
    bare: dict[str, list[float]] = {}
    async with open_ours() as call_ours, open_bare() as call_bare:
        for _ in range(settings.pick(9, 1)):
            for call, times in ((call_bare, bare), (call_ours, ours)):
                gc.collect()
                clock = Clock()
                for _ in range(calls):
                    await call("echo", {"text": "hello"})
                spent = clock.read()
                times.setdefault("call", []).append(spent.wall / calls)
                times.setdefault("call_cpu", []).append(spent.cpu / calls)
                clock = Clock()
                await together(call, at_once)
                times.setdefault("at_once", []).append(clock.read().wall / at_once)
        size = settings.pick(32_000_000, 100_000)
        for call, times in ((call_ours, ours), (call_bare, bare), (call_ours, ours)):
            clock = Clock()
            await call("large", {"size": size})
            times.setdefault("large", []).append(clock.read().wall)
    found.tell("call_ms", min(ours["call"]) * 1e3)
    found.hold("call_ratio", min(ours["call"]) / min(bare["call"]), at_most=1.5)
    found.hold("call_cpu_ratio", min(ours["call_cpu"]) / min(bare["call_cpu"]), at_most=1.5)
    found.hold("call_of_1000_at_once_ratio", min(ours["at_once"]) / min(bare["at_once"]), at_most=1.5)
    found.tell("message_of_32_mb_s", min(ours["large"]))
    found.hold("message_of_32_mb_ratio", min(ours["large"]) / min(bare["large"]), at_most=0.1)


async def together(call: Call, count: int) -> None:
    """Make so many calls at once."""
    async with anyio.create_task_group() as tasks:
        for _ in range(count):
            tasks.start_soon(call, "echo", {"text": "hello"})


@asynccontextmanager
async def open_bare() -> AsyncGenerator[Call]:
    """Open mcp's client, over its own transport."""
    assert sys.__stderr__ is not None  # a file, as it wants one
    server = StdioServerParameters(command=sys.executable, args=list(ARGUMENTS))
    async with Client(stdio_client(server, errlog=sys.__stderr__), cache=None) as client:
        yield client.call_tool


@asynccontextmanager
async def open_ours() -> AsyncGenerator[Call]:
    """Open a toolset as a conversation does, and call its tools as one does."""
    server = MCPServer(name="bench", command=sys.executable, args=ARGUMENTS)
    async with LocalWorkspace() as workspace:
        secrets = SecretRegistry()
        context = ToolsetContext(workspace=workspace, conversation_id="bench", secrets=secrets, notice=lambda _: None)
        async with MCPToolset(server).open(context) as opened:
            tools = {tool.name: tool for tool in opened.tools()}

            async def call(name: str, arguments: dict[str, Any]) -> object:
                tool = tools[f"mcp__bench__{name}"]
                ctx = ToolContext(
                    workspace=workspace,
                    secrets=secrets,
                    conversation_id="bench",
                    action_id="ev_1",
                    call_id="call_1",
                    tool_name=tool.name,
                    host=cast("ToolHost", None),  # no tool here asks anything of it
                )
                assert tool.execute is not None
                return await tool.execute(tool.parse(arguments), ctx)

            yield call


if __name__ == "__main__":
    report(measure)
