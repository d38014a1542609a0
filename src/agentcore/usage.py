"""Usage of a model: tokens, cost, and limits on them.

Token counts are inclusive: `input_tokens` counts everything the model read, cached or not; `output_tokens` everything
it wrote, reasoning included. The other counts say how much of that was what.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from collections.abc import Iterable
from decimal import Decimal
from typing import Annotated

from pydantic import Field

from agentcore._value import Recorded, Value


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
        return Usage.sum((self, other))

    @staticmethod
    def sum(usages: "Iterable[Usage]") -> "Usage":
        """Add any number of usages up."""
        requests = input_tokens = output_tokens = cache_read = cache_write = reasoning = unpriced = 0
        known_cost = Decimal(0)
        for usage in usages:
            requests += usage.requests
            input_tokens += usage.input_tokens
            output_tokens += usage.output_tokens
            cache_read += usage.cache_read_tokens
            cache_write += usage.cache_write_tokens
            reasoning += usage.reasoning_tokens
            known_cost += usage.known_cost
            unpriced += usage.unpriced_requests
        return Usage(
            requests=requests,
            input_tokens=input_tokens,
            output_tokens=output_tokens,
            cache_read_tokens=cache_read,
            cache_write_tokens=cache_write,
            reasoning_tokens=reasoning,
            known_cost=known_cost,
            unpriced_requests=unpriced,
        )


_Seconds = Annotated[float, Field(gt=0)] | None


class Limits(Recorded):
    """Budgets and deadlines. None means no limit. `Conversation.set_limits` changes them while it runs.

    Reaching one ends the run with status "error" and the limit's name as its code, except `call_seconds`, which ends
    only that call: the model reads that it was interrupted and goes on.
    """

    # Programs make it: a name that it does not have is refused.
    __init__ = Value.__init__

    steps: Annotated[int, Field(gt=0)] | None = 500
    """Model calls, per run."""
    cost: Annotated[Decimal, Field(ge=0)] | None = None
    """US dollars, of the conversation over all its runs."""
    tokens: Annotated[int, Field(ge=0)] | None = None
    """Tokens read and written, of the conversation over all its runs."""
    step_seconds: _Seconds = None
    """Wall time of one model call with its retries."""
    call_seconds: _Seconds = None
    """Wall time of one tool call."""
    run_seconds: _Seconds = None
    """Wall time of one run; waiting for a person does not count."""
    conversation_seconds: _Seconds = None
    """Wall time of all runs together; waiting for a person does not count."""
