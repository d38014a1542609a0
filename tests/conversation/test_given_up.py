"""Callers that give a run up, more than once."""

from __future__ import annotations

import asyncio  # noqa: TID251  its own cancellation, which goes through anyio's shields, is what is tested
from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agentcore import Agent, Conversation, ConversationStatus
from agentcore.testing import ScriptedLLM, call
from agentcore.tools import tool


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@tool(resources=())
async def hang() -> str:
    """Never end."""
    await anyio.sleep_forever()
    return ""


@pytest.mark.parametrize("rounds", range(4))
async def test_the_last_caller_that_is_cancelled_twice_interrupts_the_run(tmp_path: Path, rounds: int) -> None:
    agent = Agent(llm=ScriptedLLM([call("hang")]), tools=[hang])
    async with Conversation(agent, tmp_path) as conversation:
        caller = asyncio.ensure_future(conversation.run("go"))
        with anyio.fail_after(5):
            while not conversation.state.open_actions:
                await checkpoint()
            caller.cancel()
            for _ in range(rounds):
                await asyncio.sleep(0)
            caller.cancel()
            while conversation.state.status is not ConversationStatus.PAUSED:
                await checkpoint()
