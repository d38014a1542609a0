"""Asking for a run, and waiting for what it comes to."""

from __future__ import annotations

from contextlib import suppress
from contextvars import Context, copy_context
from typing import Self

import anyio
from anyio import get_cancelled_exc_class

from agentcore.commands import Interrupt, Leave, Run
from agentcore.conversation.core import Core
from agentcore.conversation.exceptions import safe_str
from agentcore.conversation.guards import forbid_reentry
from agentcore.conversation.journal import Attachment, Decision
from agentcore.conversation.result import RunResult
from agentcore.conversation.turn import Turn
from agentcore.conversation.watch import EventCursor
from agentcore.errors import AgentcoreError, ConversationClosed, RunError, StoreError
from agentcore.events import Event
from agentcore.messages import Message


def begin_run(core: Core, message: Message | None, context: Context) -> Decision:
    """Hand over the command that begins a run, or joins it."""
    with suppress(Exception):  # a tool that can't be described: the step that needs it says so
        core.prompt.compose_nowait()
    command = Run(message=message, attended=core.confirm is not None, answers=core.on_question is not None)
    decision = core.journal.hand_over(command, Attachment(context=context, tail=core.prompt.changed_nowait))
    core.last_run = decision
    return decision


async def run_to_end(core: Core, message: Message | None) -> RunResult:
    """Run, and wait until that has settled.

    Raises:
        RunError: A step raised.
        StoreError: The log died.
    """
    decision = begin_run(core, message, copy_context())
    try:
        await core.journal.receipt_of(decision)
        turn = decision.turn
        if isinstance(turn, Turn):
            await turn.done.wait()
    except get_cancelled_exc_class():
        await _leave(core, decision)  # noqa: ASYNC102 shielded there, and bounded by the store and by how long calls may take to stop
        raise
    return outcome_of(core, decision)


async def interrupt_run(core: Core, reason: str | None) -> None:
    """Stop the run at once, and wait until that is recorded.

    Raises:
        StoreError: The log died.
    """
    command, turn = Interrupt(run=core.state.run.seq, reason=reason), core.turn
    if turn is not None:
        # At once, and behind nothing; what follows only waits until that is recorded.
        turn.interrupt(reason, command=command.id)
    decision = core.journal.hand_over(command, Attachment(run=core.undecided_run))
    await core.journal.receipt_of(decision)
    turn = turn or decision.turn
    if isinstance(turn, Turn):
        await turn.done.wait()
        if turn.fatal and isinstance(turn.error, StoreError):
            core.journal.failure_reported = True
            raise turn.error


async def _leave(core: Core, decision: Decision) -> None:
    """Wait for the run no longer. The last one to leave interrupts it, and waits until that is recorded."""
    # Before anything is awaited: a second cancellation of asyncio's own goes through the shield.
    if isinstance(decision.turn, Turn):
        decision.turn.leave(decision.command.id)
    elif not decision.done.is_set():
        with suppress(ConversationClosed):
            core.journal.hand_over(Leave(waiter=decision.command.id))  # decided on right behind the run
    with anyio.CancelScope(shield=True):
        await decision.done.wait()
        if isinstance(turn := decision.turn, Turn):
            turn.leave(decision.command.id)
            if not turn.waiters:
                await turn.done.wait()


def outcome_of(core: Core, decision: Decision) -> RunResult:
    """Return the result of a run that is over, or raise what it ended in."""
    turn = decision.turn
    if isinstance(turn, RunResult):
        return turn
    assert turn is not None
    result = turn.result
    assert result is not None
    if turn.error is None:
        return result
    if not turn.fatal:
        shown = core.secrets.masker.mask_text(safe_str(turn.error))
        failed = RunError(f"The run failed with {type(turn.error).__name__}: {shown}", result, turn.error)
        # The stack of agentcore would bury the sentence that says what to do (a key is missing, no such provider).
        raise failed from None if isinstance(turn.error, AgentcoreError) else turn.error
    if not isinstance(turn.error, StoreError | ConversationClosed):
        raise ConversationClosed(core.state.conversation_id) from turn.error
    core.journal.failure_reported = core.journal.failure_reported or turn.error is core.life.failure
    raise turn.error


class RunStream:
    """The events of a run as they come. Made by `Conversation.run_stream`."""

    def __init__(self, core: Core, message: Message | None) -> None:
        self._core = core
        self._message = message
        self._context = copy_context()
        self._decision: Decision | None = None
        self._cursor: EventCursor | None = None

    @property
    def result(self) -> RunResult:
        """The result of the run, once the stream has ended.

        Raises:
            RuntimeError: It has not.
        """
        run = None if self._decision is None else self._decision.turn
        result = run.result if isinstance(run, Turn) else run
        if result is None:
            raise RuntimeError("The run has not settled yet: read the stream to its end.")
        return result

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        try:
            return await self._next()
        except RunError as error:
            # Of agentcore's frames only this one. A comment behind it would add a line of ^^^^ to the traceback.
            raise error.with_traceback(None) from error.__cause__

    async def _next(self) -> Event:
        core = self._core
        forbid_reentry(core.state.conversation_id, "run_stream")
        core.check_loop()
        if self._decision is None or self._cursor is None:
            self._cursor = EventCursor(core.state, core.head_signal, core.state.head)
            self._decision = begin_run(core, self._message, self._context)
        await core.journal.receipt_of(self._decision)
        run = self._decision.turn
        result = run.result if isinstance(run, Turn) else run
        while self._cursor.seq >= core.state.head and result is None and isinstance(run, Turn):
            await self._wait(run)
            result = run.result
        if self._cursor.seq >= (core.state.head if result is None else result.last_seq):
            outcome_of(core, self._decision)
            raise StopAsyncIteration
        return await self._cursor.__anext__()

    async def _wait(self, run: Turn) -> None:
        """Wait until there is an event or the run has settled, whichever comes first."""
        async with anyio.create_task_group() as tasks:

            async def settled() -> None:
                await run.done.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(settled)
            await self._core.head_signal.wait()
            tasks.cancel_scope.cancel()
