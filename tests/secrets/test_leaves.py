from __future__ import annotations

from datetime import datetime
from decimal import Decimal
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, JsonValue

from agentcore._value import VERBATIM, Value, Verbatim
from agentcore.assessment import SecurityRisk
from agentcore.display import (
    CommandBlock,
    ConversationBlock,
    DiffBlock,
    DisplayImage,
    DisplayTask,
    ExcerptBlock,
    MarkdownBlock,
    ProgressBlock,
    TableBlock,
    TasksBlock,
    UnknownDisplay,
)
from agentcore.events import (
    ActionEvent,
    AgentErrorEvent,
    KnownEvent,
    MessageEvent,
    ObservationEvent,
    StatusChanged,
    UsageEvent,
    UserRejectObservation,
    WrittenCall,
)
from agentcore.messages import (
    DocumentBlock,
    ImageBlock,
    ProviderBlock,
    ReasoningBlock,
    RedactedThinkingBlock,
    ThinkingBlock,
)
from agentcore.secrets.leaves import LeafMap, text_fields

EVENTS: tuple[type[BaseModel], ...] = KnownEvent.__args__


class Everything(Value):
    marked: Verbatim
    marked_or_none: Verbatim | None
    marked_items: tuple[Verbatim, ...]
    marked_json: Annotated[JsonValue, VERBATIM]
    choice: Literal["a", "b"]
    level: SecurityRisk
    numbers: tuple[int, float, bool, Decimal]
    when: datetime | None
    text: str
    text_or_none: str | None
    items: tuple[str, ...]
    partly_marked: dict[Verbatim, str]
    anything: Any
    json_value: JsonValue
    model: ImageBlock


def test_only_fields_that_may_hold_unmarked_text_are_read() -> None:
    assert text_fields(Everything) == (
        "text",
        "text_or_none",
        "items",
        "partly_marked",
        "anything",
        "json_value",
        "model",
    )


@pytest.mark.parametrize(
    ("cls", "fields"),
    [
        (ActionEvent, {"tool_name", "arguments", "malformed", "written", "ignored", "before", "after", "display"}),
        (WrittenCall, {"name", "arguments"}),
        (MessageEvent, {"message", "by", "prefix", "suffix"}),
        (ObservationEvent, {"tool_name", "content", "data", "display"}),
        (UserRejectObservation, {"tool_name", "reason", "by"}),
        (AgentErrorEvent, {"tool_name", "error"}),
        (StatusChanged, {"detail"}),
        (UsageEvent, {"usage", "stop_reason"}),
        (ImageBlock, {"url"}),
        (DocumentBlock, {"url", "name"}),
        (ThinkingBlock, {"text"}),
        (RedactedThinkingBlock, set[str]()),
        (ReasoningBlock, {"summary"}),
        (ProviderBlock, set[str]()),
        (MarkdownBlock, {"text"}),
        (CommandBlock, {"command", "output", "text"}),
        (DiffBlock, {"path", "diff", "text"}),
        (ExcerptBlock, {"path", "text"}),
        (TableBlock, {"columns", "rows", "text"}),
        (TasksBlock, {"tasks", "text"}),
        (DisplayTask, {"title", "status", "notes"}),
        (DisplayImage, {"text"}),
        (ProgressBlock, {"label", "text"}),
        (ConversationBlock, {"title", "text"}),
        (UnknownDisplay, {"text"}),
    ],
)
def test_the_text_of_events_and_blocks_is_known(cls: type[BaseModel], fields: set[str]) -> None:
    assert set(text_fields(cls)) == fields


@pytest.mark.parametrize("cls", EVENTS)
def test_no_event_has_its_ids_or_kind_read(cls: type[BaseModel]) -> None:
    assert not {"id", "seq", "timestamp", "source", "cause", "kind"} & set(text_fields(cls))


def test_enumerations_and_numbers_are_no_text() -> None:
    shout = LeafMap(str.upper)
    value = [SecurityRisk.LOW, 1, 2.5, True, None, Decimal(1)]
    assert shout(value) is value


def test_containers_keep_their_kind() -> None:
    assert LeafMap(str.upper)({"a": ("b", ["c"], {"d"}, frozenset({"e"}))}) == {
        "A": ("B", ["C"], {"D"}, frozenset({"E"}))
    }
