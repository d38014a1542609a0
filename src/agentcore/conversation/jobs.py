"""Jobs: work beside the turns, each in a task of the conversation, in the context of its caller.

A caller that is cancelled just leaves. Work that no caller waits for any more is cancelled, or runs to its end.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextvars import copy_context
from typing import Any, Generic, TypeVar

import anyio
from anyio import get_cancelled_exc_class
from anyio.abc import TaskGroup

from agentcore.errors import ConversationClosed

ResultT = TypeVar("ResultT")


class StartedJob(Generic[ResultT]):
    """One piece of work and what it came to."""

    def __init__(
        self,
        work: Callable[[], Coroutine[Any, Any, ResultT]],
        *,
        finish: bool,
        discard: Callable[[ResultT], None] | None,
    ) -> None:
        self._work = work
        self._discard = discard
        self._left = False
        self._results: list[ResultT] = []
        self.finish = finish
        self.scope = anyio.CancelScope()
        self.done = anyio.Event()
        self.error: Exception | None = None

    async def run(self) -> None:
        try:
            with self.scope:
                self._results.append(await self._work())
                self._discard_if_left()
        except Exception as error:
            self.error = error  # raised where it is waited for; a conversation does not end over it
        finally:
            self.done.set()

    def leave(self) -> None:
        """Wait for it no longer: what it gives, or has given just now, is discarded."""
        self._left = True
        if not self.finish:
            self.scope.cancel()
        self._discard_if_left()

    def _discard_if_left(self) -> None:
        if self._left and self._results and self._discard is not None:
            self._discard(self._results[0])

    def result(self, conversation_id: str) -> ResultT:
        if self.error is not None:
            raise self.error
        if not self._results:
            raise ConversationClosed(conversation_id)
        return self._results[0]


class Jobs:
    """The jobs of one conversation, or of a host."""

    def __init__(self, tasks: TaskGroup, conversation_id: str) -> None:
        self._tasks = tasks
        self._id = conversation_id
        self._under_way: set[StartedJob[Any]] = set()
        self._closed = False

    async def do(
        self,
        work: Callable[[], Coroutine[Any, Any, ResultT]],
        *,
        name: str,
        finish: bool,
        discard: Callable[[ResultT], None] | None = None,
    ) -> ResultT:
        """Do a job and return its result, or raise what it raised.

        Args:
            work: What to do.
            name: Of the task.
            finish: Run it to its end when no caller waits for it any more.
            discard: Releases a result that no caller waits for.

        Raises:
            ConversationClosed: The conversation takes no more jobs, or gave this one up.
        """
        job = self.start(work, name=name, finish=finish, discard=discard)
        if job is None:
            raise ConversationClosed(self._id)
        try:
            await job.done.wait()
        except get_cancelled_exc_class():
            job.leave()
            raise
        return job.result(self._id)

    def start(
        self,
        work: Callable[[], Coroutine[Any, Any, ResultT]],
        *,
        name: str,
        finish: bool,
        discard: Callable[[ResultT], None] | None = None,
    ) -> StartedJob[ResultT] | None:
        """Start a job that nobody need wait for, in the caller's context; None where no more are taken. See `do`."""
        if self._closed:
            return None
        job = StartedJob(work, finish=finish, discard=discard)
        self._under_way.add(job)
        self._tasks.create_task(self._run(job), context=copy_context(), name=name)
        return job

    async def _run(self, job: StartedJob[Any]) -> None:
        try:
            await job.run()
        finally:
            self._under_way.discard(job)

    def close(self) -> None:
        """Take no more jobs, and give up those that need not be finished."""
        self._closed = True
        for job in self._under_way:
            if not job.finish:
                job.scope.cancel()
