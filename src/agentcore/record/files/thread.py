"""File work in threads: on a limiter of its own, and never for longer than a bound."""

from __future__ import annotations

import errno
import threading
from collections.abc import Callable
from typing import Generic, TypeVar, TypeVarTuple, Unpack

import anyio
from anyio.lowlevel import RunVar
from anyio.to_thread import run_sync

from agentcore.errors import StoreError

__all__ = ["run_bounded", "store_limiter"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

# Not anyio's default limiter: forty synchronous tools would keep every log waiting.
_limiter: RunVar[anyio.CapacityLimiter] = RunVar("agentcore_store_limiter")
_THREADS = 8


def store_limiter() -> anyio.CapacityLimiter:
    """Give the limiter of the threads that work for stores."""
    try:
        return _limiter.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(_THREADS)
        _limiter.set(limiter)
        return limiter


_MEND = "Free space or mend the disk, then open it again."
_GRANT = "Get the right to read and write there, or keep the log in another folder."
_NO_FOLDER = "A part of this path is a file: keep the log in another folder."
_ADVICE: dict[int | None, str] = {
    errno.EACCES: _GRANT,
    errno.EPERM: _GRANT,
    errno.EROFS: f"It is mounted so, or went bad. {_MEND}",
    errno.ENOTDIR: _NO_FOLDER,
    errno.EEXIST: _NO_FOLDER,
}
"""What to do about what the operating system refused; `__cause__` is its own error."""


class _Work(Generic[T]):
    """Work for a thread that its caller may leave behind: the result goes to the caller, or is discarded, never lost."""

    def __init__(self, function: Callable[[], T], discard: Callable[[T], None] | None) -> None:
        self._function = function
        self._discard = discard
        self._lock = threading.Lock()
        self._left = False
        self._results: list[T] = []

    def run(self) -> None:
        with self._lock:
            if self._left:
                return  # nobody waits for it, so it had better not begin
        result = self._function()
        with self._lock:
            if not self._left:
                self._results.append(result)
                return
        if self._discard is not None:
            self._discard(result)

    def leave(self) -> list[T]:
        """Wait no longer: give the result, if it is there by now."""
        with self._lock:
            self._left = True
            return self._results


async def run_bounded(
    seconds: float,
    what: str,
    function: Callable[[Unpack[Ts]], T],
    *args: *Ts,
    discard: Callable[[T], None] | None = None,
) -> T:
    """Run blocking file work in a thread, shielded from cancellation: it ends by itself or by its bound.

    Args:
        seconds: The bound.
        what: What it does, for the error.
        function: The work.
        *args: Its arguments.
        discard: Called in the thread with a result that came too late, to close what it opened.

    Raises:
        StoreError: the operating system refused, or there was no answer in time (the thread is left behind).
    """
    work = _Work(lambda: function(*args), discard)
    try:
        with anyio.move_on_after(seconds, shield=True):
            await run_sync(work.run, abandon_on_cancel=True, limiter=store_limiter())
    except OSError as error:
        raise StoreError(f"{what} failed: {error}. {_ADVICE.get(error.errno, _MEND)}") from error
    finally:
        results = work.leave()
    if not results:
        raise StoreError(
            f"{what} took longer than {seconds:g} s: the disk does not answer. What was acknowledged is kept."
        )
    return results[0]
