"""A callback that is asked about actions, while others use the conversation."""

from __future__ import annotations

import threading
from collections.abc import Awaitable, Callable
from unittest.mock import AsyncMock, MagicMock, Mock

import anyio
import anyio.from_thread
import pytest
from anyio.lowlevel import checkpoint

from agentcore import ActionEvent, Agent, AlwaysConfirm, Conversation, ConversationStatus, MemoryStore, NeverConfirm
from agentcore.errors import RunError
from agentcore.security import Approve, Reject
from agentcore.testing import Gate, call, calls, say
from talks import PAUSED, WAITING, change, ran, running, scripted, talk


def agent_of(names: str) -> Agent:
    return scripted([calls(*[call("change", name=name) for name in names]), say("end")], change)


class Asked:
    """A callback that waits for its answer, and may be deaf to being withdrawn."""

    def __init__(self, *, shield: bool = False) -> None:
        self.shield = shield
        self.begun, self.answer, self.withdrawn = anyio.Event(), anyio.Event(), anyio.Event()

    async def __call__(self, event: ActionEvent) -> bool:
        self.begun.set()
        try:
            with anyio.CancelScope(shield=self.shield):
                await self.answer.wait()
        except anyio.get_cancelled_exc_class():
            self.withdrawn.set()
            raise
        return True


@pytest.mark.parametrize(
    ("act", "status"), [(Conversation.pause, WAITING), (Conversation.interrupt, PAUSED)], ids=["pause", "interrupt"]
)
async def test_a_pause_or_an_interrupt_withdraws_the_question_and_the_conversation_can_be_closed(
    act: Callable[[Conversation], Awaitable[object]], status: ConversationStatus
) -> None:
    asked = Asked()
    async with talk(agent_of("ab"), confirm=asked.__call__) as conversation:
        async with running(conversation) as run:
            await asked.begun.wait()
            await act(conversation)
        assert run.result.status is status
        await asked.withdrawn.wait()
    assert len(conversation.state.pending) == 2
    assert not ran


async def test_what_a_callback_answers_after_a_pause_comes_too_late() -> None:
    asked = Asked(shield=True)
    async with talk(agent_of("a"), confirm=asked.__call__) as conversation:
        async with running(conversation):
            await asked.begun.wait()
            await conversation.pause()
        asked.answer.set()
        await anyio.wait_all_tasks_blocked()
    assert conversation.state.pending
    assert not ran


async def test_a_message_does_not_withdraw_the_question() -> None:
    asked = Asked()
    async with talk(agent_of("a"), confirm=asked.__call__) as conversation:
        async with running(conversation) as run:
            await asked.begun.wait()
            await conversation.send("by the way")
            asked.answer.set()
        assert run.result.text == "end"
    assert ran == ["a"]


async def test_a_decision_made_elsewhere_withdraws_the_question_to_the_callback() -> None:
    asked = Asked()
    async with talk(agent_of("a"), confirm=asked.__call__) as conversation:
        async with running(conversation) as run:
            await asked.begun.wait()
            await conversation.approve(by="somebody else")
        assert run.result.text == "end"


async def test_nobody_is_asked_about_what_was_decided_while_another_was_asked_about() -> None:
    asked: list[object] = []

    async def confirm(event: ActionEvent) -> bool:
        asked.append(event.arguments["name"])
        if event.arguments["name"] == "a":
            await conversation.approve(conversation.state.pending[1].id)
        return True

    async with talk(agent_of("ab"), confirm=confirm) as conversation:
        assert (await conversation.run("go")).text == "end"
    assert asked == ["a"]
    assert sorted(ran) == ["a", "b"]


async def test_a_callback_decides_while_the_conversation_waits() -> None:
    asked: list[ConversationStatus] = []

    async def confirm(action: ActionEvent) -> Approve | Reject:
        asked.append(conversation.state.status)
        return Approve(by="Ada") if action.arguments["name"] == "a" else Reject("not b")

    async with talk(agent_of("ab"), confirm=confirm) as conversation:
        assert (await conversation.run("go")).text == "end"
    assert asked == [WAITING, WAITING]
    assert ran == ["a"]


async def test_a_plain_function_decides_in_a_worker_thread() -> None:
    threads: list[int] = []

    def confirm(action: ActionEvent) -> bool | Reject:
        threads.append(threading.get_ident())
        return True if action.arguments["name"] == "a" else Reject("not b")

    async with talk(agent_of("ab"), confirm=confirm) as conversation:
        assert (await conversation.run("go")).text == "end"
    assert ran == ["a"]
    assert threading.get_ident() not in threads


async def test_a_plain_function_that_calls_an_async_one_has_its_answer_awaited() -> None:
    async def ask(action: ActionEvent) -> bool:
        await checkpoint()
        return action.arguments["name"] == "a"

    def confirm(action: ActionEvent) -> Awaitable[bool]:
        return ask(action)

    async with talk(agent_of("ab"), confirm=confirm) as conversation:
        assert (await conversation.run("go")).text == "end"
    assert ran == ["a"]


async def test_a_plain_function_without_an_answer_fails_the_run_and_approves_nothing() -> None:
    def confirm(action: ActionEvent) -> None:
        """Forget to return."""

    async with talk(agent_of("a"), confirm=confirm) as conversation:
        with pytest.raises(RunError, match=r"answered None.*Does it end without a return"):
            await conversation.run("go")
    assert not ran


async def test_an_interrupt_withdraws_the_question_from_a_plain_function_that_does_not_end() -> None:
    begun, answered = anyio.Event(), threading.Event()

    def confirm(action: ActionEvent) -> bool:
        anyio.from_thread.run_sync(begun.set)
        return answered.wait(60)

    try:
        async with talk(agent_of("a"), confirm=confirm) as conversation, running(conversation) as run:
            await begun.wait()
            await conversation.interrupt()
        assert run.result.status is PAUSED
        assert not ran
    finally:
        answered.set()


async def test_a_new_policy_while_a_callback_is_asked_does_not_fail_the_run() -> None:
    async def confirm(event: ActionEvent) -> bool:
        await conversation.set_policy(NeverConfirm())
        return True

    async with talk(agent_of("ab"), confirm=confirm) as conversation:
        assert (await conversation.run("go")).text == "end"


async def test_a_pause_while_the_model_is_asked_comes_before_the_callback() -> None:
    asked: list[str] = []

    async def confirm(event: ActionEvent) -> bool:
        asked.append(event.id)
        return True

    gate = Gate()
    async with talk([gate.hold(call("change", name="a")), say("done")], change, confirm=confirm) as conversation:
        async with running(conversation) as run:
            await gate.arrived()
            await conversation.pause()
            gate.open()
        assert (run.result.status, asked) == (PAUSED, [])
        assert (await conversation.run()).text == "done"
        assert len(asked) == 1


async def test_a_callback_is_asked_about_what_waited_through_a_restart() -> None:
    async def confirm(event: ActionEvent) -> bool:
        return True

    store, agent = MemoryStore(), agent_of("ab")
    async with talk(agent, store=store, id="a", confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
    async with talk(agent, store=store, id="a", confirm=confirm) as conversation:
        assert (await conversation.run()).text == "end"
    assert ran == ["a", "b"]


@pytest.mark.parametrize("kind", [Mock, MagicMock, AsyncMock])
async def test_a_mock_is_a_function_that_is_asked(kind: type[Mock]) -> None:
    asked = kind(return_value=True)
    async with talk(agent_of("a"), confirm=asked) as conversation:
        await conversation.run("go")
    asked.assert_called_once()
