"""What is known of one model."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from agentcore.llm.features import Features

__all__ = ["ModelInfo", "Prices", "Rates"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rates:
    """US dollars per token."""

    input: Decimal
    output: Decimal
    cache_read: Decimal
    """Of input tokens that the provider had kept."""
    cache_write: Decimal
    """Of input tokens that it keeps from now on."""
    reasoning: Decimal
    """Of output tokens that are thinking."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What the tokens of a request cost, by how many it has read."""

    base: Rates
    above: tuple[tuple[int, Rates], ...] = ()
    """The rates for all tokens of a request that has read more than so many, the largest number first."""

    def rates(self, input_tokens: int) -> Rates:
        """Give the rates of a request that has read so much."""
        return next((rates for limit, rates in self.above if input_tokens > limit), self.base)


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is known of one model."""

    features: Features
    prices: Prices | None
    """None where they are not known."""
