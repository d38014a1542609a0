"""Every cell of the status table, by doing it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from agentcore import Agent, AlwaysConfirm, Conversation, ConversationStatus, Limits
from agentcore.errors import NothingPending
from agentcore.testing import ScriptedLLM, call, say
from agentcore.tools import tool

IDLE = ConversationStatus.IDLE
PAUSED = ConversationStatus.PAUSED
WAITING = ConversationStatus.WAITING_FOR_CONFIRMATION
FINISHED = ConversationStatus.FINISHED
STUCK = ConversationStatus.STUCK
ERROR = ConversationStatus.ERROR


@tool(resources=())
async def ping() -> str:
    """Ping."""
    return "pong"


async def _to_idle(conversation: Conversation) -> None:
    await conversation.send("go")


async def _to_paused(conversation: Conversation) -> None:
    await conversation.send("go")
    await conversation.pause()


async def _to_waiting(conversation: Conversation) -> None:
    await conversation.run("go")


async def _send(conversation: Conversation) -> None:
    await conversation.send("more")


async def _run(conversation: Conversation) -> None:
    await conversation.run()


async def _pause(conversation: Conversation) -> None:
    await conversation.pause()


async def _interrupt(conversation: Conversation) -> None:
    await conversation.interrupt()


async def _reject(conversation: Conversation) -> None:
    await conversation.reject("no")


Do = Callable[[Conversation], Awaitable[None]]

# How each status is reached: the model's script, the policy and limits, and what is done.
WAYS: dict[ConversationStatus, tuple[list[object], AlwaysConfirm | None, Limits | None, Do]] = {
    IDLE: ([say("x")], None, None, _to_idle),
    PAUSED: ([say("x")], None, None, _to_paused),
    WAITING: ([call("ping"), say("x")], AlwaysConfirm(), None, _to_waiting),
    FINISHED: ([say("x"), say("y")], None, None, _to_waiting),
    STUCK: ([say(""), say(""), say("x")], None, None, _to_waiting),
    ERROR: ([call("ping"), say("x")], None, Limits(steps=1), _to_waiting),
}

CELLS: list[tuple[ConversationStatus, Do, ConversationStatus]] = [
    (IDLE, _send, IDLE),
    (IDLE, _run, FINISHED),
    (IDLE, _pause, PAUSED),
    (IDLE, _interrupt, IDLE),
    (PAUSED, _send, PAUSED),
    (PAUSED, _run, FINISHED),
    (PAUSED, _pause, PAUSED),
    (PAUSED, _interrupt, PAUSED),
    (WAITING, _send, WAITING),
    (WAITING, _run, WAITING),
    (WAITING, _pause, WAITING),
    (WAITING, _interrupt, PAUSED),
    (WAITING, _reject, IDLE),
    (FINISHED, _send, IDLE),
    (FINISHED, _run, FINISHED),
    (FINISHED, _pause, FINISHED),
    (FINISHED, _interrupt, FINISHED),
    (STUCK, _send, IDLE),
    (STUCK, _run, FINISHED),
    (STUCK, _pause, STUCK),
    (STUCK, _interrupt, STUCK),
    (ERROR, _send, IDLE),
    (ERROR, _run, FINISHED),
    (ERROR, _pause, ERROR),
    (ERROR, _interrupt, ERROR),
]


@pytest.mark.parametrize(("status", "do", "expected"), CELLS, ids=lambda v: getattr(v, "__name__", str(v)).strip("_"))
async def test_each_command_leads_where_the_table_says(
    tmp_path: Path, status: ConversationStatus, do: Do, expected: ConversationStatus
) -> None:
    replies, confirm, limits, reach = WAYS[status]
    agent = Agent(llm=ScriptedLLM(replies), tools=[ping])  # type: ignore[arg-type]
    async with Conversation(agent, tmp_path, confirm=confirm, limits=limits) as conversation:
        await reach(conversation)
        assert conversation.state.status is status
        await do(conversation)
        assert conversation.state.status is expected


@pytest.mark.parametrize("status", [IDLE, PAUSED, FINISHED, STUCK, ERROR])
async def test_where_nothing_waits_there_is_nothing_to_decide(tmp_path: Path, status: ConversationStatus) -> None:
    replies, confirm, limits, reach = WAYS[status]
    agent = Agent(llm=ScriptedLLM(replies), tools=[ping])  # type: ignore[arg-type]
    async with Conversation(agent, tmp_path, confirm=confirm, limits=limits) as conversation:
        await reach(conversation)
        with pytest.raises(NothingPending):
            await conversation.approve()
        with pytest.raises(NothingPending):
            await conversation.reject("no")
        assert conversation.state.status is status
