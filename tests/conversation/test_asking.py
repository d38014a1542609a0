"""A callback that is asked about actions, while others use the conversation."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from agentcore import ActionEvent, Agent, Conversation, ConversationStatus, RunResult
from agentcore.testing import ScriptedLLM, call, calls, say
from agentcore.tools import tool

ran: list[int] = []


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


@tool(resources=())
async def danger(n: int) -> str:
    """Do something."""
    ran.append(n)
    return f"done {n}"


def agent_of(count: int) -> Agent:
    return Agent(llm=ScriptedLLM([calls(*[call("danger", n=n) for n in range(count)]), say("end")]), tools=[danger])


async def run_while_asked(
    conversation: Conversation, asked: anyio.Event, act: Callable[[], Awaitable[object]]
) -> RunResult:
    """Run, do something once the callback is asked, and give what the run came to."""
    results: list[RunResult] = []

    async def run() -> None:
        results.append(await conversation.run("go"))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(run)
        await asked.wait()
        await act()
    return results[0]


async def test_a_pause_withdraws_the_question_and_the_conversation_can_be_closed(tmp_path: Path) -> None:
    asked, withdrawn = anyio.Event(), anyio.Event()

    async def confirm(event: ActionEvent) -> bool:
        asked.set()
        try:
            await anyio.sleep_forever()
        finally:
            withdrawn.set()
        return True

    with anyio.fail_after(10):
        async with Conversation(agent_of(2), tmp_path, confirm=confirm) as conversation:
            result = await run_while_asked(conversation, asked, conversation.pause)
            assert result.status is ConversationStatus.WAITING_FOR_CONFIRMATION
            await withdrawn.wait()
        assert len(conversation.state.pending) == 2


async def test_what_a_callback_answers_after_a_pause_comes_too_late(tmp_path: Path) -> None:
    asked, answered = anyio.Event(), anyio.Event()

    async def confirm(event: ActionEvent) -> bool:
        asked.set()
        with anyio.CancelScope(shield=True):
            await answered.wait()
        return True

    with anyio.fail_after(10):
        async with Conversation(agent_of(1), tmp_path, confirm=confirm) as conversation:
            await run_while_asked(conversation, asked, conversation.pause)
            answered.set()
            await anyio.wait_all_tasks_blocked()
        assert conversation.state.pending
        assert not ran


async def test_a_message_does_not_withdraw_the_question(tmp_path: Path) -> None:
    asked, sent = anyio.Event(), anyio.Event()

    async def confirm(event: ActionEvent) -> bool:
        asked.set()
        await sent.wait()
        return True

    async def send() -> None:
        await conversation.send("by the way")
        sent.set()

    with anyio.fail_after(10):
        async with Conversation(agent_of(1), tmp_path, confirm=confirm) as conversation:
            assert (await run_while_asked(conversation, asked, send)).text == "end"
        assert ran == [0]


async def test_nobody_is_asked_about_what_was_decided_while_another_was_asked_about(tmp_path: Path) -> None:
    asked: list[object] = []

    async def confirm(event: ActionEvent) -> bool:
        asked.append(event.arguments["n"])
        if event.arguments["n"] == 0:
            await conversation.approve(conversation.state.pending[1].id)
        return True

    async with Conversation(agent_of(2), tmp_path, confirm=confirm) as conversation:
        assert (await conversation.run("go")).text == "end"
    assert asked == [0]
    assert sorted(ran) == [0, 1]
