"""A model that answers at once and a tool that does nothing, so that what is left is the runtime."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self

import anyio
from anyio.lowlevel import checkpoint
from pydantic import JsonValue

from agentcore import Agent, Message, Reply, Tool, Usage, tool
from agentcore.llm import CallContext, Delta, ToolCallDelta
from agentcore.messages import TextBlock, ToolCallBlock, ToolSchema

__all__ = ["ANSWER", "THOUGHT", "QuickModel", "agent_of", "agent_tools"]

THOUGHT = "The listing shows the module in which the price is rounded. I read its next part before I change anything."
ANSWER = "".join(
    f"{line:4} def to_{line}_places(value: Decimal) -> Decimal: return round(value, {line})\n" for line in range(14)
)
"""About a kilobyte: what a tool that reads a part of a file answers."""


@tool(resources=())
async def read_part(path: str, first: int, last: int) -> str:
    """Read some lines of a file."""
    return f"{path} {first}-{last}\n{ANSWER}"


class QuickModel:
    """Calls the tool `steps` times, then says that it is done. It does not read what it is sent."""

    name = "bench/quick"

    def __init__(
        self,
        steps: int,
        *,
        latency: float = 0.0,
        on_request: Callable[[Sequence[Message]], Awaitable[None]] | None = None,
        deferred: bool = False,
    ) -> None:
        """Take how often it calls the tool; with `deferred`, through `call_tool`."""
        self._deferred = deferred
        self._steps = steps
        self._latency = latency
        self._on_request = on_request
        self._asked = 0

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, context: CallContext | None = None
    ) -> Reply:
        """Answer, all at once."""
        async with self.stream(messages, tools, context=context) as deltas:
            async for _ in deltas:
                pass
            return deltas.reply

    @asynccontextmanager
    async def stream(
        self,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema] = (),  # noqa: ARG002 - what a model is asked, not what this one reads
        *,
        context: CallContext | None = None,  # noqa: ARG002
    ) -> AsyncGenerator[_Stream]:
        """Answer, in one piece."""
        self._asked += 1
        if self._on_request is not None:
            await self._on_request(messages)
        if self._latency:
            await anyio.sleep(self._latency)
        yield _Stream(self._reply(self._asked))

    async def get_features(self) -> None:
        """Return None: it reads nothing."""
        await anyio.lowlevel.checkpoint()

    def record(self) -> None:
        """Return None: it can't be written down."""

    def _reply(self, number: int) -> Reply:
        usage = Usage(requests=1, input_tokens=1000 + 300 * number, output_tokens=60, unpriced_requests=1)
        if number > self._steps:
            return Reply(message=Message.assistant("It is done."), usage=usage, stop_reason="end", model=self.name)
        name = "read_part"
        arguments: dict[str, JsonValue] = {"path": "src/prices/rounding.py", "first": number, "last": number + 14}
        call = ToolCallBlock(
            id=f"call_{number:06}",
            name="call_tool" if self._deferred else name,
            arguments={"name": name, "arguments": arguments} if self._deferred else arguments,
        )
        message = Message(role="assistant", content=(TextBlock(text=THOUGHT), call))
        return Reply(message=message, usage=usage, stop_reason="tool_calls", model=self.name)


class _Stream:
    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self._said = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delta:
        await checkpoint()
        if self._said or not self.reply.message.tool_calls:
            raise StopAsyncIteration
        self._said = True
        call = self.reply.message.tool_calls[0]
        return ToolCallDelta(index=0, id=call.id, name=call.name, arguments="{}")


def agent_of(model: QuickModel) -> Agent:
    """Give the agent that all benchmarks use."""
    return Agent(llm=model, tools=agent_tools())


def agent_tools() -> list[Tool[Any, Any]]:
    """Give the tools that all benchmarks use."""
    return [read_part]
