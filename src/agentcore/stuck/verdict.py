"""What a detector says of a conversation."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from typing import Literal

from agentcore._value import Value

__all__ = ["StuckCode", "Verdict"]

StuckCode = Literal["repeated_action", "repeated_error", "monologue", "alternation", "context_window"]


class Verdict(Value):
    """The agent goes round in circles."""

    code: StuckCode
    """Which way, for programs. It is also the `code` of the message that carries a nudge."""
    detail: str
    """Which way, for people."""
    action: Literal["nudge", "stuck"]
    """What to do: send the model the nudge and go on, or stop."""
    nudge: str | None = None
    """For a nudge, what to tell the model."""
