"""The decision on a command in a given state: a pure function, called by the recorder on the state that it appends to."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from pydantic import JsonValue

from agentcore.commands import (
    AddSecrets,
    Answer,
    Approve,
    Command,
    Decline,
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
    ObservationEvent,
    PauseEvent,
    PolicySet,
    QuestionAnswered,
    QuestionAsked,
    QuestionOutcome,
    RunJoined,
    SecretsRegistered,
    StatusChanged,
    TagsSet,
    TitleSet,
    UserRejectObservation,
)
from agentcore.messages import Message, TextBlock
from agentcore.record import ConversationState, next_status
from agentcore.secrets import find_masks
from agentcore.tools import show_answer

REWOUND: Final = (
    "The conversation was taken back to this point. Files and everything else outside it were not: "
    "they are as the steps that were taken back left them. Look before you rely on them."
)
"""The message to a model whose conversation was rewound without its files."""

ANSWER_INSTEAD: Final = "To answer a question, call answer(id, value), or decline(id) to leave it unanswered."
"""The hint for a question that was to be approved."""

_FIRST_WORDS: Final = 60
"""The most characters of a question in an error."""

_RUNNING = ConversationStatus.RUNNING
_WAITING = ConversationStatus.WAITING_FOR_CONFIRMATION
_PAUSED = ConversationStatus.PAUSED


def decide(command: Command, state: ConversationState) -> Sequence[Event]:
    """Return the events that a command writes; none where it changes nothing.

    Raises:
        NothingPending: No such action or question waits.
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
        case Answer() | Decline():
            events = _end_question(command, state)
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
    if run_returns_at_once(status, state, attended=command.attended, answers=command.answers):
        if status is _PAUSED:
            events.append(_fact(command, StatusChanged(status=_WAITING)))
        return events
    return [*events, _fact(command, StatusChanged(status=_RUNNING, code="run"))]


def run_returns_at_once(status: ConversationStatus, state: ConversationState, *, attended: bool, answers: bool) -> bool:
    """Return whether a run has nothing to do: the work is done, or all that is to be done waits for a person.

    Args:
        status: The status before it.
        state: The state.
        attended: True if a callback decides on actions.
        answers: True if one answers questions.
    """
    if status is ConversationStatus.FINISHED:
        return True
    waiting = [action for action in state.open_actions.values() if action.waits]
    if not waiting or any(attended if action.question is None else answers for action in waiting):
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
    return [*events, *_running(command, state, "approved")]


def _reject(command: Reject, state: ConversationState) -> Sequence[Event]:
    events: list[Event] = []
    resumes = False
    selected = _select(command, state)
    for action in selected:
        if (question := state.open_actions[action.id].question) is not None:
            events.append(_question_ended(question, command, "declined", reason=command.reason))
        if question is not None and question.resumes:
            resumes = True
        else:
            events.append(_reject_event(action, command, question))
    if resumes:
        return [*events, *_running(command, state, "declined")]
    return [*events, *_idle_without(len(selected), command, state)]


def _running(command: Command, state: ConversationState, code: str) -> Sequence[Event]:
    """Return the change that has the work go on, where it does not."""
    return [] if state.is_working else [_fact(command, StatusChanged(status=_RUNNING, code=code))]


def _idle_without(decided: int, command: Command, state: ConversationState) -> Sequence[Event]:
    """Return the change to idle where nothing waits any more once so many actions are answered with a no."""
    if state.status is _WAITING and not state.is_asking and decided == len(state.pending):
        return [_fact(command, StatusChanged(status=ConversationStatus.IDLE))]
    return []


def find_question(state: ConversationState, question_id: str) -> QuestionAsked:
    """Return the question that waits, by its id or by that of the action that asks it.

    Raises:
        NothingPending: There is none.
    """
    for question in state.questions:
        if question.id == question_id:
            return question
    found = [question for question in state.questions if question.cause == question_id]
    if len(found) == 1:
        return found[0]
    waiting = [
        f"{question.id if question.live else question.cause!s} ({_first_words(question)})"
        for question in state.questions
    ]
    hint = f"Waiting: {', '.join(waiting)}." if waiting else ""
    raise NothingPending([question_id], (), what="question", hint=hint)


