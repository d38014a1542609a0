"""Which row of the table speaks of the model that somebody means."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import urlsplit

from agentcore.llm.catalog.info import ModelInfo, Prices
from agentcore.llm.catalog.table import Table, table, table_nowait
from agentcore.llm.features import Features
from agentcore.llm.settings import LLMSettings

__all__ = ["known_prices", "model_info"]

_FAMILIES = {
    "ai21_chat": "ai21",
    "anthropic_text": "anthropic",
    "azure_text": "azure",
    "bedrock_converse": "bedrock",
    "cohere_chat": "cohere",
    "ollama_chat": "ollama",
    "sagemaker_chat": "sagemaker",
    "text-completion-codestral": "codestral",
    "text-completion-inception": "inception",
    "text-completion-openai": "openai",
    "watsonx_text": "watsonx",
}
"""Names of litellm's for other interfaces of the same provider."""

_FINE_TUNED = re.compile(r"^(ft:[^:]+):.*$")
_ROUTES = ("converse/", "invoke/", "responses/")
"""What litellm's names may say between the provider and the model: an interface."""

_UNKNOWN = ModelInfo(Features.model_construct(), None)
_found: dict[str, ModelInfo] = {}


async def model_info(settings: LLMSettings) -> ModelInfo:
    """Give what is known of a model; what `settings.features` says goes before it.

    The first call of a process reads the table, in a thread; after that nothing is waited for.
    """
    info = _found.get(settings.model)
    if info is None:
        info = _found[settings.model] = _look_up(await table(), settings.model)
    if info.prices is not None and _sold_by_another(settings):
        info = ModelInfo(info.features, None)
    if said := {
        name: value
        for name in settings.features.model_fields_set
        if (value := getattr(settings.features, name)) is not None
    }:
        info = ModelInfo(info.features.model_copy(update=said), info.prices)
    return info


def known_prices(model: str) -> Prices | None:
    """Return the prices of another model, once the table was read."""
    known = table_nowait()
    return None if known is None else _look_up(known, model).prices


def _look_up(known: Table, model: str) -> ModelInfo:
    return next((known.info(name) for name in _names(known, model)), _UNKNOWN)


def _names(known: Table, model: str) -> Iterator[str]:
    """Give the names under which a model is in the table, the most exact one first."""
    provider, _, bare = model.partition("/")
    family = _family(provider)
    spelled = [bare, *(bare.removeprefix(route) for route in _ROUTES if bare.startswith(route))]
    spelled += [tuned[1] for name in spelled if (tuned := _FINE_TUNED.match(name))]
    for name in spelled:
        for full in dict.fromkeys((f"{provider}/{name}", f"{family}/{name}")):
            if full in known.rows:
                yield full
        # Several sell models of one name: the bare one is the price of whoever is listed with it, and of nobody else.
        seller = known.provider(name)
        if seller is not None and _family(seller) == family:
            yield name


def _family(provider: str) -> str:
    return "vertex_ai" if provider.startswith("vertex_ai") else _FAMILIES.get(provider, provider)


def _sold_by_another(settings: LLMSettings) -> bool:
    """Whether a server that only speaks as OpenAI's does may use one of its names for anything, at any price."""
    if settings.base_url is None or settings.provider != "openai":
        return False
    host = urlsplit(settings.base_url).hostname or ""
    return host != "openai.com" and not host.endswith(".openai.com")
