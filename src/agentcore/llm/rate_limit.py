"""No more requests and tokens a minute than a provider allows."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any, Self

import anyio
from pydantic import JsonValue

from agentcore.llm.concurrency import FifoLock
from agentcore.llm.estimate import estimate_tokens
from agentcore.llm.model import CallContext, DeltaStream, Model, RetryReport, describe_unrecorded, record_model
from agentcore.llm.reply import Reply
from agentcore.llm.wrapper import ModelRequest, ObservedStream, WrapperModel
from agentcore.messages import Message, ToolSchema

_MINUTE = 60.0


class TokenBucket:
    """So much a minute, and so much at once after a pause. Those who wait are served in the order of coming.

    A bucket is shared by giving the same one to several models. It serves one event loop at a time.
    """

    def __init__(
        self,
        per_minute: float,
        burst: float | None = None,
        *,
        clock: Callable[[], float] = anyio.current_time,
        sleep: Callable[[float], Awaitable[object]] = anyio.sleep,
    ) -> None:
        """Make a full bucket.

        Args:
            per_minute: What flows in.
            burst: What it holds; by default a minute's worth.
            clock: Seconds that only go up.
            sleep: Waits for so many of them.

        Raises:
            ValueError: `per_minute` or `burst` is not above 0.
        """
        burst = per_minute if burst is None else burst
        if per_minute <= 0 or burst <= 0:
            raise ValueError(f"per_minute={per_minute} and burst={burst} have to be above 0, or nothing ever passes.")
        self._per_second = per_minute / _MINUTE
        self._burst = float(burst)
        self._clock = clock
        self._sleep = sleep
        self._level = float(burst)
        self._seen: float | None = None
        self._turns = FifoLock()

    def __repr__(self) -> str:
        rate = self._per_second * _MINUTE
        return f"TokenBucket({rate:g}, burst={self._burst:g}, level={self._level:g}, waiting={len(self._turns)})"

    def record(self) -> dict[str, JsonValue]:
        """Write down the numbers that it was made with, as its arguments are called."""
        return {"per_minute": self._per_second * _MINUTE, "burst": self._burst}

    async def take(self, amount: float = 1.0) -> None:
        """Wait until so much is there, and take it.

        More than the bucket holds is given when it is full, and owed: those after wait until it has flowed in.
        """
        async with self._turns.acquire():
            wanted = min(amount, self._burst)
            while (missing := wanted - self._flowed()) > 0:
                # A hair more: time is added up in floats, and a wait of 1e-17 s would not move the clock.
                await self._sleep(missing / self._per_second + 1e-6)
            self._level -= amount

    def correct(self, amount: float) -> None:
        """Take so much more at once, below empty if need be, or (below 0) give it back."""
        self._level = min(self._burst, self._flowed() - amount)

    def _flowed(self) -> float:
        """Let in what has flowed since the last look, and give the level."""
        now = self._clock()
        if self._seen is not None:
            # Another event loop may have a clock that began later.
            self._level = min(self._burst, self._level + max(0.0, now - self._seen) * self._per_second)
        self._seen = now
        return self._level


@dataclass(frozen=True, slots=True)
class RateLimitedModel(WrapperModel):
    """A model whose calls wait until a bucket of requests and one of tokens have what they need.

    How many tokens a call uses is estimated before it and corrected by `Reply.usage` after it. A call that fails keeps
    what it took, as providers count it too; each attempt of the model's own retries counts as a call. Made again from a log,
    it has buckets of its own with the same numbers: to share them, pass the agent again.
    """

    model: Model
    requests: TokenBucket | None = None
    """Calls per minute."""
    tokens: TokenBucket | None = None
    """Tokens read and written, per minute."""
    estimate: Callable[[Sequence[Message], Sequence[ToolSchema]], float] = estimate_tokens
    """Estimates the tokens of a call."""

    async def _complete(self, request: ModelRequest) -> Reply:
        estimated = self._estimated(request)
        await self._take(estimated)
        reply = await self._watched(request, estimated).complete(self.model)
        self.correct(reply, estimated)
        return reply

    @asynccontextmanager
    async def _stream(self, request: ModelRequest) -> AsyncGenerator[DeltaStream]:
        estimated = self._estimated(request)
        await self._take(estimated)
        async with self._watched(request, estimated).stream(self.model) as deltas:
            # One that is left early keeps its estimate: nobody says what it used.
            yield ObservedStream(deltas, ended=lambda reply: self.correct(reply, estimated))

    def record(self) -> dict[str, JsonValue] | None:
        """Write down the model inside and the numbers of the buckets."""
        inner = record_model(self.model)
        if inner is None or self.estimate is not estimate_tokens:
            return None
        return {
            "kind": "rate_limited",
            "model": inner,
            "requests": None if self.requests is None else self.requests.record(),
            "tokens": None if self.tokens is None else self.tokens.record(),
        }

    def describe_unrecorded(self) -> str:
        """Name what can't be written down: the program's own estimate, or what it is of the model inside."""
        own = self.estimate is not estimate_tokens
        return f"the estimate of RateLimitedModel {self.name!r}" if own else describe_unrecorded(self.model)

    @classmethod
    def from_record(cls, recorded: Mapping[str, Any], restore: Callable[[Mapping[str, Any]], Model]) -> Self:
        """Make it again of what `record` gave."""
        requests, tokens = (
            None if each is None else TokenBucket(**each) for each in (recorded["requests"], recorded["tokens"])
        )
        return cls(restore(recorded["model"]), requests, tokens)

    def correct(self, reply: Reply, estimated: float) -> None:
        """Put what was used in place of what was estimated, where the provider says it."""
        if self.tokens is not None and reply.usage.total_tokens:
            self.tokens.correct(reply.usage.total_tokens - estimated)

    def _estimated(self, request: ModelRequest) -> float:
        return 0.0 if self.tokens is None else self.estimate(request.messages, request.tools)

    async def _take(self, estimated: float) -> None:
        if self.requests is not None:
            await self.requests.take()
        if self.tokens is not None:
            try:
                await self.tokens.take(estimated)
            except BaseException:
                if self.requests is not None:
                    self.requests.correct(-1)
                raise

    def _watched(self, request: ModelRequest, estimated: float) -> ModelRequest:
        context = request.context or CallContext()
        outer = context.on_retry

        async def on_retry(report: RetryReport) -> None:
            if outer is not None:
                await outer(report)
            await self._take(estimated)

        return request._replace(context=replace(context, on_retry=on_retry))
