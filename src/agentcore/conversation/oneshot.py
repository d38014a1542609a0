"""A whole conversation in one call, for scripts and first programs: it lives in memory and ends with its result."""

from __future__ import annotations

from collections.abc import Mapping
from os import PathLike
from typing import Any

import anyio
from anyio import NoEventLoopError
from anyio.lowlevel import current_token

from agentcore.agent import Agent
from agentcore.conversation.handle import Conversation
from agentcore.conversation.questions import OnQuestion
from agentcore.conversation.result import RunResult
from agentcore.errors import AgentcoreError
from agentcore.messages import Message
from agentcore.secrets import SecretSource
from agentcore.security import Checks, Confirm
from agentcore.usage import Limits
from agentcore.workspace import Workspace


async def run(
    agent: Agent,
    message: str | Message,
    workspace: Workspace | str | PathLike[str] | None = None,
    *,
    confirm: Checks | Confirm | None = None,
    limits: Limits | None = None,
    secrets: Mapping[str, SecretSource] | None = None,
    deps: Any = None,
    on_question: OnQuestion | None = None,
) -> RunResult:
    """Run an agent once: `result = await agentcore.run(agent, "...")`. The arguments are those of `Conversation`.

    The conversation is in memory and ends here. What waits for approval is in `result.pending`, and nothing can approve or
    answer it any more: pass a function as `confirm` or `on_question`, or use `Conversation`.

    Raises:
        RunError: A step raised.
    """
    try:
        async with Conversation(
            agent,
            workspace,
            confirm=confirm,
            limits=limits,
            secrets=secrets,
            deps=deps,
            on_question=on_question,
        ) as conversation:
            return await conversation.run(message)
    except AgentcoreError as error:
        # Of agentcore's frames only this one. A comment behind it would add a line of ^^^^ to the traceback.
        raise error.with_traceback(None) from error.__cause__


def run_sync(
    agent: Agent,
    message: str | Message,
    workspace: Workspace | str | PathLike[str] | None = None,
    *,
    confirm: Checks | Confirm | None = None,
    limits: Limits | None = None,
    secrets: Mapping[str, SecretSource] | None = None,
    deps: Any = None,
    on_question: OnQuestion | None = None,
) -> RunResult:
    """Run an agent once, in a program that is not async. See `run`.

    Raises:
        RuntimeError: An event loop runs in this thread.
        RunError: A step raised.
    """
    try:
        current_token()
    except NoEventLoopError:
        pass
    else:
        raise RuntimeError("run_sync() cannot wait inside a running event loop: use `await agentcore.run(...)` there.")

    async def main() -> RunResult:
        return await run(
            agent,
            message,
            workspace,
            confirm=confirm,
            limits=limits,
            secrets=secrets,
            deps=deps,
            on_question=on_question,
        )

    try:
        return anyio.run(main)
    except AgentcoreError as error:
        raise error.with_traceback(None) from error.__cause__
