"""The commands: each is durable when it returns, whatever the driver is doing. Most only write, and wake the driver."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextvars import Context

from anyio.lowlevel import checkpoint
from pydantic import JsonValue

from agentcore.conversation.core import Core, Turn
from agentcore.conversation.journal import Condition
from agentcore.conversation.pending import parse_edited, reject_event
from agentcore.conversation.result import make_result
from agentcore.conversation.settle import turn_under_way
from agentcore.conversation.watch import check_seq
from agentcore.errors import NothingPending, RewindRefused, StoreError
from agentcore.events import (
    ActionApproved,
    ActionEvent,
    ConversationStateUpdateEvent,
    ConversationStatus,
    Event,
    Fact,
    HeadMoved,
    InterruptEvent,
    LimitsSet,
    MessageEvent,
    PauseEvent,
    PolicySet,
    SecretsRegistered,
    StatusChanged,
    TagsSet,
    TitleSet,
)
from agentcore.messages import Message
from agentcore.record import ConversationState
from agentcore.secrets import SecretSource
from agentcore.security import ConfirmationPolicy, record_policy
from agentcore.usage import Limits

__all__ = [
    "add_secrets",
    "approve",
    "interrupt",
    "interrupt_call",
    "pause",
    "reject",
    "rewind",
    "send",
    "set_limits",
    "set_policy",
    "set_tags",
    "set_title",
]

_REWOUND = (
    "The conversation was taken back to this point. Files and everything else outside it were not: "
    "they are as the steps that were taken back left them. Look before you rely on them."
)


async def send(core: Core, message: str | Message | object) -> int:
    """Record a user's message and give its seq."""
    if isinstance(message, str):
        message = Message.user(message)
    if not isinstance(message, Message):
        raise TypeError(f"A message is text or a Message, not {type(message).__name__}.")
    if message.role != "user":
        raise ValueError(f"A message of role {message.role!r} can't be sent: make it with Message.user(...).")
    kept = await core.journal.write(MessageEvent(source="user", message=message))
    assert kept is not None
    return kept[0].seq


async def pause(core: Core) -> None:
    """Ask the turn to stop at the end of its step; without a turn, pause at once."""
    await core.journal.write(PauseEvent(source="user"))


async def interrupt(core: Core, reason: str | None) -> None:
    """Stop the turn and wait until that is recorded."""
    if (turn := await turn_under_way(core)) is not None:
        turn.interrupt(reason)
        core.wake()
        await turn.done.wait()
        if turn.fatal and isinstance(turn.error, StoreError):
            core.told = True
            raise turn.error
    elif core.state.status is ConversationStatus.WAITING_FOR_CONFIRMATION:
        await core.journal.write(InterruptEvent(source="user", reason=reason))
    else:
        await checkpoint()


async def interrupt_call(core: Core, action_id: str) -> bool:
    """Stop one call."""
    scope = core.calls.get(action_id)
    if scope is not None:
        scope.cancel()
    await checkpoint()
    return scope is not None


async def approve(
    core: Core,
    ids: Sequence[str] | str | None,
    arguments: Mapping[str, JsonValue] | None,
    by: str | None,
    context: Context,
) -> None:
    """Record yes for actions that wait, and let the work go on."""
    while True:
        turn = await turn_under_way(core)
        pending = core.state.pending
        events = _waiting(pending, ids)
        changed = None if arguments is None else await _fitting(core, events, arguments)
        approvals: list[Event] = [
            ActionApproved(source="user", cause=event.id, by=by, arguments=changed) for event in events
        ]
        if turn is None and core.state.status is ConversationStatus.WAITING_FOR_CONFIRMATION:
            approved = await _resume(core, Turn(context, code="approved"), approvals, _still(pending))
        else:
            approved = await core.journal.keep(*approvals, condition=_still(pending)) is not None
        if approved:
            return


async def _resume(core: Core, turn: Turn, approvals: list[Event], condition: Condition) -> bool:
    """Record approvals and the status they lead to as one group, so that a run() after this joins the turn."""
    turn.ready = False
    core.turn = turn
    running = _fact(StatusChanged(status=ConversationStatus.RUNNING, code="approved"))
    try:
        kept = await core.journal.keep(*approvals, running, condition=condition)
    except BaseException as error:
        core.turn = None
        turn.end(make_result(core.state, core.state.run_seq), error, fatal=True)
        raise
    if kept is None and not turn.waiters:
        core.turn = None
        turn.end(make_result(core.state, core.state.run_seq), None, fatal=False)
        return False
    if kept is None:
        turn.code = "run"  # whoever joined it meanwhile gets the run that was asked for
    turn.ready = True
    core.wake()
    return kept is not None


