"""Actions that wait for a person."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from agentcore import (
    ActionApproved,
    ActionEvent,
    Agent,
    AlwaysConfirm,
    ConfirmRisky,
    Conversation,
    ConversationStatus,
    FileStore,
    MemoryStore,
    NeverConfirm,
    ObservationEvent,
    SecurityRisk,
    UserRejectObservation,
)
from agentcore.errors import NothingPending, ToolArgumentsError
from agentcore.security import Approve, Reject
from agentcore.testing import ScriptedLLM, call, calls, say
from agentcore.tools import tool

ran: list[str] = []


@pytest.fixture(autouse=True)
def _forget() -> None:
    ran.clear()


@tool
async def delete(name: str) -> str:
    """Delete something."""
    ran.append(name)
    return f"deleted {name}"


@tool(read_only=True)
async def look(name: str) -> str:
    """Look at something."""
    ran.append(f"looked at {name}")
    return name


def agent_with(*replies: object) -> Agent:
    return Agent(llm=ScriptedLLM(list(replies)), tools=[delete, look])  # type: ignore[arg-type]


async def test_an_action_waits_and_runs_once_when_approved(tmp_path: Path) -> None:
    agent = agent_with(call("delete", name="a"), say("done"))
    async with Conversation(agent, tmp_path, confirm=AlwaysConfirm()) as conversation:
        result = await conversation.run("go")
        assert result.status is ConversationStatus.WAITING_FOR_CONFIRMATION
        assert [action.tool_name for action in result.pending] == ["delete"]
        assert not ran
        again = await conversation.run()
        assert again.status is ConversationStatus.WAITING_FOR_CONFIRMATION
        assert not ran
        await conversation.approve(by="Ada")
        final = await conversation.run()
        assert final.text == "done"
        assert final.steps == 2
        assert ran == ["a"]
    (approval,) = [e for e in conversation.state.events if isinstance(e, ActionApproved)]
    assert (approval.by, approval.cause) == ("Ada", result.pending[0].id)


async def test_approving_goes_on_by_itself(tmp_path: Path) -> None:
    agent = agent_with(call("delete", name="a"), say("done"))
    async with Conversation(agent, tmp_path, confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        with anyio.fail_after(10):
            await conversation.approve()
            async for event in conversation.events(after=conversation.state.head):
                if isinstance(event, ObservationEvent):
                    break
    assert ran == ["a"]


async def test_a_message_approves_nothing(tmp_path: Path) -> None:
    agent = agent_with(call("delete", name="a"), say("fine"))
    async with Conversation(agent, tmp_path, confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        result = await conversation.run("NO, do not delete that!")
        assert result.status is ConversationStatus.WAITING_FOR_CONFIRMATION
        assert not ran
        assert conversation.state.pending


async def test_a_rejected_action_is_answered_with_the_reason_and_the_model_reads_it(tmp_path: Path) -> None:
    agent = agent_with(call("delete", name="a"), say("understood"))
    async with Conversation(agent, tmp_path, confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        await conversation.reject("too dangerous", by="Bob")
        assert conversation.state.status is ConversationStatus.IDLE
        assert (await conversation.run()).text == "understood"
    assert not ran
    (answer,) = [e for e in conversation.state.events if isinstance(e, UserRejectObservation)]
    assert (answer.reason, answer.by) == ("too dangerous", "Bob")
    assert isinstance(agent.llm, ScriptedLLM)
    assert "too dangerous" in str(agent.llm.requests[1].messages[-1])


async def test_one_that_must_wait_makes_its_whole_reply_wait(tmp_path: Path) -> None:
    agent = agent_with(calls(call("look", name="a"), call("delete", name="b")), say("done"))
    async with Conversation(agent, tmp_path, confirm=ConfirmRisky(confirm_unknown=True)) as conversation:
        result = await conversation.run("go")
        assert [action.tool_name for action in result.pending] == ["look", "delete"]
        assert not ran


async def test_some_are_approved_and_the_rest_waits(tmp_path: Path) -> None:
    agent = agent_with(calls(call("delete", name="a"), call("delete", name="b")), say("done"))
    async with Conversation(agent, tmp_path, confirm=AlwaysConfirm()) as conversation:
        first, second = (await conversation.run("go")).pending
        await conversation.approve(first.id)
        result = await conversation.run()
        assert result.status is ConversationStatus.WAITING_FOR_CONFIRMATION
        assert result.pending == (second,)
        assert ran == ["a"]
        await conversation.reject("no", second.id)
        assert (await conversation.run()).text == "done"


async def test_changed_arguments_are_run_recorded_and_told_to_the_model(tmp_path: Path) -> None:
    agent = agent_with(call("delete", name="everything"), say("done"))
    async with Conversation(agent, tmp_path, confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        with pytest.raises(ToolArgumentsError):
            await conversation.approve(arguments={"nme": "one"})
        await conversation.approve(arguments={"name": "one"})
        await conversation.run()
    assert ran == ["one"]
    (approval,) = [e for e in conversation.state.events if isinstance(e, ActionApproved)]
    assert approval.arguments == {"name": "one"}
    assert isinstance(agent.llm, ScriptedLLM)
    assert "changed the arguments" in str(agent.llm.requests[1].messages[-1])


async def test_arguments_can_be_changed_for_one_action_at_a_time(tmp_path: Path) -> None:
    agent = agent_with(calls(call("delete", name="a"), call("delete", name="b")))
    async with Conversation(agent, tmp_path, confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        with pytest.raises(ValueError, match="one action"):
            await conversation.approve(arguments={"name": "x"})
        assert len(conversation.state.pending) == 2


async def test_deciding_on_what_does_not_wait_is_an_error_that_lists_what_does(tmp_path: Path) -> None:
    agent = agent_with(call("delete", name="a"))
    async with Conversation(agent, tmp_path, confirm=AlwaysConfirm()) as conversation:
        with pytest.raises(NothingPending):
            await conversation.approve()
        (action,) = (await conversation.run("go")).pending
        with pytest.raises(NothingPending, match=action.id):
            await conversation.reject("no", "ev_nothing")


async def test_finish_and_think_are_never_asked_about(tmp_path: Path) -> None:
    agent = agent_with(call("think", thought="hm"), call("finish", message="done"))
    async with Conversation(agent, tmp_path, confirm=AlwaysConfirm()) as conversation:
        assert (await conversation.run("go")).status is ConversationStatus.FINISHED


async def test_read_only_actions_pass_a_risk_policy(tmp_path: Path) -> None:
    agent = agent_with(call("look", name="a"), say("done"))
    policy = ConfirmRisky(threshold=SecurityRisk.MEDIUM)
    async with Conversation(agent, tmp_path, confirm=policy) as conversation:
        assert (await conversation.run("go")).text == "done"
    assert ran == ["looked at a"]


@pytest.mark.parametrize("stored", [False, True])
async def test_a_wait_survives_closing_and_opening_again(tmp_path: Path, stored: bool) -> None:
    store = FileStore(tmp_path / "logs") if stored else MemoryStore()
    agent = agent_with(call("delete", name="a"), say("done"))
    async with Conversation(agent, tmp_path, store=store, id="w", confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
    async with Conversation(agent, tmp_path, store=store, id="w") as conversation:
        assert conversation.state.status is ConversationStatus.WAITING_FOR_CONFIRMATION
        assert len((await conversation.run()).pending) == 1
        await conversation.approve()
        assert (await conversation.run()).text == "done"
        assert conversation.state.policy == {"name": "always"} or conversation.state.policy is not None
    assert ran == ["a"]


async def test_interrupting_a_wait_pauses_it_and_the_actions_stay_pending(tmp_path: Path) -> None:
    agent = agent_with(call("delete", name="a"), say("done"))
    async with Conversation(agent, tmp_path, confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        await conversation.interrupt()
        assert conversation.state.status is ConversationStatus.PAUSED
        result = await conversation.run()
        assert result.status is ConversationStatus.WAITING_FOR_CONFIRMATION
        assert len(result.pending) == 1
        await conversation.approve()
        assert (await conversation.run()).text == "done"


async def test_a_callback_decides_while_the_conversation_waits(tmp_path: Path) -> None:
    asked: list[tuple[str, ConversationStatus]] = []

    async def confirm(action: ActionEvent) -> Approve | Reject:
        asked.append((action.tool_name, conversation.state.status))
        return Approve(by="Ada") if action.arguments["name"] == "a" else Reject("not b")

    agent = agent_with(calls(call("delete", name="a"), call("delete", name="b")), say("done"))
    async with Conversation(agent, tmp_path, confirm=confirm) as conversation:
        assert (await conversation.run("go")).text == "done"
    assert asked == [("delete", ConversationStatus.WAITING_FOR_CONFIRMATION)] * 2
    assert ran == ["a"]


async def test_a_callback_that_is_cancelled_by_an_interrupt_leaves_the_action_pending(tmp_path: Path) -> None:
    asked = anyio.Event()

    async def confirm(action: ActionEvent) -> bool:
        asked.set()
        await anyio.sleep_forever()
        return True

    agent = agent_with(call("delete", name="a"))
    async with Conversation(agent, tmp_path, confirm=confirm) as conversation:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(conversation.run, "go")
                await asked.wait()
                await conversation.interrupt()
        assert conversation.state.status is ConversationStatus.PAUSED
        assert len(conversation.state.pending) == 1
    assert not ran


async def test_the_policy_can_be_changed(tmp_path: Path) -> None:
    agent = agent_with(call("delete", name="a"), call("delete", name="b"), say("done"))
    async with Conversation(agent, tmp_path, confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        await conversation.set_policy(NeverConfirm())
        await conversation.approve()
        assert (await conversation.run()).text == "done"
    assert ran == ["a", "b"]
