"""Opening a tool that works on files."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import TypeVar

from agentcore.workspace import Workspace
from agentcore_tools.files.files import Files, open_files
from agentcore_tools.files.reach import Reach

__all__ = ["opening"]

ExecutorT = TypeVar("ExecutorT")


def opening(
    executor: Callable[[Files], ExecutorT], reach: Reach
) -> Callable[[Workspace, str], AbstractAsyncContextManager[ExecutorT]]:
    """Give what a tool is opened by: it makes an executor of the conversation's files."""

    @asynccontextmanager
    async def opened(workspace: Workspace, conversation_id: str) -> AsyncGenerator[ExecutorT]:
        yield executor(open_files(workspace, conversation_id, reach))

    return opened
