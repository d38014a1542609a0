"""Blocking work in threads, each kind on a limiter of its own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final, TypeVar, TypeVarTuple, Unpack, final

import anyio
from anyio.lowlevel import RunVar
from anyio.to_thread import run_sync

__all__ = ["FILES", "LOOKS", "STARTS", "WAITS", "Threads"]

T = TypeVar("T")
Ts = TypeVarTuple("Ts")


@final
class Threads:
    """So many threads of each event loop for one kind of work.

    Not anyio's default limiter: forty synchronous tools would keep every file and every process waiting.
    """

    def __init__(self, kind: str, count: float) -> None:
        self._limiter: RunVar[anyio.CapacityLimiter] = RunVar(f"agentcore_workspace_{kind}")
        self._count = count

    async def run(self, function: Callable[[Unpack[Ts]], T], *args: *Ts, abandon_on_cancel: bool = False) -> T:
        """Run it in a thread. When cancelled, wait for its end or (`abandon_on_cancel`) leave it to itself."""
        try:
            limiter = self._limiter.get()
        except LookupError:
            limiter = anyio.CapacityLimiter(self._count)
            self._limiter.set(limiter)
        return await run_sync(function, *args, abandon_on_cancel=abandon_on_cancel, limiter=limiter)


FILES: Final = Threads("files", 16)
STARTS: Final = Threads("starts", 8)
LOOKS: Final = Threads("looks", 1)
# As many as there are processes: each of these threads only waits for one of them to end.
WAITS: Final = Threads("waits", math.inf)
