"""Going on after a crash: every action that was cut off gets exactly one answer, and nothing runs by itself."""

from __future__ import annotations

import anyio

from agentcore.agent import Call
from agentcore.conversation.calls import interrupted
from agentcore.conversation.core import Core
from agentcore.conversation.exceptions import masked_repr
from agentcore.conversation.execute import observe
from agentcore.conversation.guards import mark_running_in
from agentcore.conversation.pending import prepare
from agentcore.conversation.questions import withdraw
from agentcore.conversation.stepping import status_event
from agentcore.conversation.tool_host import CallHost, make_context
from agentcore.events import (
    AgentErrorEvent,
    ConversationStatus,
    Event,
    ObservationEvent,
)
from agentcore.logs import get_logger
from agentcore.record import OpenAction

_log = get_logger(__name__)

_RECONCILE_SECONDS = 30.0


async def recover(core: Core) -> None:
    """Answer what was cut off, and mark a conversation that was working as paused."""
    state = core.state
    # Whoever was asked, the call that waited is gone.
    answers: list[Event] = [*withdraw(state, None, "The process that asked ended.")]
    for action in tuple(state.open_actions.values()):
        if action.waits or action.runs_next:
            continue  # both outlive a crash: what was approved is run by the next turn
        if not action.started:
            answers.append(interrupted(action.event, "the process ended before it started", "recovered"))
        elif (answer := await _outcome(core, action)) is not None:
            answers.append(answer)
    if state.status is ConversationStatus.RUNNING:
        detail = "The process that ran this conversation ended while it worked."
        answers.append(status_event(ConversationStatus.PAUSED, "recovered", detail))
    elif state.is_asking:
        detail = "The process that ran this conversation ended while a person was asked."
        answers.append(status_event(ConversationStatus.WAITING_FOR_CONFIRMATION, "recovered", detail))
    if answers:
        _log.info("recovered", answers=len(answers))
        await core.journal.write(*answers)


async def _outcome(core: Core, action: OpenAction) -> ObservationEvent | AgentErrorEvent | None:
    """Find out what became of an action that had started; None where it is read-only, and is run again."""
    event = action.event
    call: Call | AgentErrorEvent | None = None
    with anyio.move_on_after(_RECONCILE_SECONDS):  # it may need a secret, from a source that does not answer
        # A tool that is described otherwise by now can say what became of the call all the same.
        call = await prepare(core, action, as_recorded=False)
    if isinstance(call, Call):
        if call.tool.annotations.read_only:
            core.calls.to_retry.add(event.id)
            return None
        if (known := await _reconcile(core, call)) is not None:
            return known
    return AgentErrorEvent(
        cause=event.id,
        tool_name=event.tool_name,
        call_id=event.call_id,
        error="The process ended while this ran: it may have happened, wholly, in part, or not at all. "
        "Look before you do it again.",
        outcome="unknown",
        code="recovered",
    )


async def _reconcile(core: Core, call: Call) -> ObservationEvent | None:
    if call.tool.reconcile is None:
        return None
    try:
        with anyio.fail_after(_RECONCILE_SECONDS), mark_running_in(core.state.conversation_id):
            context = make_context(core, call.event, CallHost(core, call.event))
            observation = await call.tool.reconcile(call.action, context)
            return None if observation is None else await observe(core, call, observation)
    except Exception as error:
        shown = masked_repr(core.secrets, error)
        _log.warning("reconcile failed", tool=call.tool.name, action=call.event.id, error=shown)
        return None
