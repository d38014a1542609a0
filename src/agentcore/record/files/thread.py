"""File work in threads: on a limiter of its own, and never for longer than a bound."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar, TypeVarTuple, Unpack

import anyio
from anyio.lowlevel import RunVar
from anyio.to_thread import run_sync

from agentcore.errors import StoreError

__all__ = ["run_bounded"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")

# Not anyio's default limiter: forty synchronous tools would keep every log waiting.
_limiter: RunVar[anyio.CapacityLimiter] = RunVar("agentcore_store_limiter")
_THREADS = 8


def _store_limiter() -> anyio.CapacityLimiter:
    try:
        return _limiter.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(_THREADS)
        _limiter.set(limiter)
        return limiter


async def run_bounded(seconds: float, what: str, function: Callable[[Unpack[Ts]], T], *args: *Ts) -> T:
    """Run blocking file work in a thread, shielded from cancellation: it ends by itself or by its bound.

    Raises:
        StoreError: the operating system refused, or there was no answer in time (the thread is left behind).
    """
    with anyio.move_on_after(seconds, shield=True):
        try:
            return await run_sync(function, *args, abandon_on_cancel=True, limiter=_store_limiter())
        except OSError as error:
            raise StoreError(f"{what} failed: {error}. Free space or mend the disk, then open it again.") from error
    raise StoreError(f"{what} took longer than {seconds:g} s: the disk does not answer. What was acknowledged is kept.")
