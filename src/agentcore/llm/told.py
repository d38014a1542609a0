"""A reply that came at once, told as a stream."""

from __future__ import annotations

from collections import deque
from typing import Self

from agentcore.llm.deltas import Delta, deltas_of
from agentcore.llm.model import UNFINISHED
from agentcore.llm.reply import Reply

__all__ = ["ToldStream"]


class ToldStream:
    """The deltas of a reply that is there already: one for each block that can be watched."""

    def __init__(self, reply: Reply) -> None:
        self._whole = reply
        self._deltas = deque(deltas_of(reply.message))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delta:
        if not self._deltas:
            raise StopAsyncIteration
        return self._deltas.popleft()

    @property
    def reply(self) -> Reply:
        if self._deltas:
            raise RuntimeError(UNFINISHED)
        return self._whole
