"""The written-out union of all events, and how one is read from JSON."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, cast

from pydantic import Field, TypeAdapter, ValidationError, field_validator

from agentcore._value import Verbatim
from agentcore.events.base import EventBase
from agentcore.events.bookkeeping import BookkeepingEvent
from agentcore.events.checkpoints import CheckpointEvent
from agentcore.events.facts import ConversationStateUpdateEvent
from agentcore.events.shown import AnswerEvent, ContentEvent

__all__ = ["KNOWN_KINDS", "Event", "KnownEvent", "UnknownEvent", "parse_event"]

KnownEvent = ContentEvent | AnswerEvent | BookkeepingEvent | CheckpointEvent | ConversationStateUpdateEvent
"""Any event that this version knows. Each file writes out its own kinds, beside their classes."""

_CLASSES: tuple[type[EventBase], ...] = KnownEvent.__args__

KNOWN_KINDS = frozenset(cast("str", cls.model_fields["kind"].default) for cls in _CLASSES)


class UnknownEvent(EventBase):
    """An event that only a newer version knows: kept as it is, shown as opaque, never sent to a model."""

    kind: Verbatim
    critical: bool = False
    """The log must not be continued by a version that does not know this kind."""

    @field_validator("kind")
    @classmethod
    def _not_a_known_kind(cls, value: str) -> str:
        if value in KNOWN_KINDS:
            # Without this, a damaged event of a known kind would pass for an unknown one.
            raise ValueError(f"an event of kind {value!r} with wrong fields")
        return value


Event = KnownEvent | UnknownEvent
"""Any event."""


@cache
def _read() -> Callable[[bytes | str], KnownEvent]:
    # Built when the first event is read, so that importing agentcore stays cheap. The adapter's own method, which looks
    # through ten options first, would add a tenth to what reading an event costs.
    return TypeAdapter[KnownEvent](Annotated[KnownEvent, Field(discriminator="kind")]).validator.validate_json


def parse_event(data: bytes | str) -> Event:
    """Read one event from its JSON text.

    Raises:
        pydantic.ValidationError: it is not JSON, or not an event; an unknown kind is not an error.
    """
    try:
        return _read()(data)
    except ValidationError as error:
        details: list[Any] = error.errors(include_url=False, include_context=False, include_input=False)
        if details and details[0]["type"] == "union_tag_invalid" and not details[0]["loc"]:
            return UnknownEvent.model_validate_json(data)
        raise
