"""The live tools of one conversation: what has to be opened is opened once, when first called, by a task of its own."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import anyio
from anyio.abc import TaskGroup, TaskStatus

from agentcore.conversation.groups import bare
from agentcore.conversation.telling import masked_repr
from agentcore.errors import ToolError
from agentcore.logs import get_logger
from agentcore.secrets import SecretRegistry
from agentcore.tools import AnyTool, Observation, ToolContext
from agentcore.workspace import Workspace

__all__ = ["Execute", "ToolBench"]

Execute = Callable[[Any, ToolContext], Awaitable[Observation]]
"""What does a tool's actions."""

_log = get_logger(__name__)

_CLOSE_SECONDS = 10.0
"""How long a tool may take to close before it is cancelled."""


class _Owner:
    """Opens and closes one tool's executor in one task, for callers in any task."""

    def __init__(self, name: str, secrets: SecretRegistry) -> None:
        self.name = name
        self._secrets = secrets
        self.execute: Execute | None = None
        """What does the tool's actions, while it is open."""
        self._scope = anyio.CancelScope()
        self._stop = anyio.Event()
        self._done = anyio.Event()
        self._failure: BaseException | None = None

    async def run(self, opened: AbstractAsyncContextManager[Execute], *, task_status: TaskStatus[None]) -> None:
        was_open = False
        try:
            with self._scope:
                async with opened as self.execute:
                    was_open = True
                    task_status.started()
                    await self._stop.wait()
        except Exception as error:
            if not was_open:
                raise  # the call that wanted it is told
            # One tool that ends by itself does not end the conversation: the next call opens it again.
            self._failure = bare(error)
            _log.warning("tool ended", tool=self.name, error=masked_repr(self._secrets, self._failure))
        finally:
            self.execute = None
            self._done.set()

    async def aclose(self) -> None:
        """Close it.

        Raises:
            Exception: What closing it raised.
        """
        ended_before, self._failure = self._failure, None
        self._stop.set()
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True) as patience:
            await self._done.wait()
        if patience.cancelled_caught:
            _log.warning("tool cancelled: it took too long to close", tool=self.name, seconds=_CLOSE_SECONDS)
            self._scope.cancel()
        if ended_before is None and self._failure is not None:
            self._failure.add_note(f"Raised while the tool {self.name!r} was closed.")
            raise self._failure


class ToolBench:
    """Gives the executor of each tool."""

    def __init__(self, owners: TaskGroup, workspace: Workspace, conversation_id: str, secrets: SecretRegistry) -> None:
        self._tasks = owners
        self._workspace = workspace
        self._id = conversation_id
        self._secrets = secrets
        self._owners: dict[str, _Owner] = {}
        self._opening: dict[str, anyio.Lock] = {}  # two calls of one reply may both be the first

    async def executor(self, tool: AnyTool) -> Execute:
        """Give what runs the tool's actions, opened if it has to be.

        Raises:
            Exception: What opening it raised; the next call tries again.
        """
        if tool.open is None:
            assert tool.execute is not None
            return tool.execute
        async with self._opening.setdefault(tool.name, anyio.Lock()):
            owner = self._owners.get(tool.name)
            if owner is None or owner.execute is None:
                self._owners.pop(tool.name, None)
                owner = _Owner(tool.name, self._secrets)
                await self._tasks.start(owner.run, tool.open(self._workspace, self._id), name=f"tool {tool.name}")
                self._owners[tool.name] = owner
            if owner.execute is None:
                raise ToolError(f"{tool.name!r} ended as soon as it was open.")
            return owner.execute

    async def aclose(self) -> None:
        """Close what was opened, the newest first, and each of them whatever the others do.

        Raises:
            Exception: What closing one of them raised.
        """
        failures: list[Exception] = []
        while self._owners:
            _, owner = self._owners.popitem()
            try:
                await owner.aclose()
            except Exception as error:
                failures.append(error)
        if failures:
            raise bare(ExceptionGroup("closing tools", failures))
