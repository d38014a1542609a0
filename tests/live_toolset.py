"""A toolset whose other side a test has in its hands, and what came of it: `from live_toolset import Service, raw`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import anyio
from anyio.lowlevel import checkpoint
from pydantic import JsonValue

import talks
from agentcore import (
    ActionStarted,
    AgentErrorEvent,
    Conversation,
    ConversationStateUpdateEvent,
    OpenToolset,
    SystemPromptEvent,
    ToolContext,
    ToolsetContext,
)
from agentcore.events import ToolsetNotice
from agentcore.tools import AnyTool, ToolsetSpec, raw_tool, register_toolset, tool
from talks import events_of


def raw(name: str, description: str = "A tool of the service.", ran: list[str] | None = None, **schema: Any) -> AnyTool:
    """Make a tool that notes that it ran."""

    async def execute(arguments: dict[str, JsonValue], ctx: ToolContext) -> str:
        await checkpoint()
        (talks.ran if ran is None else ran).append(ctx.tool_name)
        return f"{name} ran with {arguments}"

    return raw_tool(name, description, {"type": "object", **schema}, execute)


class Service:
    """A toolset, and what it talks to. `tools`, `failure` and `gate` may be changed while it is open."""

    def __init__(self, name: str = "service", *tools: AnyTool) -> None:
        self.name = name
        self.session_key: str | None = None
        self.tools: Sequence[AnyTool] = tools
        self.instructions: str | None = None
        self.failure: BaseException | None = None
        """Raised by the next opening, or by each one."""
        self.gate: anyio.Event | None = None
        """What openings wait for."""
        self.opened = 0
        self.closed = 0
        self.reads = 0
        self.contexts: list[ToolsetContext] = []
        self.ends: list[_End] = []
        self._changed = anyio.Event()

    def record(self) -> ToolsetSpec | None:
        return ToolsetSpec(name="live_toolset.Service", params={"name": self.name})

    @asynccontextmanager
    async def open(self, context: ToolsetContext, /) -> AsyncGenerator[OpenToolset]:
        self.contexts.append(context)
        self._tell()
        if self.gate is not None:
            await self.gate.wait()
        await checkpoint()
        if self.failure is not None:
            raise self.failure
        # A scope that is held open, as by every real client: it may only be left by the task that entered it.
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            end = _End()
            self.ends.append(end)
            self.opened += 1
            self._tell()
            try:
                yield _Open(self, end)
                await checkpoint()  # a goodbye
            finally:
                self.closed += 1
                self._tell()
                tasks.cancel_scope.cancel()

    def end(self, why: str | BaseException = "the connection broke") -> None:
        """End what was opened last, from the other side."""
        self.ends[-1].why = why
        self.ends[-1].event.set()

    async def until_opened(self, times: int) -> None:
        """Wait until it has been opened so often."""
        await self._until(lambda: self.opened >= times)

    async def until_closed(self, times: int) -> None:
        """Wait until it has been left so often."""
        await self._until(lambda: self.closed >= times)

    async def until_asked(self, times: int) -> None:
        """Wait until somebody tried to open it so often."""
        await self._until(lambda: len(self.contexts) >= times)

    async def _until(self, holds: Any) -> None:
        with anyio.fail_after(20):
            while not holds():
                await self._changed.wait()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = anyio.Event()


register_toolset("live_toolset.Service", Service)


class _End:
    def __init__(self) -> None:
        self.event = anyio.Event()
        self.why: str | BaseException = ""


class _Open:
    def __init__(self, service: Service, end: _End) -> None:
        self._service = service
        self._end = end

    @property
    def instructions(self) -> str | None:
        return self._service.instructions

    def tools(self) -> Sequence[AnyTool]:
        self._service.reads += 1
        return self._service.tools

    async def wait_closed(self) -> str:
        await self._end.event.wait()
        if isinstance(self._end.why, BaseException):
            raise self._end.why
        return self._end.why


@tool
async def local(n: int) -> int:
    """A tool of the agent's own."""
    return n


def notices_of(conversation: Conversation) -> list[tuple[str, str]]:
    """Give code and text of each notice that was recorded."""
    updates = [event.update for event in events_of(conversation, ConversationStateUpdateEvent)]
    return [(notice.code, notice.detail) for notice in updates if isinstance(notice, ToolsetNotice)]


def prompts_of(conversation: Conversation) -> list[list[str]]:
    """Give the tools' names of each prompt that was recorded."""
    return [[schema.name for schema in event.tools] for event in events_of(conversation, SystemPromptEvent)]


def refusals_in(conversation: Conversation) -> list[tuple[str, str | None]]:
    """Give outcome and code of each error that answered a call."""
    return [(event.outcome, event.code) for event in events_of(conversation, AgentErrorEvent)]


def started_in(conversation: Conversation) -> int:
    """Count the actions that started."""
    return len(events_of(conversation, ActionStarted))
