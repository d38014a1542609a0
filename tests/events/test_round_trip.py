"""Events keep their meaning through JSON, those of a newer version too."""

from __future__ import annotations

import json
from typing import Any, cast, get_args

import pytest
from hypothesis import given
from pydantic import ValidationError

import agentcore
import agentcore.events
from agentcore.events import KNOWN_KINDS, ActionEvent, Event, KnownEvent, UnknownEvent, parse_event
from agentcore.messages import Message, TextBlock, ThinkingBlock
from strategies import blocks, events


@given(events)
def test_an_event_is_the_same_when_it_is_read_back_and_written_again_to_the_byte(event: Event) -> None:
    written = event.model_dump_json()
    again = parse_event(written)
    assert again == event
    assert again.model_dump_json() == written


def test_the_thought_of_an_action_is_the_words_before_it() -> None:
    before = (ThinkingBlock(text="hm"), TextBlock(text="First."), TextBlock(text="Then."))
    action = ActionEvent(reply_id="r", tool_name="t", call_id="c", arguments={}, before=before)
    assert action.thought == "First.\nThen."


@given(blocks)
def test_a_block_keeps_its_meaning_in_a_message(block: Any) -> None:
    message = Message(role="user", content=(block,))
    assert Message.model_validate_json(message.model_dump_json()) == message


@pytest.mark.parametrize("kind", sorted(KNOWN_KINDS))
def test_a_damaged_event_of_a_known_kind_is_no_unknown_event(kind: str) -> None:
    with pytest.raises(ValidationError):
        parse_event(json.dumps({"seq": "not a number", "kind": kind}))
    with pytest.raises(ValidationError, match="wrong fields"):
        UnknownEvent(kind=kind)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "nothing",
        "[1]",
        "{}",
        '{"kind":5}',
        '{"kind":null}',
        '{"kind":"message"}',
        '{"kind":"new","seq":1.5}',
        '{"kind":"pause","timestamp":"2026-01-01T00:00:00"}',
        '{"kind":"retry","attempt":1,"error":"x","delay":null}',
        '{"kind":"conversation_state_update","update":{"fact":"title"}}',
        '{"kind":"message","message":{"role":"user","content":[{"type":"text"}]}}',
        '{"kind":"observation","tool_name":"t","call_id":"c","content":[{"type":"thinking","text":"x"}]}',
    ],
)
def test_what_is_no_event_is_refused(text: str) -> None:
    with pytest.raises(ValidationError):
        parse_event(text)


NEWER: dict[str, dict[str, Any]] = {
    "a kind": {"kind": "dream", "about": ["sheep", {"count": 12345678901234567890}], "vivid": True},
    "a critical kind": {"kind": "format_changed", "critical": True, "to": 2},
    "fields of an event": {"kind": "pause", "because": {"tea": 0.1}, "nothing": None},
    "fields of a value in an event": {
        "kind": "usage",
        "model": "m",
        "usage": {"requests": 1, "audio_tokens": 7},
        "purpose": "step",
    },
    "a block": {
        "kind": "message",
        "message": {"role": "user", "content": [{"type": "video", "data": "aGk=", "rate": 16000}], "channel": "phone"},
    },
    "a field of a block": {
        "kind": "message",
        "message": {"role": "user", "content": [{"type": "text", "text": "hi", "language": "en"}]},
    },
    "a block of a result": {
        "kind": "observation",
        "tool_name": "t",
        "call_id": "c",
        "content": [{"type": "video", "data": "aGk="}],
    },
    "a fact": {"kind": "conversation_state_update", "update": {"fact": "mood", "mood": "good", "n": [1, 2.5]}},
    "a field of a fact": {"kind": "conversation_state_update", "update": {"fact": "title", "title": "T", "by": "me"}},
    "a field of a tool's schema": {
        "kind": "system_prompt",
        "prompt": "p",
        "tools": [{"name": "t", "description": "d", "parameters": {}, "strict": True}],
    },
    "a field that is called like one of the line's own": {"kind": "pause", "group": 5, "crc": "00000000"},
}


@pytest.mark.parametrize("said", NEWER.values(), ids=NEWER.keys())
def test_what_a_newer_version_wrote_is_kept(said: dict[str, Any]) -> None:
    stored = {"seq": 3, "id": "ev_1", "timestamp": "2026-01-01T00:00:00Z", "source": "user", "cause": None, **said}
    kept = json.loads(parse_event(json.dumps(stored)).model_dump_json())
    assert _within(stored, kept)


def _within(part: Any, whole: Any) -> bool:
    """Say whether all of one JSON value is in another, which may have more members (defaults)."""
    if type(part) is not type(whole):
        return False
    if isinstance(part, dict):
        members = cast("dict[str, Any]", part)
        return all(name in whole and _within(value, whole[name]) for name, value in members.items())
    if isinstance(part, list):
        items = cast("list[Any]", part)
        return len(items) == len(whole) and all(map(_within, items, whole))
    return bool(part == whole)


def test_every_event_is_public_under_both_of_its_addresses() -> None:
    classes = get_args(KnownEvent)
    assert [cls for cls in classes if getattr(agentcore.events, cls.__name__, None) is not cls] == []
    assert [cls for cls in classes if getattr(agentcore, cls.__name__, None) is not cls] == []


def test_a_kind_is_said_by_one_event_and_by_no_unknown_one() -> None:
    kinds = [cls.model_fields["kind"].default for cls in get_args(KnownEvent)]
    assert sorted(kinds) == sorted(KNOWN_KINDS)
    assert UnknownEvent not in get_args(KnownEvent)
