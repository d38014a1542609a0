"""Asking for a run, and waiting for what it comes to."""

from __future__ import annotations

from contextvars import copy_context
from typing import Self

import anyio
from anyio import get_cancelled_exc_class

from agentcore.commands import Run
from agentcore.conversation.guards import forbid_reentry
from agentcore.conversation.link import Link, PendingRun
from agentcore.conversation.result import RunResult
from agentcore.conversation.watch import EventCursor
from agentcore.errors import RunError
from agentcore.events import Event
from agentcore.messages import Message


async def run_to_end(link: Link, message: Message | None) -> RunResult:
    """Run, and wait until that has settled.

    Raises:
        RunError: A step raised.
        StoreError: The log died.
    """
    run = link.begin_run(Run(message=message), copy_context())
    try:
        await run.recorded()
        await run.wait()
    except get_cancelled_exc_class():
        await run.leave()  # noqa: ASYNC102 shielded there, and bounded by the store and by how long calls may take to stop
        raise
    return run.outcome()


class RunStream:
    """The events of a run as they come. Made by `Conversation.run_stream`."""

    def __init__(self, link: Link, message: Message | None) -> None:
        self._link = link
        self._message = message
        self._context = copy_context()
        self._run: PendingRun | None = None
        self._cursor: EventCursor | None = None

    @property
    def result(self) -> RunResult:
        """The result of the run, once the stream has ended.

        Raises:
            RuntimeError: It has not.
        """
        result = None if self._run is None else self._run.result
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
        link = self._link
        state = link.state
        forbid_reentry(state.conversation_id, "run_stream")
        link.check_loop()
        if self._run is None or self._cursor is None:
            self._cursor = EventCursor(state, link.head_signal, state.head)
            self._run = link.begin_run(Run(message=self._message), self._context)
        await self._run.recorded()
        while self._cursor.seq >= state.head and self._run.result is None:
            await self._wait(self._run)
        result = self._run.result
        if self._cursor.seq >= (state.head if result is None else result.last_seq):
            self._run.outcome()
            raise StopAsyncIteration
        return await self._cursor.__anext__()

    async def _wait(self, run: PendingRun) -> None:
        """Wait until there is an event or the run has settled, whichever comes first."""
        async with anyio.create_task_group() as tasks:

            async def settled() -> None:
                await run.wait()
                tasks.cancel_scope.cancel()

            tasks.start_soon(settled)
            await self._link.head_signal.wait()
            tasks.cancel_scope.cancel()
