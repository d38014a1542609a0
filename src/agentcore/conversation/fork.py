"""Copying a branch into a log of its own."""

from __future__ import annotations

import anyio

from agentcore.conversation.core import Core
from agentcore.conversation.watch import check_seq
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
    SecretsRegistered,
    StatusChanged,
)
from agentcore.ids import new_conversation_id
from agentcore.record import ConversationState, Store, write_log


async def fork(core: Core, at: int | None, conversation_id: str | None) -> str:
    """Copy the branch that ends at `at` into a new log and return its id.

    Raises:
        RewindRefused: `at` is not a settled point.
        ConversationExists: The store has that id.
    """
    state = core.state
    at = state.head if at is None else check_seq("at", at)
    if not state.is_settled(at):
        raise RewindRefused(f"Event {at} is not a point to fork at.", state.nearest_settled(at))
    copied = _copy_branch(state, at)
    new_id = conversation_id or new_conversation_id()
    return await core.jobs.do(lambda: _write(core.store, copied, new_id), name="fork", finish=True)


def _copy_branch(state: ConversationState, at: int) -> list[Event]:
    """Return the events of the fork. They keep their ids. Limits and policy are those of now: a fork loosens nothing."""
    # A move of the head means nothing in a log that holds the branch alone.
    copied: list[Event] = [event for event in state.branch_events(at) if not isinstance(event, HeadMoved)]
    # A rewind to before they were recorded does not forget these.
    for lasting in (state.agent, state.workspace):
        if lasting is not None and not any(event is lasting for event in copied):
            copied.append(lasting)
    facts: list[Fact] = [LimitsSet(limits=state.limits)]
    if state.secret_names:
        facts.append(SecretsRegistered(names=state.secret_names))
    if state.policy is not None:
        facts.append(PolicySet(policy=state.policy))
    facts.append(Forked(conversation_id=state.conversation_id, at=at))
    facts.append(StatusChanged(status=ConversationStatus.IDLE, code="forked"))
    copied.extend(ConversationStateUpdateEvent(update=fact) for fact in facts)
    return copied


async def _write(store: Store, copied: list[Event], conversation_id: str) -> str:
    with anyio.CancelScope(shield=True):  # a fork is finished, or undone; the store bounds it
        await write_log(store, conversation_id, copied)
    return conversation_id
