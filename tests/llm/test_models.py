"""The models that agentcore has keep to the contract that it gives out; `LLM` does in `native` and `litellm_route`."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable
from contextlib import asynccontextmanager

from agentcore.llm import (
    LLM,
    AdaptiveLimiter,
    FallbackLLM,
    LimitedModel,
    Model,
    RateLimitedModel,
    RetryingModel,
    RetryPolicy,
    RouterLLM,
    TokenBucket,
    by_length,
)
from agentcore.llm.text_calls import TextToolCalls
from agentcore.testing import ModelContract, Request, ScriptedLLM, ScriptLine, serve_provider

Lines = Iterable[ScriptLine] | Callable[[Request], ScriptLine]


class Wrapped(ModelContract):
    """A wrapper around a scripted model, or around an `LLM`, which can be recorded."""

    def wrap(self, model: Model) -> Model:
        return model

    @asynccontextmanager
    async def playing(self, lines: Lines, *, repeat: bool = False) -> AsyncGenerator[Model]:
        yield self.wrap(ScriptedLLM(lines, repeat=repeat))


class TestScriptedLLM(Wrapped):
    pass


class TestFallbackLLM(Wrapped):
    def wrap(self, model: Model) -> Model:
        return FallbackLLM(model, model)


class TestLimitedModel(Wrapped):
    def wrap(self, model: Model) -> Model:
        return LimitedModel(model, AdaptiveLimiter(start=1, highest=1))


class TestRateLimitedModel(Wrapped):
    def wrap(self, model: Model) -> Model:
        return RateLimitedModel(model, TokenBucket(1_000_000), TokenBucket(1_000_000_000))


class TestRouterLLM(Wrapped):
    def wrap(self, model: Model) -> Model:
        return RouterLLM({"a": model, "b": model}, by_length(short="a", long="b", tokens=10))


class TestRetryingModel(Wrapped):
    def wrap(self, model: Model) -> Model:
        return RetryingModel(model, RetryPolicy(min_wait=0, max_wait=0))


class TestTextToolCalls(Wrapped):
    def wrap(self, model: Model) -> Model:
        return TextToolCalls(model)


class TestAllAroundAnLLM(ModelContract):
    @asynccontextmanager
    async def playing(self, lines: Lines, *, repeat: bool = False) -> AsyncGenerator[Model]:
        async with serve_provider(lines, repeat=repeat) as provider:
            llm = LLM(model="mine", base_url=provider.base_url, retry_min_wait=0, retry_max_wait=0)
            limited = LimitedModel(llm, AdaptiveLimiter(start=2))
            yield RouterLLM({"a": FallbackLLM(limited, llm), "b": llm}, by_length(short="a", long="b", tokens=10))
