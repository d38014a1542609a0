"""A reply of a model: the whole, and the deltas that show it while it comes.

Deltas are for display. The `Reply` at the end is assembled separately and is complete.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

import json
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import BaseModel, Field, JsonValue

from agentcore._value import VERBATIM, Value, Verbatim
from agentcore.messages import (
    AudioBlock,
    Message,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from agentcore.usage import Usage


class _Piece(Value):
    # Made for every few letters, by agentcore itself.
    __init__ = BaseModel.__init__


class TextDelta(_Piece):
    """More words."""

    type: Literal["text"] = "text"
    text: str


class ReasoningDelta(_Piece):
    """More thinking, in words."""

    type: Literal["reasoning"] = "reasoning"
    text: str


class RefusalDelta(_Piece):
    """More of the words in which the model refuses."""

    type: Literal["refusal"] = "refusal"
    text: str


class ToolCallDelta(_Piece):
    """More of a tool call: its name comes once, its arguments in fragments of JSON text."""

    type: Literal["tool_call"] = "tool_call"
    index: int
    """Which call of the reply this belongs to, from 0."""
    id: Verbatim | None = None
    name: str | None = None
    arguments: str = ""


class ResetDelta(_Piece):
    """The call starts over: everything said so far is void."""

    type: Literal["reset"] = "reset"
    reason: str
    """The failure, for a person to read."""


Delta = Annotated[TextDelta | ReasoningDelta | RefusalDelta | ToolCallDelta | ResetDelta, Field(discriminator="type")]
"""One piece of a reply that is being said."""


def deltas_of(message: Message) -> Iterator[Delta]:
    """Yield the deltas of a complete message, one for each block that can be shown."""
    calls = 0
    for block in message.content:
        if isinstance(block, TextBlock):
            yield TextDelta(text=block.text)
        elif isinstance(block, AudioBlock):
            if block.transcript:
                yield TextDelta(text=block.transcript)
        elif isinstance(block, RefusalBlock):
            yield RefusalDelta(text=block.text)
        elif isinstance(block, ThinkingBlock):
            if block.text:
                yield ReasoningDelta(text=block.text)
        elif isinstance(block, ReasoningBlock):
            if block.summary:
                yield ReasoningDelta(text=block.words)
        elif isinstance(block, ToolCallBlock):
            written = block.arguments if isinstance(block.arguments, str) else json.dumps(block.arguments)
            yield ToolCallDelta(index=calls, id=block.id, name=block.name, arguments=written)
            calls += 1


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
    """The provider's own counts, with those of searches and other tools of its own."""
    service_tier: Verbatim | None = None
    """The service tier that the provider used, where it says so."""
    logprobs: tuple[TokenLogprob, ...] | None = None
    """The tokens with their probabilities, where `LLM(logprobs=...)` asked for them and the provider gives them."""
