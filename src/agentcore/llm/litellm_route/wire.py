"""What the two interfaces of providers have in common: how a call is made, and how its answer is read."""

from __future__ import annotations

import os
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol

from agentcore.llm.answer import Answer, Reader
from agentcore.llm.features import Features
from agentcore.llm.keys import find_key
from agentcore.llm.model import CallContext
from agentcore.llm.settings import LLMSettings
from agentcore.messages import Message, ToolSchema

__all__ = ["Wire", "common_options"]


class Wire(Protocol):
    """One interface of a provider, as litellm speaks it."""

    def options(
        self,
        settings: LLMSettings,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema],
        context: CallContext | None,
        features: Features,
    ) -> dict[str, Any]:
        """Make the arguments of a call; `features` is what is known of the model."""
        ...

    def call(self, litellm: Any) -> Callable[..., Awaitable[Any]]:
        """Give litellm's function for it."""
        ...

    def answer(self, settings: LLMSettings, response: dict[str, Any]) -> Answer:
        """Read an answer that came at once."""
        ...

    def reader(self, settings: LLMSettings) -> Reader:
        """Read an answer that comes as a stream."""
        ...

    async def events(self, stream: Any, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        """Pass a stream's events on, as plain JSON, and close it."""
        ...


def common_options(settings: LLMSettings) -> dict[str, Any]:
    """Make the arguments that every call has."""
    options: dict[str, Any] = {
        **settings.provider_options,
        "model": settings.model,
        "api_base": settings.base_url,
        "api_key": _api_key(settings),
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "extra_headers": settings.revealed_headers or None,
        "service_tier": settings.service_tier,
        "extra_body": settings.extra_body or None,
        # Ours are told to the caller, and bounded by what he allows.
        "max_retries": 0,
        "num_retries": 0,
        "timeout": max(settings.timeout, settings.stream_idle_timeout),
    }
    return {name: value for name, value in options.items() if value is not None} | {"drop_params": settings.drop_params}


def _api_key(settings: LLMSettings) -> str | None:
    if settings.api_key is not None:
        # An empty one says that there is none: litellm is not to look for another.
        return find_key(settings) or (None if settings.base_url is None else "none")
    if settings.base_url is not None and settings.provider == "openai" and not os.environ.get("OPENAI_API_KEY"):
        return "none"  # servers of one's own mostly want no key; the client insists on one
    return None
