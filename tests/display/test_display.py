"""The blocks as values: what is recorded of them, what a version that does not know them does, and their plain form."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from agentcore.display import (
    CommandBlock,
    ConversationBlock,
    DiffBlock,
    DisplayBlock,
    DisplayImage,
    DisplayTask,
    ExcerptBlock,
    MarkdownBlock,
    ProgressBlock,
    TableBlock,
    TasksBlock,
    UnknownDisplay,
    code_span,
    plain_text,
    split_code_spans,
)
from agentcore.events import ObservationEvent, parse_event
from strategies import display_blocks

ADAPTER: TypeAdapter[DisplayBlock] = TypeAdapter(DisplayBlock)


@given(display_blocks)
def test_every_block_is_read_back_as_it_was(block: DisplayBlock) -> None:
    assert ADAPTER.validate_json(ADAPTER.dump_json(block)) == block


def test_a_block_of_a_newer_version_is_kept_as_it_is() -> None:
    stored = {"kind": "map", "text": "Ulm", "zoom": 3}
    block = ADAPTER.validate_python(stored)
    assert isinstance(block, UnknownDisplay)
    assert (plain_text(block), block.model_dump()) == ("Ulm", stored)
    newer = ADAPTER.validate_python({"kind": "diff", "diff": "+x", "language": "python"})
    assert newer.model_dump()["language"] == "python"
    with pytest.raises(ValidationError):
        MarkdownBlock(text="").text = "something"


def test_a_damaged_block_of_a_known_kind_does_not_pass_for_an_unknown_one() -> None:
    with pytest.raises(ValidationError, match="'command' with wrong fields"):
        ADAPTER.validate_python({"kind": "command", "command": 3})


def test_events_without_a_display_are_those_of_before() -> None:
    event = parse_event('{"kind": "observation", "seq": 1, "tool_name": "t", "call_id": "c", "content": []}')
    assert isinstance(event, ObservationEvent)
    assert event.display == ()


@pytest.mark.parametrize(
    ("block", "text"),
    [
        (MarkdownBlock(text="**so**"), "**so**"),
        (CommandBlock(command="ls", exit_code=1, output="x"), "$ ls\nx\nexit code 1"),
        (CommandBlock(command="ls"), "$ ls"),
        (DiffBlock(path="a", diff="+x"), "a\n+x"),
        (ExcerptBlock(path="a", text="x"), "x"),
        (TableBlock(columns=("a", "b"), rows=(("1", "2"),)), "a  b\n1  2"),
        (TasksBlock(tasks=(DisplayTask(title="Do", status="done", notes="so"),)), "[x] Do\n    so"),
        (DisplayImage(blob="sha256:1", media_type="image/png"), "[a picture: image/png]"),
        (ProgressBlock(label="half", done=0.5), "half (50%)"),
        (ProgressBlock(label="some"), "some"),
        (ConversationBlock(conversation_id="7"), "a conversation (7)"),
        (UnknownDisplay(kind="map"), ""),
        (TableBlock(rows=(), text="nothing was found"), "nothing was found"),
    ],
)
def test_every_block_has_a_plain_form(block: DisplayBlock, text: str) -> None:
    assert plain_text(block) == text


@given(st.text(st.sampled_from("a `*_\n"), min_size=1, max_size=20).filter(str.strip), st.sampled_from(["", "in "]))
def test_a_code_span_holds_any_text(text: str, before: str) -> None:
    pieces: list[Any] = list(split_code_spans(f"{before}{code_span(text)}"))
    assert pieces == [*([(before, False)] if before else []), (text, True)]
    assert list(split_code_spans("a `b")) == [("a `b", False)]
    assert list(split_code_spans("")) == []
