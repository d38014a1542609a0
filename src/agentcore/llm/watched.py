"""A stream that somebody else wants to know the end of."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

from agentcore.errors import ModelError
from agentcore.llm.deltas import Delta
from agentcore.llm.model import DeltaStream
from agentcore.llm.reply import Reply

__all__ = ["WatchedStream"]


class WatchedStream:
    """Passes a stream on, and tells how it ended: who reads it may keep that to himself.

    Of one that is left early nothing is told.
    """

    def __init__(
        self, inner: DeltaStream, *, ended: Callable[[Reply], None], failed: Callable[[ModelError], None] | None = None
    ) -> None:
        self._inner = inner
        self._ended: Callable[[Reply], None] | None = ended
        self._failed = failed

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delta:
        try:
            return await anext(self._inner)
        except StopAsyncIteration:
            # Once, however often it is asked for more.
            told, self._ended = self._ended, None
            if told is not None:
                told(self._inner.reply)
            raise
        except ModelError as error:
            if self._failed is not None:
                self._failed(error)
            raise

    @property
    def reply(self) -> Reply:
        """The reply of the stream inside."""
        return self._inner.reply
