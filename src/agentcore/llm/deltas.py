"""What a model says, piece by piece, while it says it.

Deltas are for those who watch. What counts is the `Reply` at the end: it is assembled apart, and complete.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

import json
from collections.abc import Iterator
from typing import Annotated, Literal

from pydantic import Field

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

__all__ = ["Delta", "ReasoningDelta", "RefusalDelta", "ResetDelta", "TextDelta", "ToolCallDelta", "deltas_of"]


class TextDelta(Value):
    """More words."""

    type: Annotated[Literal["text"], VERBATIM] = "text"
    text: str


class ReasoningDelta(Value):
    """More thinking, in words."""

    type: Annotated[Literal["reasoning"], VERBATIM] = "reasoning"
    text: str


class RefusalDelta(Value):
    """More of the words in which the model refuses."""

    type: Annotated[Literal["refusal"], VERBATIM] = "refusal"
    text: str


class ToolCallDelta(Value):
    """More of a tool call: its name comes once, its arguments in fragments of JSON text."""

    type: Annotated[Literal["tool_call"], VERBATIM] = "tool_call"
    index: int
    """Which call of the reply this belongs to, from 0."""
    id: Verbatim | None = None
    name: str | None = None
    arguments: str = ""


class ResetDelta(Value):
    """The call starts over: everything said so far is void."""

    type: Annotated[Literal["reset"], VERBATIM] = "reset"
    reason: str
    """What went wrong, for a person to read."""


Delta = Annotated[TextDelta | ReasoningDelta | RefusalDelta | ToolCallDelta | ResetDelta, Field(discriminator="type")]
"""One piece of a reply that is being said."""


def deltas_of(message: Message) -> Iterator[Delta]:
    """Say a message that is there already in deltas, one for each of its blocks that can be watched."""
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
