"""File work in threads: bounded in time, never cut off in the middle, and no result of it is lost.

Above: `FileStore` and `FileLog`. Below: anyio's worker threads.
"""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar, TypeVarTuple, Unpack

import anyio
from anyio.to_thread import run_sync

from agentcore.errors import StoreError
from agentcore.record.store import LOG_THREADS

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

_FIX = "Free space or repair the disk, then open it again."
_GRANT = "Get the right to read and write there, or keep the log in another folder."
_NO_FOLDER = "A part of this path is a file: keep the log in another folder."
_ADVICE: dict[int | None, str] = {
    errno.EACCES: _GRANT,
    errno.EPERM: _GRANT,
    errno.EROFS: f"It is mounted so, or went bad. {_FIX}",
    errno.ENOTDIR: _NO_FOLDER,
    errno.EEXIST: _NO_FOLDER,
}
"""The advice for each error of the operating system; `__cause__` is its own error."""


class ThreadWork(Generic[T]):
    """One piece of blocking work, shared by the task that waits for it and the thread that does it.

    Cancellation does not cut it off: the task waits until the thread has ended, or until the bound. anyio's scopes are
    shielded against. asyncio's own cancellation (`task.cancel()`, `wait_for`) passes every shield, so it is caught, and
    raised again at the end; what the thread opened for a caller that is gone is discarded by then.

    A thread that outlives the bound is left behind. It discards its own result, and does what `hand_over` gave it.

    Args:
        function: The work.
        discard: Undoes a result whose caller has left. Called in a thread.
        begin_always: Begin even if asyncio's cancellation comes before the thread has begun.
    """

    def __init__(
        self, function: Callable[[], T], *, discard: Callable[[T], None] | None = None, begin_always: bool = False
    ) -> None:
        self._function = function
        self._discard = discard
        self._begin_always = begin_always
        self._finished = threading.Event()
        self._discarding = threading.Lock()
        self._cancelled: BaseException | None = None
        # Guards what follows, between the task and its threads.
        self._mutex = threading.Lock()
        self._began = False
        self._ended = False
        self._failed = False
        self._left = False
        self._results: list[T] = []
        self._error: BaseException | None = None
        self._last_act: Callable[[], None] | None = None

    @property
    def running(self) -> bool:
        """True if a thread is at it."""
        with self._mutex:
            return self._began and not self._ended

    @property
    def failed(self) -> bool:
        """True if it raised an error."""
        return self._failed

    def run(self) -> None:
        """Do the work. Blocks."""
        with self._mutex:
            if self._left or self._began:
                return  # nobody waits for it, so it had better not begin; and it is done once
            self._began = True
        result: list[T] = []
        error: BaseException | None = None
        try:
            result.append(self._function())
        except BaseException as raised:  # noqa: ASYNC103 in a thread, and raised in the task that waits
            error = raised
        with self._mutex:
            self._results, self._error = result, error
            self._failed = error is not None
            self._ended = True
            left, last_act = self._left, self._last_act
        try:
            if left:
                self._discard_result()
            if last_act is not None:
                last_act()
        finally:
            self._finished.set()

    def hand_over(self, act: Callable[[], None]) -> bool:
        """Let the thread do this when its work has ended, and return whether there is such a thread.

        Work that has not begun by now does not begin.
        """
        with self._mutex:
            if not self._began:
                self._left = True
            if not self._began or self._ended:
                return False
            self._last_act = act
            return True

    async def wait(self, seconds: float, what: str) -> T:
        """Run it in a thread and return the result.

        Args:
            seconds: The bound.
            what: What it does, for the error.

        Raises:
            StoreError: the operating system refused, or there was no answer in time (the thread is left behind).
        """
        gone = True
        try:
            with anyio.move_on_after(seconds, shield=True) as bound:
                await self._run_to_the_end(bound)
            gone = self._cancelled is not None
        finally:
            results = self._leave(gone=gone)
        if self._cancelled is not None:
            raise self._cancelled
        if results:
            return results[0]
        raise self._explain(seconds, what, in_time=not bound.cancelled_caught)

    async def _run_to_the_end(self, bound: anyio.CancelScope) -> None:
        """Run it, and wait for its end whatever is cancelled meanwhile."""
        act, limiter = self.run, LOG_THREADS.limiter
        while True:  # noqa: ASYNC913 its caller bounds it
            try:
                await run_sync(act, abandon_on_cancel=True, limiter=limiter)
            except anyio.get_cancelled_exc_class() as error:  # noqa: ASYNC103 it is kept, and raised when the thread has ended
                if bound.cancel_called:
                    raise
                self._cancelled = error
                if not self._will_end():
                    return  # noqa: ASYNC104 the same
                # One thread more, only to wait for the other: no event loop has a shield against this.
                act, limiter = self._clear, anyio.CapacityLimiter(1)
            else:
                return

    def _will_end(self) -> bool:
        with self._mutex:
            self._left = not self._began and not self._begin_always
            return not self._left

    def _clear(self) -> None:
        """Wait for the end, and discard the result. Blocks."""
        self.run()  # where it has not begun
        self._finished.wait()
        self._discard_result()

    def _leave(self, *, gone: bool) -> list[T]:
        """Wait no longer. Return the result, if it is there and its caller is not gone."""
        with self._mutex:
            self._left = True
        results = self._take_results()
        if not gone:
            return results
        # Mostly there is none by now. There is where the bound passed behind a cancellation, or the loop is given up.
        self._discard_all(results)
        return []

    def _discard_result(self) -> None:
        with self._discarding:  # the second one waits until it is done
            self._discard_all(self._take_results())

    def _take_results(self) -> list[T]:
        with self._mutex:
            results, self._results = self._results, []
            return results

    def _discard_all(self, results: list[T]) -> None:
        for result in results:
            if self._discard is not None:
                self._discard(result)

    def _explain(self, seconds: float, what: str, *, in_time: bool) -> BaseException:
        error, self._error = self._error, None  # its traceback leads back here
        if isinstance(error, OSError):
            failure = StoreError(f"{what} failed: {error}. {_ADVICE.get(error.errno, _FIX)}")
            failure.__cause__ = error
            return failure
        if error is not None:
            return error
        if in_time:
            return StoreError(f"{what} did not begin: it was closed before.")
        return StoreError(
            f"{what} took longer than {seconds:g} s: the disk does not answer. What was acknowledged is kept."
        )


async def run_bounded(
    seconds: float,
    what: str,
    function: Callable[[Unpack[Ts]], T],
    *args: *Ts,
    discard: Callable[[T], None] | None = None,
    begin_always: bool = False,
) -> T:
    """Run blocking file work in a thread: it ends by itself or by its bound. See `ThreadWork`.

    Raises:
        StoreError: the operating system refused, or there was no answer in time (the thread is left behind).
    """
    work = ThreadWork(partial(function, *args), discard=discard, begin_always=begin_always)
    return await work.wait(seconds, what)
