"""What a thousand tools of toolsets cost, deferred as they are by themselves: a request, a step, a search.

The conversations take turns, and the best of several runs counts: the rest is what else the machine does.
"""

from __future__ import annotations

import gc
import json
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any, Final

import anyio
from _agents import QuickModel, agent_tools
from _report import Clock, Report, Settings, report
from anyio.lowlevel import checkpoint

from agentcore import Agent, Conversation, Limits, MemoryStore, Message, OpenToolset, ToolsetContext
from agentcore.messages import ToolSchema
from agentcore.tools import AnyTool, ToolsetSpec, raw_tool
from agentcore.tools.catalogue import ToolCatalogue

WARM: Final = 3
"""Steps that are not counted: the toolset is opened in the first one."""
FEW, MANY = 10, 1000


def measure(settings: Settings) -> Report:
    """Measure all of it."""
    found = Report("What do a thousand tools of toolsets cost: a request, a step, a search?")
    few, many = Server(FEW), Server(settings.pick(MANY, 50))
    anyio.run(compare_steps, settings, found, few, many)
    anyio.run(weigh_request, found, many)
    time_search(settings, found, many)
    return found


class Server:
    """A toolset as a server of the usual size has it: a description of 200 characters and four arguments for each tool."""

    name = "server"
    session_key = None
    instructions = None

    def __init__(self, count: int) -> None:
        self._tools = [*(_tool(number) for number in range(count - 1)), *agent_tools()]

    def record(self) -> ToolsetSpec | None:
        """Return None: it is not made again."""

    @asynccontextmanager
    async def open(self, context: ToolsetContext, /) -> AsyncGenerator[OpenToolset]:  # noqa: ARG002 there is no server
        """Be open."""
        yield self

    def tools(self) -> Sequence[AnyTool]:
        """Return its tools."""
        return self._tools

    async def wait_closed(self) -> str:
        """Wait for ever."""
        await anyio.sleep_forever()
        raise AssertionError


def _tool(number: int) -> AnyTool:
    async def execute(arguments: dict[str, Any], ctx: Any) -> None:  # noqa: ARG001 it is not called
        await checkpoint()

    properties = {
        name: {"type": "string", "description": f"The {name} of the record, as it stands in its table."}
        for name in ("owner", "table", "field", "value")
    }
    schema = {"type": "object", "properties": properties, "required": ["owner", "table"]}
    return raw_tool(f"change_record_{number:04}", f"Change a record of kind {number}. " * 6, schema, execute)


async def compare_steps(settings: Settings, found: Report, few: Server, many: Server) -> None:
    """Compare the steps of a conversation with many tools, which are deferred, with those of one with few."""
    steps = settings.pick(100, 4)
    cpu: dict[Server, list[float]] = {few: [], many: []}
    for number in range(settings.pick(14, 1)):
        for server in (few, many) if number % 2 else (many, few):
            gc.collect()
            cpu[server].append(await cpu_of_a_step(server, steps, deferred=server is many))
    found.hold("step_with_1000_tools_to_10_cpu_ratio", min(cpu[many]) / min(cpu[few]), 1.2)
    found.tell("step_with_10_tools_cpu_ms", min(cpu[few]) * 1e3)
    found.tell("step_with_1000_tools_cpu_ms", min(cpu[many]) * 1e3)


async def cpu_of_a_step(server: Server, steps: int, *, deferred: bool) -> float:
    """Give the CPU of a step that calls one of the server's tools."""
    clock = Clock()
    requests = 0

    async def on_request(messages: Sequence[Message]) -> None:  # noqa: ARG001 it counts
        nonlocal requests, clock
        await checkpoint()
        requests += 1
        if requests == WARM:
            clock = Clock()

    agent = Agent(llm=QuickModel(steps + WARM, on_request=on_request, deferred=deferred), tools=[server])
    async with Conversation(agent, store=MemoryStore(), limits=Limits(steps=None)) as conversation:
        await conversation.run("Find where the price is rounded.")
        return clock.read().cpu / steps


async def weigh_request(found: Report, many: Server) -> None:
    """Compare what a request has of tools with the schemas of all."""
    agent = Agent(llm=QuickModel(1, deferred=True), tools=[many])
    async with Conversation(agent, store=MemoryStore()) as conversation:
        await conversation.run("Find where the price is rounded.")
        assert conversation.state.prompt is not None
        sent = weight(conversation.state.prompt.tools)
    everything = weight([tool.schema for tool in (*agent.own_tools, *many.tools())])
    found.hold("request_with_1000_tools_to_all_schemas_size_ratio", sent / everything, 0.1)
    found.tell("all_schemas_characters", everything)
    found.tell("schemas_in_the_request_characters", sent)


def weight(schemas: Sequence[ToolSchema]) -> int:
    """Give the characters of schemas."""
    return sum(len(each.name) + len(each.description) + len(json.dumps(each.parameters)) for each in schemas)


def time_search(settings: Settings, found: Report, many: Server) -> None:
    """Time the first search, which makes the index, and the next ones."""
    catalogue = ToolCatalogue({many.name: many.tools()})
    times: list[float] = []
    for _ in range(settings.pick(20, 2)):
        clock = Clock()
        catalogue.search("change the owner of a record", limit=10, toolset=None, mask=str)
        times.append(clock.read().cpu)
    found.tell("first_search_in_1000_tools_cpu_ms", times[0] * 1e3)
    found.tell("search_in_1000_tools_cpu_ms", min(times) * 1e3)


if __name__ == "__main__":
    report(measure)
