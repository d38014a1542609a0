"""Opening a conversation that a crash cut off: nothing happens twice, nothing vanishes, nothing runs by itself."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager

import pytest

from agentcore import (
    Action,
    ActionApproved,
    ActionAssessed,
    ActionEvent,
    ActionStarted,
    AgentErrorEvent,
    Conversation,
    ConversationStateUpdateEvent,
    Event,
    MemoryStore,
    Message,
    MessageEvent,
    Observation,
    ObservationEvent,
    Tool,
    ToolContext,
)
from agentcore.errors import ConversationError, ConversationNotFound, NotRecorded
from agentcore.events import StatusChanged
from agentcore.testing import call, say
from agentcore.tools import TextObservation, tool
from talks import PAUSED, RUNNING, WAITING, change, events_of, log_of, look, ran, talk


class Pay(Action):
    """Pay."""

    amount: int


async def _pay(action: Pay, ctx: ToolContext) -> TextObservation:
    ran.append("paid")
    return TextObservation(text="paid")


async def _ask_the_bank(action: Pay, ctx: ToolContext) -> Observation | None:
    if action.amount == 1:
        return TextObservation(text=f"the bank has it under {ctx.action_id}")
    if action.amount == 2:
        raise OSError("the bank does not answer")
    return None


pay = Tool(name="pay", description="Pay.", action=Pay, execute=_pay, reconcile=_ask_the_bank)


def action(tool_name: str, **changes: object) -> ActionEvent:
    arguments = {"amount": changes.pop("amount")} if "amount" in changes else {"name": "x"}
    return ActionEvent.model_validate(
        {"reply_id": "re_1", "tool_name": tool_name, "arguments": arguments, "call_id": "c", **changes}
    )


def asks(event: ActionEvent) -> ActionAssessed:
    return ActionAssessed(cause=event.id, verdict="ask")


async def crash_with(*events: Event) -> MemoryStore:
    """Leave a log as a process would that died just then."""
    begun = ConversationStateUpdateEvent(update=StatusChanged(status=RUNNING, code="run"))
    return await log_of(MessageEvent(source="user", message=Message.user("go")), begun, *events)


def opened(store: MemoryStore) -> AbstractAsyncContextManager[Conversation]:
    return talk([say("went on")], change, look, pay, store=store, id="c")


def outcomes(conversation: Conversation) -> list[str]:
    return [event.outcome for event in events_of(conversation, AgentErrorEvent)]


async def test_what_had_started_may_have_happened_and_is_not_run_again() -> None:
    begun = action("change")
    store = await crash_with(begun, ActionStarted(cause=begun.id))
    async with opened(store) as conversation:
        assert outcomes(conversation) == ["unknown"]
        assert (conversation.state.status, conversation.state.status_code) == (PAUSED, "recovered")
        assert conversation.state.worked_seconds < 5, "that the machine was off is not counted as work"
        assert conversation.state.working_since is None
        assert (await conversation.run()).text == "went on"
    assert not ran


async def test_all_that_were_cut_off_are_answered_once() -> None:
    first, second, third = (action("change", call_id=f"c{n}") for n in range(3))
    store = await crash_with(first, second, third, ActionStarted(cause=first.id))
    for _ in range(2):
        async with opened(store) as conversation:
            assert outcomes(conversation) == ["unknown", "interrupted", "interrupted"]
            assert not conversation.state.open_actions


async def test_what_only_looked_is_run_again_with_the_next_run() -> None:
    begun = action("look")
    store = await crash_with(begun, ActionStarted(cause=begun.id))
    async with opened(store) as conversation:
        assert not ran
        assert (await conversation.run()).text == "went on"
    assert ran == ["looked at x"]
    assert not outcomes(conversation)


@pytest.mark.parametrize(("amount", "known"), [(1, True), (2, False), (3, False)])
async def test_a_tool_is_asked_what_became_of_its_action(amount: int, known: bool) -> None:
    begun = action("pay", amount=amount)
    store = await crash_with(begun, ActionStarted(cause=begun.id))
    async with opened(store) as conversation:
        answers = events_of(conversation, ObservationEvent)
        assert bool(answers) is known
        assert outcomes(conversation) == ([] if known else ["unknown"])
        if known:
            assert begun.id in answers[0].text
    assert not ran


async def test_what_was_approved_and_never_started_is_started_by_the_next_run_and_not_by_opening() -> None:
    waiting = action("change")
    store = await crash_with(waiting, asks(waiting), ActionApproved(cause=waiting.id))
    async with opened(store) as conversation:
        assert not outcomes(conversation)
        assert not ran
        assert (await conversation.run()).text == "went on"
    assert ran == ["x"], "the yes outlives the crash: the next run carries it out"


async def test_what_waits_for_a_person_still_waits() -> None:
    waiting, begun = action("change"), action("change", call_id="d")
    store = await crash_with(
        waiting, begun, asks(waiting), asks(begun), ActionApproved(cause=begun.id), ActionStarted(cause=begun.id)
    )
    async with opened(store) as conversation:
        assert [event.id for event in conversation.state.pending] == [waiting.id]
        assert outcomes(conversation) == ["unknown"]
        assert conversation.state.status is PAUSED
        assert (await conversation.run()).status is WAITING
        await conversation.approve()
        assert (await conversation.run()).text == "went on"
    assert ran == ["x"]


async def test_an_unknown_id_without_an_agent_is_an_error() -> None:
    with pytest.raises(ConversationNotFound, match="nothing"):
        async with talk(None, store=MemoryStore(), id="nothing"):
            pass
    with pytest.raises(ConversationError, match="needs an agent"):
        async with talk(None):
            pass


async def test_going_on_without_the_agent_names_the_parts_that_could_not_be_recorded() -> None:
    @tool
    async def local(name: str) -> str:
        """Cannot be found again."""
        return name

    store = MemoryStore()
    async with talk([call("local", name="a"), say("x")], local, store=store, id="a") as conversation:
        await conversation.run("go")
    with pytest.raises(NotRecorded) as caught:
        async with talk(None, store=store, id="a"):
            pass
    assert "ScriptedLLM" in str(caught.value)
    assert "'local'" in str(caught.value)
