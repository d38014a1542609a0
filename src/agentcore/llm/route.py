"""The way to a provider: found when it is first needed, because what it takes is heavy.

httpx and what comes with it take longer to import than all of agentcore, so they are imported in a worker thread while
the event loop goes on, here and nowhere else.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

import anyio
import anyio.to_thread

from agentcore.llm.features import Features
from agentcore.llm.model import DeltaStream, Model
from agentcore.llm.reply import Reply
from agentcore.llm.settings import LLMSettings
from agentcore.llm.wrapper import ModelRequest, RequestModel

_choose: Callable[[LLMSettings], Model] | None = None
_supports: Callable[[LLMSettings], Awaitable[bool]] | None = None
_look_up: Callable[[LLMSettings], Awaitable[Any]] | None = None


@dataclass(frozen=True, slots=True)
class RoutedModel(RequestModel):
    """A model at a provider, asked once per call, by whichever route it is reached."""

    settings: LLMSettings

    @property
    def name(self) -> str:
        """The provider and the model."""
        return self.settings.model

    async def _complete(self, request: ModelRequest) -> Reply:
        choose = _choose or await _load()
        return await request.complete(choose(self.settings))

    @asynccontextmanager
    async def _stream(self, request: ModelRequest) -> AsyncGenerator[DeltaStream]:
        choose = _choose or await _load()
        async with request.stream(choose(self.settings)) as deltas:
            yield deltas

    async def get_features(self) -> Features:
        """Return what the model can do, as far as the list of models and the setting `features` say."""
        return await look_up_features(self.settings)

    def record(self) -> None:
        """Return None: an `LLM` is what is written down."""


async def supports_response_schema(settings: LLMSettings) -> bool:
    """Return whether the provider is known to enforce a JSON Schema for this model, on the route that is taken."""
    await _load()
    assert _supports is not None
    return await _supports(settings)


async def look_up_features(settings: LLMSettings) -> Features:
    """Return what a model can do, as far as the list of models and the settings say."""
    look_up = _look_up or await _load_catalog()
    return (await look_up(settings)).features


async def _load() -> Callable[[LLMSettings], Model]:
    global _choose, _supports
    module = await _import("agentcore.llm.choose")
    _choose, _supports = module.choose_route, module.supports_response_schema
    return module.choose_route


async def _load_catalog() -> Callable[[LLMSettings], Awaitable[Any]]:
    global _look_up  # noqa: PLW0603 imported once, when it is first needed
    _look_up = (await _import("agentcore.llm.catalog")).model_info
    assert _look_up is not None
    return _look_up


async def _import(name: str) -> Any:
    return await anyio.to_thread.run_sync(import_module, name, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))
