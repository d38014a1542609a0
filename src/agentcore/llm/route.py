"""The way to a provider: over plain HTTP or through litellm.

httpx and what comes with it take longer to import than all of agentcore, so each route is imported when it is first needed,
in a worker thread while the event loop goes on, here and nowhere else.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any

from agentcore._threads import Threads
from agentcore.errors import BadRequest
from agentcore.llm.model import DeltaStream, Features, Model
from agentcore.llm.providers import HOSTS
from agentcore.llm.reply import Reply
from agentcore.llm.settings import LLMSettings
from agentcore.llm.wrapper import ModelRequest, RequestModel

_imports = Threads("llm_imports", 1)
_imported: dict[str, Any] = {}


@dataclass(frozen=True, slots=True)
class RoutedModel(RequestModel):
    """A model at a provider, asked once per call, by whichever route it is reached."""

    settings: LLMSettings

    @property
    def name(self) -> str:
        """The provider and the model."""
        return self.settings.model

    async def _complete(self, request: ModelRequest) -> Reply:
        return await request.complete(await self._route())

    @asynccontextmanager
    async def _stream(self, request: ModelRequest) -> AsyncGenerator[DeltaStream]:
        async with request.stream(await self._route()) as deltas:
            yield deltas

    async def _route(self) -> Model:
        """Return the model that makes one attempt of a call.

        Raises:
            BadRequest: The native route is asked for, and the provider has no API that it knows.
        """
        settings = self.settings
        if goes_native(settings):
            if settings.provider not in HOSTS:
                raise BadRequest(
                    f"{settings.model}: {settings.provider!r} is reached through litellm only: leave route='native' out. "
                    f"Reached natively: {', '.join(sorted(HOSTS))}.",
                    model=settings.model,
                )
            route = (await _import("native.model")).NativeModel(settings)
        else:
            route = (await _import("litellm_route.route")).LiteLLMModel(settings)
        if settings.native_tool_calling:
            return route
        return (await _import("text_calls")).TextToolCalls(route)


def goes_native(settings: LLMSettings) -> bool:
    """Return whether a model is reached over plain HTTP and not through litellm."""
    if settings.route != "auto":
        return settings.route == "native"
    # Options that only litellm knows are a wish to go through it.
    return settings.provider in HOSTS and not settings.provider_options


async def supports_response_schema(settings: LLMSettings) -> bool:
    """Return whether the provider is known to enforce a JSON Schema for this model, on the route that is taken."""
    host = HOSTS.get(settings.provider)
    if host is None or host.wire == "anthropic" or not (goes_native(settings) and settings.native_tool_calling):
        return False
    return (await look_up_features(settings)).response_schema is True


async def look_up_features(settings: LLMSettings) -> Features:
    """Return what a model can do, as far as the list of models and the settings say."""
    return (await (await _import("catalog")).model_info(settings)).features


async def _import(name: str) -> Any:
    if name not in _imported:
        _imported[name] = await _imports.run(import_module, f"agentcore.llm.{name}", abandon_on_cancel=True)
    return _imported[name]
