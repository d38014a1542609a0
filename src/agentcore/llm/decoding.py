"""Replies of both routes before they have a price, and the decoders of streams."""

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
    """The provider's own counts."""
    service_tier: str | None = None
    logprobs: tuple[TokenLogprob, ...] | None = None


class StreamDecoder(Protocol):
    """Reads one stream."""

    def read(self, event: dict[str, Any]) -> Iterator[Delta]:
        """Decode one event and yield its deltas."""
        ...

    def answer(self) -> DecodedReply:
        """Return the whole reply.

        Raises:
            ModelConnectionError: The stream ended too early for there to be one.
        """
        ...


def stream_truncated(model: str) -> ModelConnectionError:
    """Return the error for a stream that ended without its last event."""
    return ModelConnectionError(
        f"{model}: the reply broke off: the stream ended before the model said that it was done.", model=model
    )
