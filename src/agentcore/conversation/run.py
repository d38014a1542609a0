"""Asking for a run, and waiting for what it comes to."""

from __future__ import annotations

from contextvars import Context, copy_context
from typing import Self

import anyio
from anyio import get_cancelled_exc_class
from anyio.lowlevel import checkpoint

from agentcore.conversation import control
from agentcore.conversation.core import Core, Turn
from agentcore.conversation.inside import refuse_inside
from agentcore.conversation.output import recorded_output
from agentcore.conversation.result import RunResult, make_result
from agentcore.conversation.settle import turn_under_way
from agentcore.conversation.telling import text_of
from agentcore.conversation.watch import EventCursor
from agentcore.errors import ConversationClosed, ConversationError, RunError, StoreError
from agentcore.events import ConversationStatus, Event, MessageEvent
from agentcore.messages import Message

__all__ = ["RunStream", "begin_run", "join_run"]


async def begin_run(core: Core, context: Context) -> Turn | RunResult:
    """Give the turn under way, begin one, or give the result at once where there is nothing to run."""
    if (turn := await turn_under_way(core)) is not None:
        return turn
    state = core.state
    if core.closing:
        raise ConversationClosed(state.conversation_id)
    # Where the program has a callback that decides, it is asked (again, after a restart).
    waits = state.status is ConversationStatus.WAITING_FOR_CONFIRMATION and core.confirm is None
    if state.status is ConversationStatus.FINISHED or (waits and state.pending):
        return make_result(state, state.run_seq, recorded_output(core))
    if not any(isinstance(event, MessageEvent) for event in state.shown):
        raise ConversationError("There is nothing to work on yet: send a message, or pass one to run().")
    core.turn = Turn(context, code="run")
    core.wake()
    return core.turn


async def join_run(core: Core, run: Turn | RunResult) -> RunResult:
    """Wait until the turn settles.

    Raises:
        RunError: A step raised.
        StoreError: The log died.
    """
    if isinstance(run, RunResult):
        await checkpoint()
        return run
    run.waiters += 1
    try:
        await run.done.wait()
    except get_cancelled_exc_class():
        run.waiters -= 1
        if not run.waiters:
            run.interrupt("the caller of run() was cancelled")
            with anyio.CancelScope(shield=True):
                await run.done.wait()
        raise
    return outcome_of(core, run)


def outcome_of(core: Core, turn: Turn) -> RunResult:
    """Give the result of a turn that is done, or raise what it ended in."""
    result = turn.result
    assert result is not None
    if turn.error is None:
        return result
    if not turn.fatal:
        told = core.secrets.masker.mask_text(text_of(turn.error))
        raise RunError(f"The run failed with {type(turn.error).__name__}: {told}", result) from turn.error
    core.told = core.told or turn.error is core.failure
    if not isinstance(turn.error, StoreError | ConversationClosed):
        raise ConversationClosed(core.state.conversation_id) from turn.error
    raise turn.error


class RunStream:
    """The events of a run as they come. Made by `Conversation.run_stream`."""

    def __init__(self, core: Core, text: str | Message | None) -> None:
        self._core = core
        self._text = text
        self._context = copy_context()
        self._run: Turn | RunResult | None = None
        self._cursor: EventCursor | None = None

    @property
    def result(self) -> RunResult:
        """What the run came to, once the stream has ended.

        Raises:
            RuntimeError: It has not.
        """
        if isinstance(self._run, RunResult):
            return self._run
        if self._run is None or self._run.result is None:
            raise RuntimeError("The run has not settled yet: read the stream to its end.")
        return self._run.result

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        refuse_inside(self._core.state.conversation_id, "run_stream")
        self._core.refuse_elsewhere()
        if self._run is None or self._cursor is None:
            core = self._core
            self._cursor = EventCursor(core.state, core.bell, core.state.head)
            if self._text is not None:
                try:
                    await control.send(core, self._text)
                except StoreError as error:
                    core.told = core.told or error is core.failure
                    raise
            self._run = await begin_run(core, self._context)
        run = self._run
        while self._cursor.seq >= self._core.state.head:
            if isinstance(run, RunResult):
                raise StopAsyncIteration
            if run.done.is_set():
                outcome_of(self._core, run)
                raise StopAsyncIteration
            await self._wait(run)
        if isinstance(run, Turn) and run.result is not None and self._cursor.seq >= run.result.last_seq:
            outcome_of(self._core, run)
            raise StopAsyncIteration
        return await self._cursor.__anext__()

    async def _wait(self, run: Turn) -> None:
        """Wait until there is an event or the run has settled, whichever comes first."""
        async with anyio.create_task_group() as tasks:

            async def settled() -> None:
                await run.done.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(settled)
            await self._core.bell.wait()
            tasks.cancel_scope.cancel()
