"""The live tools of one conversation: what has to be opened is opened once, when first called, by a task of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
from anyio.abc import TaskGroup, TaskStatus

from agentcore.tools import AnyTool, Observation, ToolContext
from agentcore.workspace import Workspace

__all__ = ["Execute", "ToolBench"]

Execute = Callable[[Any, ToolContext], Awaitable[Observation]]
"""What does a tool's actions."""

_CLOSE_SECONDS = 10.0


class _Owner:
    """Opens and closes one tool's executor in one task, for callers in any task."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._stop = anyio.Event()
        self._done = anyio.Event()

    async def run(self, opened: AbstractAsyncContextManager[Execute], *, task_status: TaskStatus[Execute]) -> None:
        try:
            async with opened as execute:
                task_status.started(execute)
                await self._stop.wait()
        finally:
            self._done.set()

    async def aclose(self) -> None:
        self._stop.set()
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            await self._done.wait()


class ToolBench:
    """Gives the executor of each tool."""

    def __init__(self, owners: TaskGroup, workspace: Workspace, conversation_id: str) -> None:
        self._tasks = owners
        self._workspace = workspace
        self._id = conversation_id
        self._open: dict[str, tuple[_Owner, Execute]] = {}
        self._opening = anyio.Lock()  # two calls of one reply may both be the first

    async def executor(self, tool: AnyTool) -> Execute:
        """Give what runs the tool's actions, opened if it has to be.

        Raises:
            Exception: What opening it raised; the next call tries again.
        """
        if tool.open is None:
            assert tool.execute is not None
            return tool.execute
        async with self._opening:
            if tool.name in self._open:
                return self._open[tool.name][1]
            owner = _Owner(tool.name)
            execute: Execute = await self._tasks.start(
                owner.run, tool.open(self._workspace, self._id), name=f"tool {tool.name}"
            )
            self._open[tool.name] = (owner, execute)
            return execute

    async def aclose(self) -> None:
        """Close what was opened, the newest first."""
        while self._open:
            _, (owner, _) = self._open.popitem()
            await owner.aclose()
