"""Actions that a person decides on: who is asked, and what runs once they said yes."""

from __future__ import annotations

from functools import partial

from agentcore.agent import Call
from agentcore.conversation.core import Core, Turn
from agentcore.conversation.groups import open_group
from agentcore.conversation.inside import enter_inside
from agentcore.errors import SecretError
from agentcore.events import (
    ActionApproved,
    ActionEvent,
    AgentErrorEvent,
    ConversationStateUpdateEvent,
    ConversationStatus,
    Event,
    StatusChanged,
    UserRejectObservation,
)
from agentcore.record import ConversationState, OpenAction
from agentcore.risk import SecurityRisk
from agentcore.secrets import unmask
from agentcore.security import Approve, Confirm, Reject, rated, read_answer
from agentcore.tools import read_call

__all__ = ["approved_calls", "ask_for_approval", "prepare", "reject_event"]


async def approved_calls(core: Core) -> list[Call]:
    """Give the open actions that may run now: approved ones, and read-only ones that a crash cut off.

    Those that turn out to be impossible are answered here.
    """
    calls: list[Call] = []
    for action in tuple(core.state.open_actions.values()):
        if action.event.id in core.rerun if action.started else action.approval is not None:
            found = await prepare(core, action)
            if isinstance(found, Call):
                calls.append(found)
            else:
                core.rerun.discard(action.event.id)
                await core.journal.write(found)
    return calls


async def prepare(core: Core, action: OpenAction) -> Call | AgentErrorEvent:
    """Make a call of an open action again, or the answer that says why that can't be done."""
    event = action.event
    arguments = core.arguments.get(event.id)
    if arguments is None or (action.approval is not None and action.approval.arguments is not None):
        try:
            arguments = await unmask(action.arguments, core.secrets.get, names=core.state.secret_names)
        except SecretError as error:
            return _cannot_run(event, f"It needs a secret that is not there. {error}", "secret_missing")
    read = read_call(event.tool_name, arguments, core.agent.all_tools)
    if read.tool is None or read.action is None:
        return _cannot_run(event, read.problem or "The call could not be read.", read.code or "bad_arguments")
    return Call(event, read.tool, read.action)


def _cannot_run(event: ActionEvent, error: str, code: str) -> AgentErrorEvent:
    return AgentErrorEvent(
        cause=event.id, tool_name=event.tool_name, call_id=event.call_id, error=error, outcome="not_run", code=code
    )


def reject_event(event: ActionEvent, reason: str, by: str | None) -> UserRejectObservation:
    """Make the answer of an action that a person did not allow."""
    return UserRejectObservation(
        source="user", cause=event.id, tool_name=event.tool_name, call_id=event.call_id, reason=reason, by=by
    )


async def ask_for_approval(core: Core, turn: Turn) -> bool:
    """Ask the program's callback for each waiting action; say whether there is one to ask.

    While it is asked the conversation waits for confirmation, as it would without a callback, and the clock stands.
    """
    confirm = core.confirm
    if confirm is None or turn.clock is None:
        return False
    await core.journal.write(
        ConversationStateUpdateEvent(update=StatusChanged(status=ConversationStatus.WAITING_FOR_CONFIRMATION))
    )
    turn.clock.stop()
    try:
        for event in core.state.pending:
            answer = await _ask(core, confirm, event)
            decision: Event
            match answer:
                case Approve():
                    decision = ActionApproved(source="user", cause=event.id, by=answer.by, arguments=answer.arguments)
                case Reject():
                    decision = reject_event(event, answer.reason, answer.by)
                case None:
                    continue
            await core.journal.write(decision, condition=partial(_waits, action_id=event.id))
    finally:
        turn.clock.go_on()
    await core.journal.write(
        ConversationStateUpdateEvent(update=StatusChanged(status=ConversationStatus.RUNNING, code="approved"))
    )
    return True


async def _ask(core: Core, confirm: Confirm, event: ActionEvent) -> Approve | Reject | None:
    """Ask about one action; None where somebody else decides first, and then nobody is asked any more."""
    answer: Approve | Reject | None = None
    async with open_group() as tasks:

        async def withdraw() -> None:
            while _waits(core.state, event.id):
                await core.bell.wait()
            tasks.cancel_scope.cancel()

        tasks.start_soon(withdraw)
        risk = action.risk if (action := core.state.open_actions.get(event.id)) is not None else SecurityRisk.UNKNOWN
        with enter_inside(core.state.conversation_id):
            answer = read_answer(await confirm(rated(event, risk)), event)
        tasks.cancel_scope.cancel()
    return answer


def _waits(state: ConversationState, action_id: str) -> bool:
    action = state.open_actions.get(action_id)
    return action is not None and action.waits
