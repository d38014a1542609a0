"""The way to a provider: found when it is first needed, because what it takes is heavy.

httpx and what comes with it take longer to import than all of agentcore, so they are imported in a worker thread while
the event loop goes on, here and nowhere else.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module

import anyio
import anyio.to_thread

from agentcore.llm.model import CallContext, DeltaStream, Model
from agentcore.llm.reply import Reply
from agentcore.llm.settings import LLMSettings
from agentcore.messages import Message, ToolSchema

__all__ = ["RoutedModel"]

_choose: Callable[[LLMSettings], Model] | None = None


@dataclass(frozen=True, slots=True)
class RoutedModel:
    """A model at a provider, asked once per call, by whichever route it is reached."""

    settings: LLMSettings

    @property
    def name(self) -> str:
        """The provider and the model."""
        return self.settings.model

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, context: CallContext | None = None
    ) -> Reply:
        """Answer, all at once."""
        choose = _choose or await _load()
        return await choose(self.settings).complete(messages, tools, context=context)

    @asynccontextmanager
    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, context: CallContext | None = None
    ) -> AsyncGenerator[DeltaStream]:
        """Answer, piece by piece."""
        choose = _choose or await _load()
        async with choose(self.settings).stream(messages, tools, context=context) as deltas:
            yield deltas


async def _load() -> Callable[[LLMSettings], Model]:
    global _choose  # noqa: PLW0603 - a module is imported once per process
    module = await anyio.to_thread.run_sync(
        import_module, "agentcore.llm.choose", abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1)
    )
    _choose = module.choose_route
    return module.choose_route
