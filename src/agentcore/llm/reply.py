"""What a model call ends in."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from typing import Annotated

from pydantic import JsonValue

from agentcore._value import VERBATIM, Value, Verbatim
from agentcore.messages import Message
from agentcore.usage import Usage

__all__ = ["Reply", "TokenLogprob"]


class TokenLogprob(Value):
    """One token of a reply and how likely it was."""

    token: str
    logprob: float
    top: tuple[tuple[str, float], ...] = ()
    """The likeliest tokens at this place, each with its logarithm."""


class Reply(Value):
    """A whole reply: what the model said, what it used, and why it stopped."""

    message: Message
    usage: Usage
    stop_reason: Verbatim
    """Why the model stopped: "end", "tool_calls", "length" (cut off at its output limit), "content_filter", "pause" (a
    provider's own tool wants another request), "stop_sequence", or a word of the provider's own."""
    model: Verbatim
    """The model that answered, as in "openai/gpt-5-2025-08-07": a provider may answer with another than was asked."""
    provider_id: Verbatim | None = None
    """The provider's id of the reply, to name when asking its support."""
    latency: float | None = None
    """Seconds from the request to the end of the reply, without attempts that failed, where the model says it."""
    time_to_first_token: float | None = None
    """Seconds from the request to the first delta; None where the reply came at once, or the model does not say."""
    reported_usage: Annotated[dict[str, JsonValue], VERBATIM] = {}
    """What the provider counted, in its own words: searches and other tools of its own among it."""
    service_tier: Verbatim | None = None
    """The service tier that the provider used, where it says so."""
    logprobs: tuple[TokenLogprob, ...] | None = None
    """The tokens with their probabilities, where `LLM(logprobs=...)` asked for them and the provider gives them."""
