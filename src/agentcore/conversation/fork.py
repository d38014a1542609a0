"""Copying a branch into a log of its own."""

from __future__ import annotations

from agentcore.errors import RewindRefused
from agentcore.events import (
    ConversationStateUpdateEvent,
    ConversationStatus,
    Event,
    Fact,
    Forked,
    HeadMoved,
    LimitsSet,
    PolicySet,
    StatusChanged,
)
from agentcore.ids import new_conversation_id
from agentcore.record import ConversationState, EventLog, Store

__all__ = ["fork_log"]


async def fork_log(store: Store, state: ConversationState, at: int | None, conversation_id: str | None) -> str:
    """Copy the branch that ends at `at` into a new log and give its id.

    The events keep their ids. Limits and policy are those of now: a fork loosens nothing.

    Raises:
        RewindRefused: `at` is not a settled point.
        ConversationExists: The store has that id.
    """
    at = state.head if at is None else at
    if not state.is_settled(at):
        raise RewindRefused(f"Event {at} is not a point to fork at.", state.nearest_settled(at))
    # A move of the head means nothing in a log that holds the branch alone.
    copied: list[Event] = [event for event in state.branch_events(at) if not isinstance(event, HeadMoved)]
    facts: list[Fact] = [LimitsSet(limits=state.limits)]
    if state.policy is not None:
        facts.append(PolicySet(policy=state.policy))
    facts.append(Forked(conversation_id=state.conversation_id, at=at))
    facts.append(StatusChanged(status=ConversationStatus.IDLE, code="forked"))
    copied.extend(ConversationStateUpdateEvent(update=fact) for fact in facts)
    fork = await EventLog.create(store, conversation_id or new_conversation_id())
    try:
        await fork.append([copied])
    finally:
        await fork.close()
    return fork.state.conversation_id
