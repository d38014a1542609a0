"""Which route a model is reached by."""

from __future__ import annotations

from agentcore.errors import BadRequest
from agentcore.llm.litellm_route.route import LiteLLMModel
from agentcore.llm.model import Model
from agentcore.llm.native.hosts import HOSTS
from agentcore.llm.native.model import NativeModel
from agentcore.llm.settings import LLMSettings

__all__ = ["choose_route"]


def choose_route(settings: LLMSettings) -> Model:
    """Give the model that makes one attempt of a call.

    Raises:
        BadRequest: The native route is asked for, and the provider speaks nothing that it speaks.
    """
    spoken = settings.provider in HOSTS
    if settings.route == "native" and not spoken:
        raise BadRequest(
            f"{settings.model}: {settings.provider!r} is reached through litellm only: leave route='native' out. Reached "
            f"natively: {', '.join(sorted(HOSTS))}.",
            model=settings.model,
        )
    # Options that only litellm knows are a wish to go through it.
    if settings.route == "native" or (settings.route == "auto" and spoken and not settings.provider_options):
        return NativeModel(settings)
    return LiteLLMModel(settings)
