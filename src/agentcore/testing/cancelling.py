"""Cancelling at every point where it is possible: what is left behind then is what a user meets some day.

    async def test_a_transfer_that_is_cancelled_leaves_no_lock() -> None:
        for attempt in cancel_everywhere():
            bank = Bank()
            await attempt(bank.transfer, 100)
            assert not bank.locked

The event loops have no common way of counting, so this asks each of them in its own words.
"""

from __future__ import annotations

import asyncio  # noqa: TID251  anyio has no words for watching the tasks of a loop
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from contextvars import Context, ContextVar
from typing import Any, TypeVarTuple, Unpack, cast
from weakref import WeakKeyDictionary

from anyio import CancelScope

Ts = TypeVarTuple("Ts")


async def cancel_at(n: int, function: Callable[[Unpack[Ts]], Awaitable[object]], *args: *Ts) -> bool:
    """Run an async function, cancel it at its n-th checkpoint, and say whether it got that far.

    A checkpoint is each time that one of its tasks (the one that calls it, and all that are started from there) gives way
    to the event loop: for another task, a thread, the disk, a socket, time, or only to let others run. They are counted
    over all its tasks together, from 1, in the order in which they happen; 0 is before the first line. The time that
    something takes does not change the count. What is cancelled is the whole function with all its tasks, while the one
    that came to the n-th checkpoint stands there.

    On asyncio, and for functions that wait for nothing from outside, the same n is the same place each time. Trio runs
    tasks that are ready at the same time in random order, so there it may be another task's.

    Args:
        n: Which checkpoint.
        function: Called once; what it raises is raised here, its own cancellation excepted.
        *args: Its arguments.

    Returns:
        Whether it was cancelled. False means that it ended with fewer than n checkpoints.
    """
    scope = CancelScope()
    count = _Count(n, scope)
    with scope:
        if n == 0:
            count.reached = True
            scope.cancel()
        await _run(lambda: function(*args), count)
    return count.reached


class CancelAttempt:
    """One attempt of `cancel_everywhere`: call it like the function, with the function in front."""

    def __init__(self, n: int) -> None:
        self.n = n
        """The checkpoint at which it is cancelled."""
        self.reached: bool | None = None
        """True if it got that far; None before it was made."""

    def __repr__(self) -> str:
        return f"CancelAttempt(n={self.n}, reached={self.reached})"

    async def __call__(self, function: Callable[[Unpack[Ts]], Awaitable[object]], *args: *Ts) -> bool:
        """Run the function as `cancel_at(n, function, *args)` does."""
        self.reached = await cancel_at(self.n, function, *args)
        return self.reached


def cancel_everywhere(*, most: int = 10_000) -> Iterator[CancelAttempt]:
    """Go through attempts that are cancelled at checkpoint 0, 1, 2, ..., up to the first that is not cancelled.

    The body of the loop makes a new world, awaits the attempt once, and checks what is left of that world.

    Raises:
        RuntimeError: the body did not await the attempt, or a function is not done after `most` checkpoints.
    """
    for n in range(most + 1):
        attempt = CancelAttempt(n)
        yield attempt
        if attempt.reached is None:
            raise RuntimeError(f"Attempt {n} was not made: await it in the body of the loop, with what is to be run.")
        if not attempt.reached:
            return
    raise RuntimeError(f"It still was not done at checkpoint {most}. Give a higher `most`, if that is to be expected.")


class _Count:
    def __init__(self, n: int, scope: CancelScope) -> None:
        self._left = n
        self._scope = scope
        self.reached = False

    def checkpoint(self) -> None:
        self._left -= 1
        if self._left == 0:
            self.reached = True
            self._scope.cancel()


# Tasks inherit it from the task that starts them.
_count: ContextVar[_Count | None] = ContextVar("agentcore_testing_count", default=None)


async def _run(function: Callable[[], Awaitable[object]], count: _Count) -> None:
    token = _count.set(count)
    try:
        # Where trio runs it is imported already; agentcore does not need it.
        trio = sys.modules.get("trio")
        if trio is not None and trio.lowlevel.in_trio_run():
            with _on_trio(trio.lowlevel, count):
                await function()
        else:
            with _on_asyncio():
                await _Watched(function().__await__(), count)
    finally:
        _count.reset(token)


@contextmanager
def _on_trio(lowlevel: Any, count: _Count) -> Generator[None]:
    instrument = _Instrument(count)
    lowlevel.add_instrument(instrument)
    try:
        yield
    finally:
        lowlevel.remove_instrument(instrument)


class _Instrument:
    def __init__(self, count: _Count) -> None:
        self._count = count

    def after_task_step(self, task: Any) -> None:
        if task.context.get(_count) is self._count and task.coro.cr_frame is not None:
            self._count.checkpoint()


# How many counts go on in a loop: they share the task factory.
_watched: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()


@contextmanager
def _on_asyncio() -> Generator[None]:
    loop: Any = asyncio.get_running_loop()
    before = loop.get_task_factory()
    _watched[loop] = _watched.get(loop, 0) + 1
    if _watched[loop] == 1:
        loop.set_task_factory(_TaskFactory(before))
    try:
        yield
    finally:
        _watched[loop] -= 1
        factory = loop.get_task_factory()
        if _watched[loop] == 0 and isinstance(factory, _TaskFactory):
            loop.set_task_factory(factory.before)


class _TaskFactory:
    """Makes the loop's tasks; those that belong to a count are watched."""

    def __init__(self, before: Any) -> None:
        self.before = before

    def __call__(
        self,
        loop: asyncio.AbstractEventLoop,
        coroutine: Coroutine[Any, Any, Any],
        *,
        context: Context | None = None,
        **options: Any,
    ) -> asyncio.Future[Any]:
        count = _count.get() if context is None else context.get(_count)
        watched = coroutine if count is None else _Watched(coroutine, count)
        if context is not None:
            options["context"] = context
        made: asyncio.Future[Any] = (self.before or _make_task)(loop, watched, **options)
        return made


def _make_task(
    loop: asyncio.AbstractEventLoop, coroutine: Coroutine[Any, Any, Any], **options: Any
) -> asyncio.Task[Any]:
    return asyncio.Task(coroutine, loop=loop, **options)


class _Watched(Coroutine[Any, Any, Any]):
    """A coroutine, each of its waits counted. An object, not an async function: those run only once they are begun."""

    def __init__(self, steps: Any, count: _Count) -> None:
        self._steps = steps
        self._count = count

    def __getattr__(self, name: str) -> Any:
        return getattr(self._steps, name)  # what a coroutine tells of itself: cr_running, cr_frame, its name

    def __await__(self) -> Generator[Any, Any, Any]:
        return cast("Generator[Any, Any, Any]", self)

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return self.send(None)

    def send(self, value: Any, /) -> Any:
        return self._waiting(self._steps.send(value))

    def throw(self, *error: Any) -> Any:
        return self._waiting(self._steps.throw(*error))

    def close(self) -> None:
        self._steps.close()

    def _waiting(self, waits_for: Any) -> Any:
        # When it does not wait but ends, StopIteration has been raised, and this is not reached.
        self._count.checkpoint()
        return waits_for
