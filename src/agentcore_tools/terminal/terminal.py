"""The shells of one conversation, each under its name."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import final

import anyio
from anyio.abc import TaskGroup

from agentcore.errors import ToolError
from agentcore.tools import ToolContext
from agentcore.workspace import Workspace
from agentcore_tools._output import left_mark
from agentcore_tools.terminal.action import TerminalAction
from agentcore_tools.terminal.observation import TerminalObservation
from agentcore_tools.terminal.session import Session
from agentcore_tools.terminal.settings import TerminalSettings

__all__ = ["Terminal", "open_terminal"]


@asynccontextmanager
async def open_terminal(
    workspace: Workspace, conversation_id: str, *, settings: TerminalSettings
) -> AsyncGenerator[Terminal]:
    """Open a terminal for one conversation; leaving ends its shells and everything that was started there."""
    try:
        async with anyio.create_task_group() as tasks:
            yield Terminal(workspace, conversation_id, tasks, settings)
            tasks.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        error, *others = group.exceptions
        if others:
            raise
        # The group would only say that there was a task group.
        raise error from error.__cause__


@final
class Terminal:
    """Does the actions of one conversation: those of one session one at a time."""

    def __init__(
        self, workspace: Workspace, conversation_id: str, tasks: TaskGroup, settings: TerminalSettings
    ) -> None:
        self._workspace = workspace
        self._conversation_id = conversation_id
        self._tasks = tasks
        self._settings = settings
        self._sessions: dict[str, Session] = {}

    async def __call__(self, action: TerminalAction, ctx: ToolContext) -> TerminalObservation:
        """Do an action. Cancelling it ends the command that runs in that session, with all that the command started."""
        return await self._session(action.session)(action, ctx)

    def _session(self, name: str) -> Session:
        if (found := self._sessions.get(name)) is not None:
            return found
        if len(self._sessions) >= self._settings.sessions:
            for other, session in tuple(self._sessions.items()):
                if session.is_over:
                    del self._sessions[other]
        if len(self._sessions) >= self._settings.sessions:
            raise ToolError(
                f"{self._settings.sessions} sessions are open, and there may not be more: "
                f"{', '.join(map(repr, self._sessions))}. Use one of them, or close one: run `exit` in it, with reset if "
                "something runs there."
            )
        marks = {"AGENTCORE_TERMINAL": left_mark(self._conversation_id, name)}
        session = self._sessions[name] = Session(name, self._workspace, self._tasks, self._settings, marks)
        return session
