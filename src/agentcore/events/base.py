"""The base of all events."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

from datetime import UTC, datetime
from typing import Literal

from pydantic import AwareDatetime, Field

from agentcore._value import Recorded, Verbatim
from agentcore.ids import new_id

__all__ = ["CommandedEvent", "EventBase", "Source"]

Source = Literal["user", "agent", "environment"]


def _now() -> datetime:
    return datetime.now(UTC)


def _event_id() -> str:
    return new_id("ev")


class EventBase(Recorded):
    """Something that happened in a conversation. Events never change."""

    seq: int = 0
    """The line of its log, from 1. Zero until the event is kept."""
    id: Verbatim = Field(default_factory=_event_id)
    """Unique everywhere; it survives a fork."""
    timestamp: AwareDatetime = Field(default_factory=_now)
    """When it happened, in UTC."""
    source: Source = "environment"
    cause: Verbatim | None = None
    """The id of the event that caused this one: for an answer, its action."""


class CommandedEvent(EventBase):
    """An event that a command may have written."""

    command: Verbatim | None = None
    """The id of the command that wrote it."""
    by: str | None = None
    """The sender of the command, where that is known."""
