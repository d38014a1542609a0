"""Features of models."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from pydantic import Field

from agentcore._value import Value

_Tokens = Annotated[int, Field(gt=0)] | None


class Features(Value):
    """Features of a model; None is unknown."""

    context_window: _Tokens = None
    """The most tokens it reads in one request."""
    max_output_tokens: _Tokens = None
    """The most tokens it writes in one reply."""
    vision: bool | None = None
    """True if it takes images."""
    pdf: bool | None = None
    """True if it takes PDF files."""
    tool_calls: bool | None = None
    """True if it asks for tools."""
    reasoning: bool | None = None
    """True if it thinks before it answers."""
    prompt_caching: bool | None = None
    """True if its provider keeps prompts, and asks less for what it has kept."""
    response_schema: bool | None = None
    """True if it can be held to a JSON Schema."""
    mode: Literal["chat", "responses"] | None = None
    """The interface that it is listed with: with "responses" it has no other."""


def common_features(features: Sequence[Features | None]) -> Features | None:
    """Return what all of several models can do; what is not known of one of them is not known of all."""
    known = [each for each in features if each is not None]
    if not known or len(known) < len(features):
        return None
    return Features(**{name: _common([getattr(each, name) for each in known]) for name in Features.model_fields})


def _common(values: Sequence[Any]) -> Any:
    if False in values:
        return False
    if None in values:
        return None
    # The least of numbers; of words only those that are the same.
    return min(values) if isinstance(values[0], int) else values[0] if len(set(values)) == 1 else None
