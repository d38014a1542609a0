"""The threads that work for logs: reading, writing and folding them.

Above: `EventLog`, which folds in a thread, and the stores. This knows neither.
"""

from __future__ import annotations

from typing import Final

import anyio
from anyio.lowlevel import RunVar

__all__ = ["store_limiter"]

# Not anyio's default limiter: forty synchronous tools would keep every log waiting.
_limiter: RunVar[anyio.CapacityLimiter] = RunVar("agentcore_store_limiter")
_THREADS: Final = 8


def store_limiter() -> anyio.CapacityLimiter:
    """Return this event loop's limiter for threads that work for logs."""
    try:
        return _limiter.get()
    except LookupError:
        limiter = anyio.CapacityLimiter(_THREADS)
        _limiter.set(limiter)
        return limiter
