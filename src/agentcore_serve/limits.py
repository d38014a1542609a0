"""The bounds of what a sender may ask, and how much of it."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, NonNegativeInt, PositiveFloat, PositiveInt


class RequestLimits(BaseModel):
    """Bounds of requests. What is larger or more is refused."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    wrong_keys_per_minute: PositiveInt = 10
    """From one address."""
    requests_per_minute: PositiveInt = 600
    """Of one key."""
    streams: NonNegativeInt = 2_000
    """Open at once: event streams and WebSockets, of all keys."""
    header_bytes: PositiveInt = 16_384
    """Of all headers, and of the path with its query."""
    json_bytes: PositiveInt = 2_000_000
    message_bytes: PositiveInt = 25_000_000
    """Of bodies that may hold images."""
    file_bytes: PositiveInt = 1_000_000_000
    json_depth: PositiveInt = 64
    """Objects and arrays inside of each other."""
    body_stall_seconds: PositiveFloat = 30.0
    """Without another kilobyte of the body."""
    recheck_seconds: PositiveFloat = 15.0
    """After which an open stream's key is looked at again: one that was revoked ends it."""
