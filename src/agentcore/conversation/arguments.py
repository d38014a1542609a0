"""The arguments of commands, checked in the caller's task: what is refused here is never handed over."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pydantic import JsonValue

from agentcore.conversation.core import Core
from agentcore.conversation.pending import check_edited, restore_edited
from agentcore.errors import NothingPending
from agentcore.messages import Message
from agentcore.usage import Limits


def check_message(message: str | Message | object) -> Message:
    """Return a user's text as a message."""
    if isinstance(message, str):
        message = Message.user(message)
    if not isinstance(message, Message):
        raise TypeError(f"A message is text or a Message, not {type(message).__name__}.")
    if message.role != "user":
        raise ValueError(f"A message of role {message.role!r} can't be sent: make it with Message.user(...).")
    return message


def check_limits(limits: Limits | object) -> Limits:
    if not isinstance(limits, Limits):
        raise TypeError(f"limits are Limits(steps=..., cost=...), not {limits!r}.")
    return limits


def select_pending(core: Core, ids: Sequence[str] | str | None) -> tuple[tuple[str, ...], bool]:
    """Return the ids of the actions that a decision is about, and whether they are all that wait."""
    if ids is None:
        waiting = tuple(event.id for event in core.state.pending)
        if not waiting:
            raise NothingPending([], ())
        return waiting, True
    return ((ids,) if isinstance(ids, str) else tuple(dict.fromkeys(ids))), False


async def validate_arguments(
    core: Core, selected: Sequence[str], edited: dict[str, JsonValue]
) -> Mapping[str, JsonValue] | None:
    """Return the edited arguments of one action as they are to be run, checked against its tool."""
    if len(selected) != 1:
        raise ValueError(f"Arguments can be changed for one action at a time; {len(selected)} are being approved.")
    plain = await restore_edited(core, edited)
    action = core.state.open_actions.get(selected[0])
    if action is not None:
        await check_edited(core, action.event, edited if plain is None else plain)
    return plain
