"""The decision on a command in a given state: a pure function, called by the recorder on the state that it appends to."""

from __future__ import annotations

from collections.abc import Sequence

from pydantic import JsonValue

from agentcore.commands import (
    AddSecrets,
    Approve,
    Command,
    Interrupt,
    Leave,
    Pause,
    Reject,
    Rewind,
    Run,
    Send,
    SetAgent,
    SetLimits,
    SetPolicy,
    SetTags,
    SetTitle,
)
from agentcore.errors import ConversationError, NothingPending, RewindRefused
from agentcore.events import (
    ActionApproved,
    ActionEvent,
    AgentConfigured,
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
    RunJoined,
    SecretsRegistered,
    StatusChanged,
    TagsSet,
    TitleSet,
    UserRejectObservation,
)
from agentcore.messages import Message
from agentcore.record import ConversationState, next_status

_REWOUND = (
    "The conversation was taken back to this point. Files and everything else outside it were not: "
    "they are as the steps that were taken back left them. Look before you rely on them."
)

_RUNNING = ConversationStatus.RUNNING
_WAITING = ConversationStatus.WAITING_FOR_CONFIRMATION
_PAUSED = ConversationStatus.PAUSED


def decide(command: Command, state: ConversationState) -> Sequence[Event]:
    """Return the events that a command writes; none where it changes nothing.

    Raises:
        NothingPending: No such action waits.
        RewindRefused: That point is not settled, or the agent works.
        ConversationError: There is nothing to work on.
    """
    match command:
        case Send():
            events: Sequence[Event] = [_message(command, command.message, state)]
        case Run():
            events = _run(command, state)
        case Pause():
            pauses = state.status is ConversationStatus.IDLE or (state.is_working and not state.pause_requested)
            events = [PauseEvent(source="user", command=command.id, by=command.by)] if pauses else []
        case Approve():
            events = _approve(command, state)
        case Reject():
            events = _reject(command, state)
        case Rewind():
            events = _rewind(command, state)
        case Interrupt():
            # During a turn the turn records it: it knows what was stopped.
            stops = state.status is _WAITING and not state.is_asking and command.run == state.run.seq
            interrupt = InterruptEvent(source="user", reason=command.reason, command=command.id, by=command.by)
            events = [interrupt] if stops else []
        case SetAgent():
            event = configure(state, command.agent, command.missing)
            update = {"source": "user", "command": command.id, "by": command.by}
            events = [] if event is None else [event.model_copy(update=update)]
        case Leave():
            events = []
        case _:
            fact = _fact_of(command, state)
            events = [] if fact is None else [_fact(command, fact)]
    return events


def configure(
    state: ConversationState, agent: dict[str, JsonValue], missing: tuple[str, ...]
) -> AgentConfigured | None:
    """Return the event that records an agent; None where the log says that it works already."""
    if state.agent is not None and (state.agent.agent, state.agent.missing) == (agent, missing):
        return None
    return AgentConfigured(agent=agent, missing=missing)


def _fact_of(command: SetLimits | SetPolicy | SetTitle | SetTags | AddSecrets, state: ConversationState) -> Fact | None:
    """Return the fact that a command makes true; None where it is true already."""
    match command:
        case SetLimits():
            return LimitsSet(limits=command.limits) if command.limits != state.limits else None
        case SetPolicy():
            # A custom policy looks like another one of its class: it may be another object all the same.
            return PolicySet(policy=command.policy)
        case SetTitle():
            return TitleSet(title=command.title) if command.title != state.title else None
        case SetTags():
            return TagsSet(tags=command.tags) if command.tags != state.tags else None
        case AddSecrets():
            names = tuple(name for name in command.names if name not in state.secret_names)
            return SecretsRegistered(names=names) if names else None


