"""Where synchronous tools run: worker threads of the tools' own.

anyio's default limiter is not used, so that forty slow tools do not keep files from being written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeVar

import anyio
import anyio.lowlevel
import anyio.to_thread

from agentcore.tools.context import ToolContext

__all__ = ["SYNC_TOOLS_AT_ONCE", "run_in_thread"]

SYNC_TOOLS_AT_ONCE: Final = 40
"""How many synchronous tools run at once on one event loop; more wait for their turn."""

ResultT = TypeVar("ResultT")

# A limiter belongs to one event loop; there may be several, in tests or in several threads.
_LIMITER: Final = anyio.lowlevel.RunVar[anyio.CapacityLimiter]("agentcore_sync_tools")


def _limiter() -> anyio.CapacityLimiter:
    try:
        return _LIMITER.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(SYNC_TOOLS_AT_ONCE)
        _LIMITER.set(limiter)
        return limiter


async def run_in_thread(function: Callable[[], ResultT], ctx: ToolContext) -> ResultT:
    """Run a function in a worker thread.

    When the wait for it is cancelled, the function is told through `ctx.cancel_requested`, and its thread is left to
    end by itself.
    """

    def boxed() -> tuple[ResultT]:
        return (function(),)  # in a box, because trio refuses a coroutine as the result of a thread

    async with _limiter():
        try:
            # A limiter for this one thread: a thread that was left behind must not hold a place (on trio it would).
            (result,) = await anyio.to_thread.run_sync(boxed, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))
            return result
        except BaseException:
            ctx.request_cancel()
            raise