def _still(pending: tuple[ActionEvent, ...]) -> Condition:
    """Hold as long as nobody else has decided: of two decisions about one action the first one counts."""
    return lambda state: state.pending == pending


async def _fitting(
    core: Core, events: Sequence[ActionEvent], arguments: Mapping[str, JsonValue]
) -> dict[str, JsonValue]:
    if len(events) != 1:
        raise ValueError(f"Arguments can be changed for one action at a time; {len(events)} are being approved.")
    changed = dict(arguments)
    await parse_edited(core, events[0], changed)
    return changed


async def reject(core: Core, reason: str, ids: Sequence[str] | str | None, by: str | None) -> None:
    """Record no for actions that wait; idle when none waits any more."""
    while True:
        turn = await turn_under_way(core)
        pending = core.state.pending
        events = _waiting(pending, ids)
        answers: list[Event] = [reject_event(event, reason, by) for event in events]
        waits = core.state.status is ConversationStatus.WAITING_FOR_CONFIRMATION
        if turn is None and waits and len(events) == len(pending):
            answers.append(_fact(StatusChanged(status=ConversationStatus.IDLE)))
        if await core.journal.write(*answers, condition=_still(pending)) is not None:
            break
    for event in events:
        core.arguments.pop(event.id, None)


async def rewind(core: Core, to: int) -> None:
    """Move the head."""
    check_seq("to", to)
    gone = tuple(core.arguments)
    while True:
        turn, state = await turn_under_way(core), core.state
        if turn is not None or state.status is ConversationStatus.RUNNING:
            raise RewindRefused("The agent works: pause or interrupt it first.", None)
        if not state.is_settled(to):
            what = (
                "there is no such event" if not 0 <= to <= state.head else "it is inside a reply that is being answered"
            )
            raise RewindRefused(f"The conversation can't go back to {to}: {what}.", state.nearest_settled(to))
        kept = await core.journal.write(
            HeadMoved(source="user", to=to),
            MessageEvent(source="environment", message=Message.user(_REWOUND), code="rewound"),
            condition=lambda now: _rests(core, now) and now.is_settled(to),
        )
        if kept is not None:
            break
    for action_id in gone:
        core.arguments.pop(action_id, None)
    core.rerun.clear()
    core.output = None


def _rests(core: Core, state: ConversationState) -> bool:
    """Hold while nobody works. An approval that is still on its way does not count: of the two the log decides."""
    return state.status is not ConversationStatus.RUNNING and (core.turn is None or not core.turn.ready)


async def set_limits(core: Core, limits: Limits) -> None:
    """Hold to these limits from now on."""
    await core.journal.write(_fact(LimitsSet(limits=limits)))
    if core.turn is not None and core.turn.clock is not None:
        core.turn.clock.hold_to(limits)


async def set_policy(core: Core, policy: ConfirmationPolicy) -> None:
    """Let this policy decide from the next reply on."""
    await core.journal.write(_fact(PolicySet(policy=record_policy(policy))))
    core.policy = policy
    core.confirm = None


async def set_title(core: Core, title: str) -> None:
    """Give the conversation a title."""
    await core.journal.write(_fact(TitleSet(title=title)))


async def set_tags(core: Core, tags: Mapping[str, str]) -> None:
    """Give the conversation these tags."""
    await core.journal.write(_fact(TagsSet(tags=dict(tags))))


async def add_secrets(core: Core, secrets: Mapping[str, SecretSource]) -> None:
    """Register more secrets."""
    for name, source in secrets.items():
        core.secrets.register(name, source)
    await core.journal.write(_fact(SecretsRegistered(names=tuple(secrets))))


def _fact(update: Fact) -> ConversationStateUpdateEvent:
    return ConversationStateUpdateEvent(source="user", update=update)


def _waiting(actions: Sequence[ActionEvent], ids: Sequence[str] | str | None) -> tuple[ActionEvent, ...]:
    pending = {event.id: event for event in actions}
    if isinstance(ids, str):
        ids = (ids,)
    wanted = tuple(pending) if ids is None else tuple(dict.fromkeys(ids))
    missing = [action_id for action_id in wanted if action_id not in pending]
    if missing or not wanted:
        raise NothingPending(missing, tuple(pending))
    return tuple(pending[action_id] for action_id in wanted)
