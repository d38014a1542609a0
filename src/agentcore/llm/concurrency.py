"""Adapt the number of concurrent calls to what a provider accepts."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Final, Self

import anyio
from pydantic import JsonValue

from agentcore.errors import ModelError, RateLimited
from agentcore.llm.model import CallContext, DeltaStream, Model, RetryReport, record_model
from agentcore.llm.reply import Reply
from agentcore.llm.wrapper import ModelRequest, ObservedStream, WrapperModel


class FifoLock:
    """A line in which one stands in front. Who gives up leaves it, and the one behind moves up."""

    def __init__(self) -> None:
        self._line: deque[anyio.Event] = deque()

    def __len__(self) -> int:
        return len(self._line)

    @asynccontextmanager
    async def acquire(self) -> AsyncGenerator[None]:
        """Wait until one stands in front, and stay there for the block."""
        mine = anyio.Event()
        self._line.append(mine)
        try:
            if self._line[0] is not mine:
                await mine.wait()
            yield
        finally:
            self._line.remove(mine)
            if self._line:
                self._line[0].set()


_OVERLOADED: Final = 529


class AdaptiveLimiter:
    """How many calls may run at once, for all the models that are made with it.

    The limit grows by one for each round of calls that went well with all places taken, and shrinks by a factor when the
    provider says that it is too much (429, 529). Calls that were under way when it shrank don't shrink it again. Places
    are given in the order of asking. One limiter serves the conversations of one event loop.
    """

    def __init__(self, *, start: int = 8, lowest: int = 1, highest: int = 64, shrink: float = 0.5) -> None:
        """Make one for a provider.

        Args:
            start: Calls at once, to begin with.
            lowest: The limit never shrinks below this.
            highest: The limit never grows past this.
            shrink: What the limit is multiplied by when it was too high.

        Raises:
            ValueError: not 1 <= lowest <= start <= highest, or `shrink` is not between 0 and 1.
        """
        if not 1 <= lowest <= start <= highest:
            raise ValueError(f"lowest={lowest}, start={start} and highest={highest} are not in this order, from 1.")
        if not 0 < shrink < 1:
            raise ValueError(f"shrink={shrink} is not between 0 and 1: the limit would not shrink.")
        self._start = start
        self._lowest = lowest
        self._highest = highest
        self._shrink = shrink
        self._limit = float(start)
        self._round = 0
        self._taken = 0
        self._turns = FifoLock()
        self._room: anyio.Event | None = None

    def __repr__(self) -> str:
        return f"AdaptiveLimiter(limit={self.limit}, taken={self.taken}, waiting={self.waiting})"

    @property
    def limit(self) -> int:
        """Calls that may run at once now."""
        return int(self._limit)

    @property
    def taken(self) -> int:
        """Calls that run."""
        return self._taken

    @property
    def waiting(self) -> int:
        """Calls that wait for a place."""
        return len(self._turns)

    def record(self) -> dict[str, JsonValue]:
        """Write down the numbers that it was made with, as its arguments are called."""
        return {"start": self._start, "lowest": self._lowest, "highest": self._highest, "shrink": self._shrink}

    @asynccontextmanager
    async def place(self) -> AsyncGenerator[_Place]:
        """Wait for a place and hold it for the block."""
        async with self._turns.acquire():
            while self._taken >= self.limit:
                self._room = anyio.Event()
                await self._room.wait()
            self._taken += 1
        try:
            yield _Place(self, self._round)
        finally:
            self._taken -= 1
            self._make_room()

    def _make_room(self) -> None:
        if self._room is not None:
            self._room.set()

    def grow(self) -> None:
        """Take in that a call went well."""
        # A limit that nothing came up against says nothing of what lies above it.
        if self._taken >= self.limit:
            self._limit = min(self._highest, self._limit + 1 / self._limit)
            self._make_room()

    def shrink(self, begun: int) -> int:
        """Take in that a call of the round `begun` was too much; give the round that follows."""
        if begun == self._round:
            self._limit = max(self._lowest, self._limit * self._shrink)
            self._round += 1
        return self._round


class _Place:
    """One call's place, and how the call goes."""

    def __init__(self, limiter: AdaptiveLimiter, begun: int) -> None:
        self._limiter = limiter
        self._round = begun
        self._refused = False

    def went_well(self) -> None:
        if not self._refused:
            self._limiter.grow()

    def failed(self, error: Exception) -> None:
        if _is_overload(error):
            self._refused = True
            self._round = self._limiter.shrink(self._round)

    def watched(self, request: ModelRequest) -> ModelRequest:
        """Return the request with a context that also sees what the model's own retries hide."""
        context = request.context or CallContext()
        outer = context.on_retry

        async def on_retry(report: RetryReport) -> None:
            self.failed(report.error)
            if outer is not None:
                await outer(report)

        return request._replace(context=replace(context, on_retry=on_retry))


def _is_overload(error: Exception) -> bool:
    if isinstance(error, RateLimited):
        return error.retryable  # out of credit is no matter of how many at once
    return isinstance(error, ModelError) and error.status == _OVERLOADED


@dataclass(frozen=True, slots=True)
class LimitedModel(WrapperModel):
    """A model whose calls wait for a place at a limiter. A stream holds its place until it is left.

    Made again from a log, it has a limiter of its own with the same numbers: to share one, pass the agent again.
    """

    model: Model
    limiter: AdaptiveLimiter

    async def _complete(self, request: ModelRequest) -> Reply:
        async with self.limiter.place() as place:
            try:
                reply = await place.watched(request).complete(self.model)
            except ModelError as error:
                place.failed(error)
                raise
            place.went_well()
            return reply

    @asynccontextmanager
    async def _stream(self, request: ModelRequest) -> AsyncGenerator[DeltaStream]:
        async with self.limiter.place() as place, AsyncExitStack() as opened:
            try:
                deltas = await opened.enter_async_context(place.watched(request).stream(self.model))
            except ModelError as error:
                place.failed(error)
                raise
            # Outside: what the caller raises in the meantime says nothing of this model.
            yield ObservedStream(deltas, ended=lambda _: place.went_well(), failed=place.failed)

    def record(self) -> dict[str, JsonValue] | None:
        """Write down the model inside and the limiter's numbers."""
        inner = record_model(self.model)
        return inner and {"kind": "limited", "model": inner, "limiter": self.limiter.record()}

    @classmethod
    def from_record(cls, recorded: Mapping[str, Any], restore: Callable[[Mapping[str, Any]], Model]) -> Self:
        """Make it again of what `record` gave."""
        return cls(restore(recorded["model"]), AdaptiveLimiter(**recorded["limiter"]))
