"""What a model can do."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from typing import Annotated, Literal

from pydantic import Field

from agentcore._value import Value

__all__ = ["Features"]

_Tokens = Annotated[int, Field(gt=0)] | None


class Features(Value):
    """What a model can do; None is what nobody has said."""

    context_window: _Tokens = None
    """The most tokens it reads in one request."""
    max_output_tokens: _Tokens = None
    """The most tokens it writes in one reply."""
    vision: bool | None = None
    """Whether it takes images."""
    pdf: bool | None = None
    """Whether it takes PDF files."""
    tool_calls: bool | None = None
    """Whether it asks for tools."""
    reasoning: bool | None = None
    """Whether it thinks before it answers."""
    prompt_caching: bool | None = None
    """Whether its provider keeps prompts, and asks less for what it has kept."""
    response_schema: bool | None = None
    """Whether it can be held to a JSON Schema."""
    mode: Literal["chat", "responses"] | None = None
    """The interface that it is listed with: with "responses" it has no other."""
