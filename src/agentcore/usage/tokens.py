"""What model calls used, and what that cost.

Token counts are inclusive: `input_tokens` counts everything the model read, cached or not; `output_tokens` everything
it wrote, reasoning included. The other counts say how much of that was what.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from decimal import Decimal

from agentcore._value import Recorded

__all__ = ["Usage"]


class Usage(Recorded):
    """The usage of one model call, or of many added up."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    reasoning_tokens: int = 0
    known_cost: Decimal = Decimal(0)
    """US dollars, of the calls whose price is known."""
    unpriced_requests: int = 0
    """Calls whose price is not known."""

    @property
    def cost(self) -> Decimal | None:
        """US dollars, or None where the price of a call is unknown (then see `known_cost`)."""
        return None if self.unpriced_requests else self.known_cost

    @property
    def total_tokens(self) -> int:
        """Tokens read and written."""
        return self.input_tokens + self.output_tokens

    def __add__(self, other: "Usage") -> "Usage":
        """Add two usages up."""
        return Usage(
            requests=self.requests + other.requests,
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            reasoning_tokens=self.reasoning_tokens + other.reasoning_tokens,
            known_cost=self.known_cost + other.known_cost,
            unpriced_requests=self.unpriced_requests + other.unpriced_requests,
        )
