"""What a call cost, by the provider's own word, by the user's, or by litellm's price list. Unknown stays unknown."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from agentcore.llm.settings import LLMSettings
from agentcore.usage import Usage

__all__ = ["listed", "priced"]


def listed(litellm: Any, settings: LLMSettings) -> dict[str, Any]:
    """Give what litellm's list knows of the model; nothing where it is not in it.

    The list is read as it is: litellm's own look-up asks the server of some providers.
    """
    models: dict[str, dict[str, Any]] = litellm.model_cost
    return models.get(settings.model) or models.get(settings.model.removeprefix(f"{settings.provider}/")) or {}


def priced(litellm: Any, settings: LLMSettings, usage: Usage, *, reported: float | None = None) -> Usage:
    """Add the cost to the usage of one call."""
    cost = _cost(litellm, settings, usage, reported)
    return usage.model_copy(update={"unpriced_requests": 1} if cost is None else {"known_cost": cost})


def _cost(litellm: Any, settings: LLMSettings, usage: Usage, reported: float | None) -> Decimal | None:
    if settings.input_cost_per_token is not None and settings.output_cost_per_token is not None:
        return usage.input_tokens * settings.input_cost_per_token + usage.output_tokens * settings.output_cost_per_token
    if reported is not None:
        return _dollars(reported)
    if not usage.total_tokens:
        return None  # the provider did not say what it used
    prices = listed(litellm, settings)
    if prices.get("input_cost_per_token") is None or prices.get("output_cost_per_token") is None:
        return None
    if not prices["input_cost_per_token"] and not prices["output_cost_per_token"]:
        return Decimal(0)
    try:
        costs = litellm.cost_per_token(
            model=settings.model.removeprefix(f"{settings.provider}/"),
            custom_llm_provider=settings.provider,
            usage_object=_as_litellm_counts(litellm, usage),
        )
    except Exception:  # what its list can't be applied to has no known price; it raises bare Exceptions for that
        return None
    return _dollars(sum(costs))


def _as_litellm_counts(litellm: Any, usage: Usage) -> Any:
    return litellm.Usage(
        prompt_tokens=usage.input_tokens,
        completion_tokens=usage.output_tokens,
        total_tokens=usage.total_tokens,
        prompt_tokens_details={
            "cached_tokens": usage.cache_read_tokens,
            "cache_creation_tokens": usage.cache_write_tokens,
        },
        completion_tokens_details={"reasoning_tokens": usage.reasoning_tokens},
    )


def _dollars(amount: float) -> Decimal:
    # A price is a few digits; what a float adds behind the twelfth is not a price.
    return Decimal(f"{amount:.12f}".rstrip("0").rstrip("."))
