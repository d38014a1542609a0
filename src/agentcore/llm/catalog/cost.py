"""The cost of a call: by the user's prices, by what the provider reports, or by the table. Unknown stays unknown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal

from agentcore.llm.catalog.models import ModelInfo, Prices, Rates, known_prices
from agentcore.llm.settings import LLMSettings
from agentcore.usage import Usage

_FOR_AN_HOUR = 2
"""How many times the price of input Anthropic asks for what it keeps an hour: docs.claude.com, "Prompt caching"."""
_SEARCH = Decimal("0.01")
"""US dollars for a search that Anthropic makes: docs.claude.com, "Web search tool"."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Surcharges:
    """Costs of a reply besides its tokens at their usual price."""

    hour_cache_tokens: int = 0
    """Of the tokens that are written to the cache, those that are kept for an hour."""
    searches: int = 0
    """Searches of the provider that are paid one by one."""
    other_models: Sequence[tuple[str, Usage]] = ()
    """Usage of other models that the provider called for this reply, by name."""


_NONE = Surcharges()


def priced(
    info: ModelInfo,
    settings: LLMSettings,
    usage: Usage,
    *,
    reported: float | None = None,
    surcharges: Surcharges = _NONE,
) -> Usage:
    """Add the cost to the usage of one call.

    Args:
        info: What is known of the model.
        settings: They may have prices; those go before all others.
        usage: What the provider counted.
        reported: US dollars, where the provider says what it charged.
        surcharges: What it costs besides.
    """
    cost = _cost(info, settings, usage, reported=reported, surcharges=surcharges)
    return usage.model_copy(update={"unpriced_requests": 1} if cost is None else {"known_cost": cost})


def _cost(
    info: ModelInfo, settings: LLMSettings, usage: Usage, *, reported: float | None, surcharges: Surcharges
) -> Decimal | None:
    own = _own_prices(settings)
    if own is None and reported is not None:
        return _dollars(reported)
    prices = own or info.prices
    # Where nothing was counted, the provider did not say what it used.
    if prices is None or not usage.total_tokens:
        return None
    if own is not None:
        return _sum(own.rates(usage.input_tokens), usage)
    total = _sum(prices.rates(usage.input_tokens), usage, surcharges.hour_cache_tokens)
    for model, used in surcharges.other_models:
        others = known_prices(model)
        if others is None:
            return None
        total += _sum(others.rates(used.input_tokens), used)
    return total + surcharges.searches * _SEARCH


def _own_prices(settings: LLMSettings) -> Prices | None:
    read, write = settings.input_cost_per_token, settings.output_cost_per_token
    if read is None or write is None:
        return None
    kept, keeping = settings.cache_read_cost_per_token, settings.cache_write_cost_per_token
    return Prices(
        base=Rates(
            input=read,
            output=write,
            cache_read=read if kept is None else kept,
            cache_write=read if keeping is None else keeping,
            reasoning=write,
        )
    )


def _sum(rates: Rates, usage: Usage, for_an_hour: int = 0) -> Decimal:
    # The counts are inclusive. A part that is larger than its whole is a provider's mistake: no tokens are paid twice.
    kept = min(usage.cache_read_tokens, usage.input_tokens)
    keeping = min(usage.cache_write_tokens, usage.input_tokens - kept)
    longer = min(for_an_hour, keeping)
    thought = min(usage.reasoning_tokens, usage.output_tokens)
    return _dollars(
        (usage.input_tokens - kept - keeping) * rates.input
        + kept * rates.cache_read
        + (keeping - longer) * rates.cache_write
        + longer * rates.input * _FOR_AN_HOUR
        + (usage.output_tokens - thought) * rates.output
        + thought * rates.reasoning
    )


def _dollars(amount: Decimal | float) -> Decimal:
    # A price is a few digits; what a float adds behind the twelfth is not a price.
    return Decimal(f"{amount:.12f}".rstrip("0").rstrip("."))