def _first_words(question: QuestionAsked) -> str:
    words = " ".join(question.text.split())
    return words if len(words) <= _FIRST_WORDS else f"{words[: _FIRST_WORDS - 3]}..."


def _end_question(command: Answer | Decline, state: ConversationState) -> Sequence[Event]:
    question = find_question(state, command.question)
    if isinstance(command, Answer):
        value = command.value
        events: list[Event] = [_question_ended(question, command, "answered", value)]
        if not question.live:
            if not question.resumes:
                events.append(_answer_event(state.open_actions[question.cause or ""].event, value))
            events.extend(_running(command, state, "answered"))
        return events
    events = [_question_ended(question, command, "declined", reason=command.reason)]
    if question.resumes:
        events.extend(_running(command, state, "declined"))
    elif not question.live:
        events.append(_reject_event(state.open_actions[question.cause or ""].event, command, question))
        events.extend(_idle_without(1, command, state))
    return events


def _question_ended(
    question: QuestionAsked,
    command: Command,
    outcome: QuestionOutcome,
    answer: JsonValue = None,
    *,
    reason: str | None = None,
) -> QuestionAnswered:
    return QuestionAnswered(
        source="user",
        cause=question.cause,
        question=question.id,
        answer=answer,
        outcome=outcome,
        reason=reason,
        typed_masks=find_masks(answer),
        by=command.by,
        command=command.id,
    )


def _answer_event(action: ActionEvent, value: JsonValue) -> ObservationEvent:
    return ObservationEvent(
        source="user",
        cause=action.id,
        tool_name=action.tool_name,
        call_id=action.call_id,
        content=(TextBlock(text=show_answer(value)),),
        data={"answer": value},
    )


def _reject_event(
    action: ActionEvent, command: Reject | Decline, question: QuestionAsked | None
) -> UserRejectObservation:
    return UserRejectObservation(
        source="user",
        cause=action.id,
        tool_name=action.tool_name,
        call_id=action.call_id,
        reason=command.reason,
        question=None if question is None else question.id,
        by=command.by,
        command=command.id,
    )


def _select(command: Approve | Reject, state: ConversationState) -> tuple[ActionEvent, ...]:
    """Return the actions that a decision is about.

    Raises:
        NothingPending: One of them does not wait, or none does any more.
    """
    pending = {event.id: event for event in state.pending}
    if isinstance(command, Approve):
        questions = {action_id for action_id in pending if state.open_actions[action_id].question is not None}
        if asked := [action_id for action_id in command.ids if action_id in questions]:
            raise NothingPending(asked, tuple(pending.keys() - questions), hint=ANSWER_INSTEAD)
        pending = {action_id: event for action_id, event in pending.items() if action_id not in questions}
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
        raise RewindRefused(
            f"The conversation can't go back to {to}: {_why_not_settled(to, state)}.", state.nearest_settled(to)
        )
    moved = HeadMoved(source="user", to=to, command=command.id, by=command.by)
    if command.files:
        saved = state.checkpoints.find(state.branch_events(to))
        if saved is None:
            raise RewindRefused(
                f"The files can't go back to {to}: no checkpoint of them was made at or before it. "
                "Rewind without files, or to a later point.",
                None,
            )
        # The model reads of it when the files are back.
        return [moved.model_copy(update={"checkpoint": saved.id})]
    return [
        moved,
        MessageEvent(source="environment", message=Message.user(REWOUND), code="rewound"),
    ]


def _why_not_settled(seq: int, state: ConversationState) -> str:
    if not 0 <= seq <= state.head:
        return "there is no such event"
    if (last := state.group_of(seq)) != seq:
        return f"it was written together with what follows it, up to {last}"
    return "there are calls before it that were answered after it, or were not"


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
