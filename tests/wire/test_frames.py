"""Frames there and back: whatever is in them, however a message is cut into lines."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.conversation import StreamDelta
from agentcore.events import Event, KnownEvent, MessageEvent, UnknownEvent, parse_event
from agentcore.messages import Message
from agentcore.record import ConversationState
from agentcore.wire import (
    AskFrame,
    Bye,
    Cursor,
    DeltaFrame,
    EventFrame,
    Frame,
    Gap,
    Hello,
    Ping,
    Withdraw,
    encode_event,
    encode_frame,
    encode_sse,
    parse_frames,
    problem_of,
)
from strategies import events_of, logs

words = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
seqs = st.integers(1, 10**12)
json_objects = st.dictionaries(words, st.none() | st.booleans() | st.integers() | words | st.lists(words), max_size=3)
deltas = st.builds(
    StreamDelta,
    type=st.sampled_from(["text", "reasoning", "tool_call", "progress", "reset", "gap"]),
    reply_id=st.none() | words,
    attempt=st.integers(1, 9),
    offset=st.integers(0, 10**9),
    text=words,
    tool_name=st.none() | words,
    action_id=st.none() | words,
    lost=st.integers(0, 10**6),
)
events = st.one_of([events_of(cls) for cls in KnownEvent.__args__])
frames: st.SearchStrategy[Frame] = st.one_of(
    st.builds(Hello, conversation=words, birth=st.none() | words, head=seqs, version=words),
    st.builds(EventFrame, seq=seqs, group=seqs, event=events).map(
        lambda frame: frame.model_copy(update={"seq": frame.event.seq})
    ),
    st.builds(DeltaFrame, items=st.lists(deltas, max_size=3).map(tuple)),
    st.builds(Gap, lost=seqs),
    st.builds(
        AskFrame,
        id=words,
        kind=st.sampled_from(["tool", "secret"]),
        name=words,
        action_id=st.none() | words,
        arguments=json_objects,
    ),
    st.builds(Withdraw, id=words),
    st.just(Ping()),
    st.builds(Bye, code=words, problem=st.none() | words.map(lambda text: problem_of(ValueError(text)))),
)


@given(st.lists(frames, max_size=5))
def test_frames_of_a_message_are_read_as_they_were_sent(sent: list[Frame]) -> None:
    message = b"\n".join(map(encode_frame, sent))
    assert parse_frames(message) == sent
    assert parse_frames(message.decode()) == sent


@given(logs())
def test_a_follower_of_the_frames_has_the_state_of_the_log(log: list[list[Event]]) -> None:
    live = ConversationState("c")
    for group in log:
        for event in group:
            live.apply(event.model_copy(update={"seq": live.head + 1}), group_ends=event is group[-1])
    message = b"\n".join(encode_event(event, live.group_of(event.seq)) for event in live.events)
    follower = ConversationState("c")
    for frame in parse_frames(message):
        assert isinstance(frame, EventFrame)
        follower.apply(frame.event, group_ends=frame.seq == frame.group)
    assert follower.snapshot() == live.snapshot()


def test_line_ends_inside_of_strings_do_not_end_a_frame() -> None:
    text = "one\ntwo\r\nthree\u2028four\x85five\x0csix\u2029"
    event = MessageEvent(seq=1, source="user", message=Message.user(text))
    (frame,) = parse_frames(encode_event(event, 1).decode())
    assert frame == EventFrame(seq=1, group=1, event=event)


def test_an_event_of_an_unknown_kind_is_kept_as_it_is() -> None:
    data = {"kind": "from_the_future", "id": "ev_1", "seq": 3, "timestamp": "2030-01-01T00:00:00Z", "more": {"n": [1]}}
    event = parse_event(json.dumps(data))
    (frame,) = parse_frames(encode_event(event, 4))
    assert isinstance(frame, EventFrame)
    assert isinstance(frame.event, UnknownEvent)
    assert frame.event == event


@pytest.mark.parametrize(
    "addition", [{"type": "later", "n": 1}, {"type": "ping", "load": 0.5}, {"type": "gap", "lost": 2, "of": "text"}]
)
def test_what_a_newer_server_adds_is_passed_over(addition: dict[str, Any]) -> None:
    read = parse_frames(json.dumps(addition) + "\n" + '{"type":"withdraw","id":"a"}\n')
    assert read[-1] == Withdraw(id="a")
    assert read[:-1] in ([], [Ping()], [Gap(lost=2)])


def test_a_newer_servers_deltas_are_read_as_far_as_they_are_known() -> None:
    assert parse_frames('{"type":"delta","items":[{"type":"text","text":"a","mood":"?"}]}') == [
        DeltaFrame(items=(StreamDelta(type="text", text="a"),))
    ]


@pytest.mark.parametrize(
    "line",
    [
        "nonsense",
        "[]",
        "{}",
        '{"type":"gap"}',
        '{"type":"gap","lost":1}{"type":"ping"}',
        '{"type":"event","seq":1,"group":1,"event":{"kind":"message","seq":1}}',
        '{"type":7}',
    ],
)
def test_what_is_not_a_frame_is_refused(line: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_frames(line)


def test_the_arguments_of_an_ask_are_not_in_its_repr() -> None:
    frame = AskFrame(id="a", kind="tool", name="deploy", arguments={"token": "hunter2"})
    assert "hunter2" not in repr(frame)


def test_an_sse_message_names_its_type_and_its_place() -> None:
    assert encode_sse("ping", encode_frame(Ping())) == b'event: ping\ndata: {"type":"ping"}\n\n'
    assert encode_sse("gap", b"{}", Cursor(7, "ev_1")) == b"event: gap\nid: ev_1:7\ndata: {}\n\n"


@given(st.none() | words, st.integers(0, 10**12))
def test_a_cursor_is_read_as_it_was_written(birth: str | None, seq: int) -> None:
    cursor = Cursor(seq, birth)
    assert Cursor.parse(str(cursor)) == cursor


@pytest.mark.parametrize("text", ["", ":", "ev_1:", "-1", "ev_1:-1", "1.0", "٣", " 1", "1e3", "9" * 5000])
def test_what_is_not_a_cursor_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="cursor"):
        Cursor.parse(text)


def test_a_cursor_fits_a_log_of_its_birth_up_to_the_head() -> None:
    assert Cursor(0).fits("ev_1", 0)
    assert Cursor(5, "ev_1").fits("ev_1", 5)
    assert not Cursor(6, "ev_1").fits("ev_1", 5)
    assert not Cursor(5, "ev_2").fits("ev_1", 5)
    assert not Cursor(0, "ev_1").fits(None, 0)
