"""Actions that a person decides on: who is asked, and what runs once they said yes."""

from __future__ import annotations

from functools import partial

from pydantic import JsonValue

from agentcore.agent import Call
from agentcore.conversation.core import Core, Turn
from agentcore.conversation.groups import open_group
from agentcore.conversation.inside import enter_inside
from agentcore.conversation.refusal import not_run
from agentcore.conversation.tools import NotRun
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
from agentcore.messages import ToolSchema
from agentcore.record import ConversationState, OpenAction
from agentcore.secrets import unmask
from agentcore.security import Approve, Confirm, Reject, read_answer
from agentcore.tools import ToolContext, raw_tool, read_call

__all__ = ["approved_calls", "ask_for_approval", "parse_edited", "prepare", "reject_event"]


async def approved_calls(core: Core) -> list[Call]:
    """Give the open actions that may run now: approved ones, and read-only ones that a crash cut off.

    Those that turn out to be impossible are answered here.
    """
    calls: list[Call] = []
    ready = [
        action
        for action in core.state.open_actions.values()
        if (action.event.id in core.rerun if action.started else action.approval is not None)
    ]
    if not all(core.tool_sessions.owns(action.event.tool_name) for action in ready):
        await core.tool_sessions.compose()  # after a restart nothing is open yet
    for action in ready:
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
            return not_run(event, f"It needs a secret that is not there. {error}", "secret_missing")
    tool = core.tool_sessions.resolve(event.tool_name, _told_digest(core, event.tool_name))
    if isinstance(tool, NotRun):
        return not_run(event, tool.text, tool.code)
    await core.tool_sessions.prepare_checks((tool,))
    read = read_call(event.tool_name, arguments, (tool,))
    if read.tool is None or read.action is None:
        return not_run(event, read.problem or "The call could not be read.", read.code or "bad_arguments")
    return Call(event, read.tool, read.action)


async def parse_edited(core: Core, event: ActionEvent, arguments: dict[str, JsonValue]) -> None:
    """Check the arguments that a person gave a waiting action, against the schema that the model was told.

    Raises:
        ToolArgumentsError: they do not fit.
    """
    tool = core.tool_sessions.resolve(event.tool_name, _told_digest(core, event.tool_name))
    if isinstance(tool, NotRun):
        # It may be a toolset's that is not open, as after a restart: what the log has of it does.
        schema = _told_schema(core, event.tool_name)
        if schema is None:
            return
        tool = raw_tool(schema.name, schema.description, schema.parameters, _never)
    await core.tool_sessions.prepare_checks((tool,))
    tool.parse(arguments)


async def _never(arguments: dict[str, JsonValue], ctx: ToolContext) -> None:  # noqa: ARG001 every executor is given them
    raise AssertionError("it is made to check arguments")


def _told_schema(core: Core, name: str) -> ToolSchema | None:
    """Find what the model was told of a tool when it made the calls that wait: no other request is made before they are answered."""
    prompt = core.state.prompt
    return None if prompt is None else next((schema for schema in prompt.tools if schema.name == name), None)


def _told_digest(core: Core, name: str) -> str | None:
    schema = _told_schema(core, name)
    return None if schema is None else schema.digest


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
        with enter_inside(core.state.conversation_id):
            answer = read_answer(await confirm(event), event)
        tasks.cancel_scope.cancel()
    return answer


def _waits(state: ConversationState, action_id: str) -> bool:
    action = state.open_actions.get(action_id)
    return action is not None and action.waits
