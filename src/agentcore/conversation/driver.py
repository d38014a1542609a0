"""The driver: it carries turns out, one after another. Steps and their calls until the conversation settles.

Every way out of a turn leaves the log whole: each action answered or waiting, and one event that says why it ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from anyio import get_cancelled_exc_class
from anyio.lowlevel import checkpoint_if_cancelled
from anyio.streams.memory import MemoryObjectReceiveStream

from agentcore.conversation.calls import interrupted
from agentcore.conversation.checkpoints import checkpoint_if_settled, restore_if_due
from agentcore.conversation.core import Core
from agentcore.conversation.exceptions import (
    is_cancelled,
    masked_repr,
    open_group,
    safe_repr,
    safe_str,
    spurious_cancellation,
    unwrap,
)
from agentcore.conversation.execute import CallBatch
from agentcore.conversation.pending import approved_calls, ask_for_approval
from agentcore.conversation.questions import withdraw
from agentcore.conversation.stepping import Stepper, end_turn_with, status_event
from agentcore.conversation.turn import RunTimer, Turn, exceeded
from agentcore.errors import ConversationClosed, StoreError
from agentcore.events import ConversationErrorEvent, ConversationStatus, Event, InterruptEvent
from agentcore.logs import get_logger
from agentcore.record import ConversationState

_log = get_logger(__name__)


async def drive(core: Core, queued: MemoryObjectReceiveStream[Turn]) -> None:
    """Carry out one turn after another, each in the context of its caller."""
    async with open_group() as turns:
        async for turn in queued:
            await turns.create_task(_run_turn(core, turn), context=turn.context, name="turn").wait()


async def _run_turn(core: Core, turn: Turn) -> None:
    """Work until the conversation settles, and record how."""
    stepper = Stepper(core, turn)
    try:
        with turn.scope:
            if turn.phase == "queued":
                turn.enter("working")
            timer = turn.timer = RunTimer(core.clock, core.state.worked_seconds)
            timer.set_limits(core.state.limits)
            with timer.scope:
                await _take_turn(core, turn, stepper)
            if timer.scope.cancelled_caught and not turn.settled:
                code, detail = timer.expired or ("run_seconds", "The run's time is over.")
                await _answer_open(core, detail, ConversationErrorEvent(code=code, detail=detail))
        if turn.scope.cancelled_caught and not turn.settled:
            await _stop(core, turn, stepper)
    except Exception as error:
        await _record_failure(core, turn, error)
    except get_cancelled_exc_class() as error:
        if not await is_cancelled():  # noqa: ASYNC102 asking does not wait
            await _record_failure(core, turn, spurious_cancellation("The model, or a callback,", error))  # noqa: ASYNC102 writes can't be cancelled, and the store bounds them
            return  # noqa: ASYNC104 it was not a cancellation
        turn.closing = True
        with suppress(StoreError, ConversationClosed):  # the core reports these to those who wait
            await _stop(core, turn, stepper)  # noqa: ASYNC102 writes can't be cancelled, and the store bounds them
        raise
    except BaseException as error:
        await _record_failure(core, turn, error)
        raise
    finally:
        core.end_turn(turn)


async def _take_turn(core: Core, turn: Turn, stepper: Stepper) -> None:
    await checkpoint_if_cancelled()
    async with core.files:
        await restore_if_due(core)
        await checkpoint_if_settled(core)
    while not turn.settled:
        async with core.files:
            await _go_on(core, turn, stepper)


async def _go_on(core: Core, turn: Turn, stepper: Stepper) -> None:
    """Do what comes next: calls that were approved, a question to a person, or a step."""
    state = core.state
    core.change_agent()
    if calls := await approved_calls(core):
        batch = CallBatch(core, calls)
        batch.mark_started(core.calls.to_retry)
        core.calls.to_retry.clear()
        await batch.run()
        await stepper.settle_after_calls()
        return
    # Before anybody is asked: while a person decides nothing runs.
    if state.pause_requested and (core.confirm is not None or core.on_question is not None or not state.pending):
        await end_turn_with(core, status_event(ConversationStatus.PAUSED, state.pause_code))
    elif pending := state.pending:
        if await ask_for_approval(core, turn):
            return
        waiting = status_event(ConversationStatus.WAITING_FOR_CONFIRMATION)
        await end_turn_with(core, waiting, lambda now, waited=pending: now.pending == waited)
    elif (over := exceeded(state, state.limits)) is not None:
        await end_turn_with(core, ConversationErrorEvent(code=over[0], detail=over[1]))
    else:
        await stepper.step()


async def _answer_open(core: Core, why: str, *after: Event, keep_approved: bool = False) -> None:
    """Answer what is open and does not wait for a person, in one group with what comes after it.

    Args:
        core: The conversation.
        why: What stopped it.
        *after: What comes after the answers.
        keep_approved: Leave what was approved and has not started to the next turn.
    """

    def compose(state: ConversationState) -> Sequence[Event]:
        # On the state that this is appended to: an approval may have come before it.
        answers: list[Event] = []
        for action in state.open_actions.values():
            if not action.waits and not (keep_approved and action.runs_next):
                answers += withdraw(state, action.event.id, why)
                begun = action.started or action.resumption is not None
                stopped = why if begun else f"{why} before it started"
                answers.append(interrupted(action.event, stopped, "interrupted"))
        return [*answers, *after]

    await core.journal.write_composed(compose)


async def _stop(core: Core, turn: Turn, stepper: Stepper) -> None:
    """Record that the turn was stopped where it was."""
    if turn.settled:
        return
    partial_text = stepper.partial_text
    stepper.give_up()
    if turn.closing:
        await close_unfinished(core, turn.reason)
        return
    stopped = InterruptEvent(
        source="user", partial_text=partial_text, reason=turn.reason, command=turn.command, by=turn.by
    )
    await _answer_open(core, turn.reason or "the turn was stopped", stopped)


async def close_unfinished(core: Core, why: str | None = None) -> None:
    """Record that the conversation was closed during a turn, and answer what is open; an approval stays."""
    after: list[Event] = []
    if core.state.is_working:  # and only the caller ends that
        detail = "The conversation was closed while the agent worked."
        after.append(status_event(ConversationStatus.PAUSED, "closed", detail))
    await _answer_open(core, why or "the conversation was closed", *after, keep_approved=True)


async def _record_failure(core: Core, turn: Turn, error: BaseException) -> None:
    """Record that the turn failed; where the log has died, those who wait get that error."""
    if turn.settled:
        _log.warning("the end of a turn raised", error=masked_repr(core.secrets, error))
        return
    turn.error = error
    what = error if isinstance(error, Exception) else unwrap(error)
    detail = safe_str(what) or safe_repr(what)
    failed = ConversationErrorEvent(code=type(what).__name__, detail=detail, raised=True)
    try:
        await _answer_open(core, "the run failed", failed)
        _log.info("run failed", error=masked_repr(core.secrets, error))
    except (StoreError, ConversationClosed) as dead:
        turn.error, turn.fatal = dead, True
