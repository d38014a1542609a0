"""What both routes make of a reply before it has a price, and how they read one that comes in pieces."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

from agentcore.errors import ModelConnectionError
from agentcore.llm.catalog import Surcharges
from agentcore.llm.reply import Delta, TokenLogprob
from agentcore.messages import Message
from agentcore.usage import Usage


@dataclass(frozen=True, slots=True)
class DecodedReply:
    """A reply as it came, not yet priced."""

    message: Message
    usage: Usage
    stop_reason: str
    model: str | None
    provider_id: str | None
    reported_cost: float | None = None
    surcharges: Surcharges = field(default_factory=Surcharges)
    reported_usage: dict[str, Any] | None = None
    """What the provider counted, in its own words."""
    service_tier: str | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None


class StreamDecoder(Protocol):
    """Reads one stream."""

    def read(self, event: dict[str, Any]) -> Iterator[Delta]:
        """Take one event in and show what it says."""
        ...

    def answer(self) -> DecodedReply:
        """Give the whole.

        Raises:
            ModelConnectionError: The stream ended too early for there to be one.
        """
        ...


def stream_truncated(model: str) -> ModelConnectionError:
    """Say that a stream ended without its last word."""
    return ModelConnectionError(
        f"{model}: the reply broke off: the stream ended before the model said that it was done.", model=model
    )
