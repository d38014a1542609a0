"""What a call cost: by the user's prices, by the provider's own word, or by the table. Unknown stays unknown."""

from __future__ import annotations

from datetime import datetime
from decimal import Decimal

from agentcore.llm.catalog.info import ModelInfo, Prices, Rates
from agentcore.llm.settings import LLMSettings
from agentcore.usage import Usage

__all__ = ["priced"]


def priced(
    info: ModelInfo,
    settings: LLMSettings,
    usage: Usage,
    *,
    reported: float | None = None,
    at: datetime | None = None,
) -> Usage:
    """Add the cost to the usage of one call.

    Args:
        info: What is known of the model.
        settings: They may have prices; those go before all others.
        usage: What the provider counted.
        reported: US dollars, where the provider says what it charged.
        at: When the call was made, if not now: some providers ask for less at some hours.
    """
    cost = _cost(info, settings, usage, reported, at)
    return usage.model_copy(update={"unpriced_requests": 1} if cost is None else {"known_cost": cost})


def _cost(
    info: ModelInfo, settings: LLMSettings, usage: Usage, reported: float | None, at: datetime | None
) -> Decimal | None:
    own = _own_prices(settings)
    if own is None and reported is not None:
        return _dollars(reported)
    prices = own or info.prices
    # Where nothing was counted, the provider did not say what it used.
    if prices is None or not usage.total_tokens:
        return None
    return _sum(prices.rates(usage.input_tokens, at), usage)


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


def _sum(rates: Rates, usage: Usage) -> Decimal:
    # The counts are inclusive. A part that is larger than its whole is a provider's mistake: no tokens are paid twice.
    kept = min(usage.cache_read_tokens, usage.input_tokens)
    keeping = min(usage.cache_write_tokens, usage.input_tokens - kept)
    thought = min(usage.reasoning_tokens, usage.output_tokens)
    return _dollars(
        (usage.input_tokens - kept - keeping) * rates.input
        + kept * rates.cache_read
        + keeping * rates.cache_write
        + (usage.output_tokens - thought) * rates.output
        + thought * rates.reasoning
    )


def _dollars(amount: Decimal | float) -> Decimal:
    # A price is a few digits; what a float adds behind the twelfth is not a price.
    return Decimal(f"{amount:.12f}".rstrip("0").rstrip("."))
