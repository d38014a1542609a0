"""How often is too often."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from typing import Annotated

from pydantic import Field

from agentcore._value import Value

__all__ = ["StuckThresholds"]


class StuckThresholds(Value):
    """When a conversation counts as stuck. None turns a scenario off."""

    repeated_action: Annotated[int, Field(ge=2)] | None = 4
    """So many replies in a row that ask for the same and get the same answers."""
    repeated_error: Annotated[int, Field(ge=2)] | None = 3
    """So many replies in a row that ask for the same and get nothing but errors: the model is told once. One more, and
    it is stuck."""
    monologue: Annotated[int, Field(ge=2)] | None = 3
    """So many messages of the agent in a row without an action."""
    alternation: Annotated[int, Field(ge=4)] | None = 6
    """So many replies in a row that go to and fro between two requests, with the same two answers."""
    context_window: Annotated[int, Field(ge=2)] | None = 4
    """So many condensations, or requests that were too large, without a reply of the model in between."""
