"""Blocking work in threads, each kind on a limiter of its own for each event loop."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable
from threading import Thread
from typing import Any, TypeVar, TypeVarTuple, Unpack, cast, final

import anyio
from anyio.lowlevel import RunVar
from anyio.to_thread import run_sync

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


@final
class Threads:
    """The threads for one kind of work: at most `count` of them in each event loop.

    Not anyio's default limiter: forty synchronous tools would keep every file and every process waiting.
    """

    def __init__(self, kind: str, count: float) -> None:
        self._limiter: RunVar[anyio.CapacityLimiter] = RunVar(f"agentcore_{kind}")
        self._count = count

    @property
    def limiter(self) -> anyio.CapacityLimiter:
        """The limiter of the running event loop."""
        try:
            return self._limiter.get()
        except LookupError:
            limiter = anyio.CapacityLimiter(self._count)
            self._limiter.set(limiter)
            return limiter

    async def run(self, function: Callable[[Unpack[Ts]], T], *args: *Ts, abandon_on_cancel: bool = False) -> T:
        """Run a function in a thread. When cancelled, wait for its end or (`abandon_on_cancel`) leave it running."""
        return await run_sync(function, *args, abandon_on_cancel=abandon_on_cancel, limiter=self.limiter)

    async def tidy(self, function: Callable[[], object]) -> None:
        """Run in a thread what has to happen though the caller is cancelled, by asyncio itself too. It may be run twice, at once."""
        try:
            with anyio.CancelScope(shield=True):
                await self.run(function)
        except BaseException:
            # No shield keeps asyncio's own cancellation out, and a thread that was waited for may not have begun.
            Thread(target=function, name="agentcore tidy").start()
            raise

    async def call(self, function: Callable[[Unpack[Ts]], Awaitable[T] | T], *args: *Ts) -> T:
        """Call a function of the program's: an async one here, any other in a thread that is left running when cancelled."""
        if inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(type(function).__call__):
            return await cast("Awaitable[T]", function(*args))
        # In a tuple, because trio takes a thread that gives a coroutine (a lambda that calls an async function) for a bug.
        (answer,) = await self.run(lambda: cast("tuple[Any]", (function(*args),)), abandon_on_cancel=True)
        return await answer if inspect.isawaitable(answer) else answer
