"""Which route a model is reached by."""

from __future__ import annotations

from agentcore.errors import BadRequest
from agentcore.llm.catalog import model_info
from agentcore.llm.litellm_route.route import LiteLLMModel
from agentcore.llm.model import Model
from agentcore.llm.native.hosts import HOSTS, goes_native
from agentcore.llm.native.model import NativeModel
from agentcore.llm.settings import LLMSettings
from agentcore.llm.text_calls import TextToolCalls


def choose_route(settings: LLMSettings) -> Model:
    """Return the model that makes one attempt of a call.

    Raises:
        BadRequest: The native route is asked for, and the provider speaks nothing that it speaks.
    """
    route = _route(settings)
    return route if settings.native_tool_calling else TextToolCalls(route)


def _route(settings: LLMSettings) -> Model:
    if not goes_native(settings):
        return LiteLLMModel(settings)
    if settings.provider not in HOSTS:
        raise BadRequest(
            f"{settings.model}: {settings.provider!r} is reached through litellm only: leave route='native' out. Reached "
            f"natively: {', '.join(sorted(HOSTS))}.",
            model=settings.model,
        )
    return NativeModel(settings)


async def supports_response_schema(settings: LLMSettings) -> bool:
    """Return whether the provider is known to enforce a JSON Schema for this model, on the route that is taken."""
    if not goes_native(settings) or settings.provider not in HOSTS or HOSTS[settings.provider].wire == "anthropic":
        return False
    return settings.native_tool_calling and (await model_info(settings)).features.response_schema is True
