"""How much a conversation may use."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from decimal import Decimal
from typing import Annotated

from pydantic import Field

from agentcore._value import Recorded

__all__ = ["Limits"]

_Seconds = Annotated[float, Field(gt=0)] | None


class Limits(Recorded):
    """Budgets and deadlines. None means no limit. `Conversation.set_limits` changes them while it runs.

    Reaching one ends the run with status "error" and the limit's name as its code, except `call_seconds`, which ends
    only that call: the model reads that it was interrupted and goes on.
    """

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
