"""What is known of one model."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from decimal import Decimal

from agentcore.llm.features import Features

__all__ = ["Features", "ModelInfo", "Prices", "QuietHours", "Rates"]


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


@dataclass(frozen=True, slots=True, kw_only=True)
class QuietHours:
    """Hours in which a provider asks for less."""

    rates: Rates
    windows: tuple[tuple[frozenset[int], time, time], ...]
    """Days of the week (1 is Monday), and when the hours begin and end, in UTC; an end before the beginning is on the
    next day, and one at the beginning is a whole day later."""
    days_ahead: timedelta = timedelta()
    """How far ahead of UTC the calendar is by which the days are told."""

    def include(self, moment: datetime) -> bool:
        """Say whether a moment is in them."""
        now = moment.astimezone(UTC)
        day, clock = (now + self.days_ahead).isoweekday(), now.time()
        return any(
            day in days and (begin <= clock < end if begin < end else clock >= begin or clock < end)
            for days, begin, end in self.windows
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """What the tokens of a request cost, by how many it has read and when."""

    base: Rates
    above: tuple[tuple[int, Rates], ...] = ()
    """The rates for all tokens of a request that has read more than so many, the largest number first."""
    quiet: QuietHours | None = None

    def rates(self, input_tokens: int, at: datetime | None = None) -> Rates:
        """Give the rates of a request that has read so much, at a time; without one, that is now."""
        if self.quiet is not None and self.quiet.include(at or datetime.now(UTC)):
            return self.quiet.rates
        return next((rates for limit, rates in self.above if input_tokens > limit), self.base)


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is known of one model."""

    features: Features
    prices: Prices | None
    """None where they are not known."""
