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
from agentcore.record import ConversationState, EventLog, Store

__all__ = ["fork"]


async def fork(core: Core, at: int | None, conversation_id: str | None) -> str:
    """Copy the branch that ends at `at` into a new log and give its id.

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
    return await core.jobs.do(lambda: _write_fork(core.store, copied, new_id), name="fork", finish=True)


def _copy_branch(state: ConversationState, at: int) -> list[Event]:
    """Give the events of the fork. They keep their ids. Limits and policy are those of now: a fork loosens nothing."""
    # A move of the head means nothing in a log that holds the branch alone.
    copied: list[Event] = [event for event in state.branch_events(at) if not isinstance(event, HeadMoved)]
    if state.agent is not None and state.agent not in copied:
        copied.append(state.agent)  # a rewind to before it was recorded does not forget it
    if state.workspace is not None and state.workspace not in copied:
        copied.append(state.workspace)
    facts: list[Fact] = [LimitsSet(limits=state.limits)]
    if state.secret_names:
        facts.append(SecretsRegistered(names=state.secret_names))
    if state.policy is not None:
        facts.append(PolicySet(policy=state.policy))
    facts.append(Forked(conversation_id=state.conversation_id, at=at))
    facts.append(StatusChanged(status=ConversationStatus.IDLE, code="forked"))
    copied.extend(ConversationStateUpdateEvent(update=fact) for fact in facts)
    return copied


async def _write_fork(store: Store, copied: list[Event], conversation_id: str) -> str:
    # Shielded: the fork is there, or it is not, but never begun and empty. The store bounds each of the steps.
    with anyio.CancelScope(shield=True):
        fork = await EventLog.create(store, conversation_id)
        try:
            await fork.append([copied])
        except BaseException:
            await fork.close()  # noqa: ASYNC102 shielded above, and the store bounds it
            await store.delete(conversation_id)  # noqa: ASYNC102 shielded above, and the store bounds it
            raise
        await fork.close()
    return conversation_id
