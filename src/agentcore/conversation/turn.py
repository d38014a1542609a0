"""One turn: steps and their calls until the conversation settles. The driver runs it; nobody else steps.

Every way out leaves the log whole: each action answered or waiting, and one event that says why it ended.
"""

from __future__ import annotations

from contextlib import suppress

from anyio import get_cancelled_exc_class

from agentcore.conversation.core import Core, Turn
from agentcore.conversation.execute import execute_calls, interrupted
from agentcore.conversation.groups import bare, cancelled_itself, is_cancelled
from agentcore.conversation.limits import WorkClock, exceeded
from agentcore.conversation.pending import approved_calls, ask_for_approval
from agentcore.conversation.result import make_result
from agentcore.conversation.settle import settle
from agentcore.conversation.stepping import Stepper
from agentcore.conversation.telling import masked_repr, repr_of, text_of
from agentcore.errors import ConversationClosed, StoreError
from agentcore.events import (
    ConversationErrorEvent,
    ConversationStateUpdateEvent,
    ConversationStatus,
    Event,
    InterruptEvent,
    StatusChanged,
)
from agentcore.logs import get_logger

__all__ = ["run_turn", "status_event"]

_log = get_logger(__name__)


def status_event(
    status: ConversationStatus, code: str | None = None, detail: str | None = None
) -> ConversationStateUpdateEvent:
    """Make the event of a status change."""
    return ConversationStateUpdateEvent(update=StatusChanged(status=status, code=code, detail=detail))


async def run_turn(core: Core, turn: Turn) -> None:
    """Work until the conversation settles, and record how; `turn` has the result when it is done."""
    stepper = Stepper(core, turn)
    try:
        with turn.scope:
            clock = turn.clock = WorkClock(core.clock, core.state.worked_seconds)
            clock.hold_to(core.state.limits)
            await _begin(core, turn)
            with clock.scope:
                await _take_turn(core, turn, stepper)
            if clock.scope.cancelled_caught:
                turn.settling = True
                code, detail = clock.expired or ("run_seconds", "The run's time is over.")
                await _answer_open(core, detail, ConversationErrorEvent(code=code, detail=detail))
        if turn.scope.cancelled_caught:
            turn.settling = True
            await _stop(core, turn, stepper)
    except Exception as error:
        await _record_failure(core, turn, error)
    except get_cancelled_exc_class() as error:
        if not await is_cancelled():  # noqa: ASYNC102 asking does not wait
            await _record_failure(core, turn, cancelled_itself("The model, or a callback,", error))  # noqa: ASYNC102 writes can't be cancelled, and the store bounds them
            return  # noqa: ASYNC104 it was not a cancellation
        turn.closing = turn.settling = True
        with suppress(StoreError, ConversationClosed):  # whoever waits is told of these by the core
            await _stop(core, turn, stepper)  # noqa: ASYNC102 writes can't be cancelled, and the store bounds them
        raise
    except BaseException as error:
        await _record_failure(core, turn, error)
        raise
    finally:
        core.turn = None
        turn.end(make_result(core.state, turn.first_seq, core.output), turn.error, fatal=turn.fatal)


async def _begin(core: Core, turn: Turn) -> None:
    if turn.code == "run":
        core.output = None
        await core.journal.write(status_event(ConversationStatus.RUNNING, "run"))
    # After an approval the status is set already, and the run that was waiting goes on.
    turn.first_seq = core.state.run_seq


async def _take_turn(core: Core, turn: Turn, stepper: Stepper) -> None:
    state = core.state
    while True:
        if calls := await approved_calls(core):
            await execute_calls(core, calls, {call.event.id for call in calls if call.event.id in core.rerun})
            core.rerun.clear()
            if await stepper.settle_after_calls():
                return
            continue
        # Before anybody is asked: while a person decides nothing runs, and a pause would be forgotten.
        if state.pause_requested and (core.confirm is not None or not state.pending):
            await settle(core, turn, status_event(ConversationStatus.PAUSED, "pause"))
            return
        if pending := state.pending:
            if await ask_for_approval(core, turn):
                continue
            waiting = status_event(ConversationStatus.WAITING_FOR_CONFIRMATION)
            if await settle(core, turn, waiting, condition=lambda now: now.pending == pending):
                return
            continue
        if (over := exceeded(state, state.limits)) is not None:
            await settle(core, turn, ConversationErrorEvent(code=over[0], detail=over[1]))
            return
        if await stepper.step():
            return


async def _answer_open(core: Core, why: str, *after: Event) -> None:
    """Answer what is open and does not wait for a person, in one group with what comes after it."""
    answers = [
        interrupted(action.event, why if action.started else f"{why} before it started", None, "interrupted")
        for action in core.state.open_actions.values()
        if not action.waits
    ]
    if answers or after:
        await core.journal.keep(*answers, *after)


async def _stop(core: Core, turn: Turn, stepper: Stepper) -> None:
    """Record that the turn was stopped where it was."""
    partial_text = stepper.partial_text
    stepper.give_up()
    after: list[Event] = []
    if not turn.closing:
        after.append(InterruptEvent(source="user", partial_text=partial_text, reason=turn.reason))
    elif core.state.status is ConversationStatus.RUNNING:
        detail = "The conversation was closed while the agent worked."
        after.append(status_event(ConversationStatus.PAUSED, "closed", detail))
    await _answer_open(core, turn.reason or "the turn was stopped", *after)


async def _record_failure(core: Core, turn: Turn, error: BaseException) -> None:
    """Record that the turn failed; where the log has died, that is what those who wait are told."""
    turn.settling = True
    turn.error = error
    what = error if isinstance(error, Exception) else bare(error)
    failed = ConversationErrorEvent(code=type(what).__name__, detail=text_of(what) or repr_of(what))
    try:
        await _answer_open(core, "the run failed", failed)
        _log.info("run failed", error=masked_repr(core.secrets, error))
    except (StoreError, ConversationClosed) as dead:
        turn.error, turn.fatal = dead, True