def _run(command: Run, state: ConversationState) -> Sequence[Event]:
    events: list[Event] = []
    status = state.status
    if command.message is not None:
        events.append(_message(command, command.message, state))
        status = next_status(status, "send")
    elif not state.has_message:
        raise ConversationError("There is nothing to work on yet: send a message, or pass one to run().")
    if state.is_working:
        # A message names the command by itself.
        return events or [_fact(command, RunJoined(run=state.run.seq))]
    if run_returns_at_once(status, state, attended=command.attended):
        if status is _PAUSED:
            events.append(_fact(command, StatusChanged(status=_WAITING)))
        return events
    return [*events, _fact(command, StatusChanged(status=_RUNNING, code="run"))]


def run_returns_at_once(status: ConversationStatus, state: ConversationState, *, attended: bool) -> bool:
    """Return whether a run has nothing to do: the work is done, or all that is to be done waits for a person."""
    if status is ConversationStatus.FINISHED:
        return True
    if attended or not state.pending:
        return False
    # What was approved before a crash is carried out by the next run, whatever else waits.
    return status is _WAITING or (status is _PAUSED and not state.has_approved)


def _approve(command: Approve, state: ConversationState) -> Sequence[Event]:
    events: list[Event] = [
        ActionApproved(
            source="user",
            cause=action.id,
            by=command.by,
            command=command.id,
            arguments=command.arguments,
            typed_masks=() if command.arguments is None else state.open_actions[action.id].typed_masks,
        )
        for action in _select(command, state)
    ]
    if not state.is_working:
        events.append(_fact(command, StatusChanged(status=_RUNNING, code="approved")))
    return events


def _reject(command: Reject, state: ConversationState) -> Sequence[Event]:
    selected = _select(command, state)
    events: list[Event] = [reject_event(action, command) for action in selected]
    if state.status is _WAITING and not state.is_asking and len(selected) == len(state.pending):
        events.append(_fact(command, StatusChanged(status=ConversationStatus.IDLE)))
    return events


def reject_event(action: ActionEvent, command: Reject) -> UserRejectObservation:
    """Make the answer of an action that a person did not allow."""
    return UserRejectObservation(
        source="user",
        cause=action.id,
        tool_name=action.tool_name,
        call_id=action.call_id,
        reason=command.reason,
        by=command.by,
        command=command.id,
    )


def _select(command: Approve | Reject, state: ConversationState) -> tuple[ActionEvent, ...]:
    """Return the actions that a decision is about.

    Raises:
        NothingPending: One of them does not wait, or none does any more.
    """
    pending = {event.id: event for event in state.pending}
    missing = [action_id for action_id in command.ids if action_id not in pending]
    selected = tuple(pending[action_id] for action_id in dict.fromkeys(command.ids) if action_id in pending)
    if not selected or (missing and not command.all_that_wait):
        raise NothingPending(missing, tuple(pending))
    return selected


def _rewind(command: Rewind, state: ConversationState) -> Sequence[Event]:
    to = command.to
    if state.is_working:
        raise RewindRefused("The agent works: pause or interrupt it first.", None)
    if not state.is_settled(to):
        what = "there is no such event" if not 0 <= to <= state.head else "it is inside a reply that is being answered"
        raise RewindRefused(f"The conversation can't go back to {to}: {what}.", state.nearest_settled(to))
    return [
        HeadMoved(source="user", to=to, command=command.id, by=command.by),
        MessageEvent(source="environment", message=Message.user(_REWOUND), code="rewound"),
    ]


def _message(command: Send | Run, message: Message, state: ConversationState) -> MessageEvent:
    prefix, suffix = _dress_of(state)
    return MessageEvent(source="user", message=message, prefix=prefix, suffix=suffix, command=command.id, by=command.by)


def _dress_of(state: ConversationState) -> tuple[str | None, str | None]:
    """Return what the agent at work has the model read before and behind a message of the user."""
    match state.agent and state.agent.agent.get("context"):
        case dict() as context:
            prefix, suffix = context.get("message_prefix"), context.get("message_suffix")
            return prefix if isinstance(prefix, str) else None, suffix if isinstance(suffix, str) else None
        case _:
            return None, None


def _fact(command: Command, fact: Fact) -> ConversationStateUpdateEvent:
    return ConversationStateUpdateEvent(source="user", update=fact, command=command.id, by=command.by)
