"""Trying again, around any model."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

import random
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from typing import Annotated, Any, Self

import anyio
from pydantic import Field, JsonValue

from agentcore._value import Value
from agentcore.errors import ModelConnectionError, ModelError
from agentcore.llm.model import CallContext, DeltaStream, Model, RetryReport, record_model
from agentcore.llm.reply import Reply
from agentcore.llm.wrapper import FailoverStream, ModelRequest, WrapperModel

_Seconds = Annotated[float, Field(ge=0)]


class RetryPolicy(Value):
    """How often and after how long a failed model call is tried again."""

    retries: Annotated[int, Field(ge=0)] = 5
    """Attempts after the first one."""
    min_wait: _Seconds = 8.0
    """Seconds before the second attempt."""
    max_wait: _Seconds = 64.0
    """No wait grows past this; one that the provider asks for may be longer, up to `max_retry_after`."""
    multiplier: Annotated[float, Field(ge=1)] = 2.0
    """How much longer each wait is than the one before."""
    jitter: Annotated[float, Field(ge=0, le=1)] = 0.25
    """The part of a wait that is random, so that many callers who failed together do not come back together."""
    max_retry_after: _Seconds = 300.0
    """A provider that asks for a longer wait than this is not waited for: its error is raised at once."""
    refused_retries: Annotated[int, Field(ge=0)] = 2
    """Attempts after the first one where nothing listens at the address and nothing did since the start: most likely it is wrong."""
    refused_wait: _Seconds = 1.0
    """Seconds before each of these."""

    def delay(self, attempt: int, error: ModelError, draw: float, *, first: bool = False) -> float | None:
        """Return the seconds to wait before another attempt, or None to give up.

        Args:
            attempt: The number of the attempt that failed.
            error: What it failed with.
            draw: Anything from 0 to 1.
            first: Whether no call was answered since the conversation was opened; see `CallContext.first`.
        """
        if not error.retryable or attempt > self.retries:
            return None
        if first and isinstance(error, ModelConnectionError) and error.refused:
            return None if attempt > self.refused_retries else self.refused_wait * (1 - self.jitter * draw)
        if error.retry_after is not None:
            if error.retry_after > self.max_retry_after:
                return None
            # Later than asked, never earlier.
            return error.retry_after * (1 + self.jitter * draw)
        # The exponent is bounded because a float is not: 2.0**1024 raises.
        wait = min(self.max_wait, self.min_wait * self.multiplier ** min(attempt - 1, 64))
        return wait * (1 - self.jitter * draw)


@dataclass(frozen=True, slots=True)
class RetryingModel(WrapperModel):
    """A model that tries again when the error says that it may help, and calls `CallContext.on_retry` each time.

    When deltas were shown already, the next one is a `ResetDelta`.
    """

    model: Model
    policy: RetryPolicy = field(default_factory=RetryPolicy)

    async def _complete(self, request: ModelRequest) -> Reply:
        attempt = 1
        while True:
            try:
                return await request.complete(self.model)
            except ModelError as error:
                delay = await _next_delay(self.policy, attempt, error, request.context)
            await anyio.sleep(delay)
            attempt += 1

    @asynccontextmanager
    async def _stream(self, request: ModelRequest) -> AsyncGenerator[DeltaStream]:
        attempt, delay = 1, 0.0

        async def open_next() -> AbstractAsyncContextManager[DeltaStream]:
            if delay:
                await anyio.sleep(delay)
            return request.stream(self.model)

        async def failed(error: ModelError) -> None:
            nonlocal attempt, delay
            delay = await _next_delay(self.policy, attempt, error, request.context)
            attempt += 1

        async with FailoverStream(open_next, failed) as stream:
            yield stream

    def record(self) -> dict[str, JsonValue] | None:
        """Write down the model inside and the policy."""
        inner = record_model(self.model)
        return inner and {"kind": "retrying", "model": inner, "policy": self.policy.model_dump(mode="json")}

    @classmethod
    def from_record(cls, recorded: Mapping[str, Any], restore: Callable[[Mapping[str, Any]], Model]) -> Self:
        """Make it again of what `record` gave."""
        return cls(restore(recorded["model"]), RetryPolicy.model_validate(recorded["policy"]))


async def _next_delay(policy: RetryPolicy, attempt: int, error: ModelError, context: CallContext | None) -> float:
    """Report the failed attempt and give the seconds to wait, or raise the error where it is the last one."""
    first = context is not None and context.first
    delay = policy.delay(attempt, error, random.random(), first=first)  # noqa: S311 - spreads waits; nothing depends on it
    if delay is None:
        raise error
    if context is not None and context.on_retry is not None:
        await context.on_retry(RetryReport(attempt, error, delay))
    return delay
