from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentcore.errors import ModelUnavailable
from agentcore.llm.native import model as sse
from agentcore.llm.native.model import EventParser

WORDS = st.text(st.characters(exclude_characters="\r\n\x00", exclude_categories=["Cs"]), max_size=12)
FIELDS = st.one_of(
    st.tuples(st.just("data"), WORDS), st.tuples(st.sampled_from(["event", "id", "retry", "", "dat", "datas"]), WORDS)
)
EVENTS = st.lists(st.lists(FIELDS, min_size=1, max_size=4), max_size=6)
LINE_ENDS = st.sampled_from(["\n", "\r\n", "\r"])


def parsed(*chunks: bytes) -> list[bytes]:
    parser = EventParser()
    events = [event for chunk in chunks for event in parser.feed(chunk)]
    return [*events, *parser.finish()]


@given(EVENTS, LINE_ENDS, st.booleans(), st.lists(st.integers(0, 400)))
def test_any_events_with_any_line_ends_cut_anywhere_give_their_data(
    events: list[list[tuple[str, str]]], end: str, space: bool, cuts: list[int]
) -> None:
    colon = ": " if space else ":"
    # Without a space after the colon, one at the beginning of the words is taken for it.
    told = [[(name, words.lstrip(" ") if not space else words) for name, words in event] for event in events]
    text = "".join("".join(f"{name}{colon}{words}{end}" for name, words in event) + end for event in told).encode()
    at = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    expected = [
        "\n".join(words for name, words in event if name == "data").encode()
        for event in told
        if any(name == "data" for name, _ in event)
    ]
    assert parsed(*(text[begin:finish] for begin, finish in pairwise(at))) == expected
    assert parsed(*(text[index : index + 1] for index in range(len(text)))) == expected


@pytest.mark.parametrize(
    ("text", "events"),
    [
        (b"", []),
        (b"data", []),
        (b"data\n\n", [b""]),
        (b"data:\ndata:\n\n", [b"\n"]),
        (b": a comment\n\ndata: x\n\n", [b"x"]),
        (b"data: x", [b"x"]),
        (b"data: x\r", [b"x"]),
        (b"data: x\r\n\r\ndata: y\r\r", [b"x", b"y"]),
        (b"event: ping\n\n", []),
    ],
)
def test_what_the_specification_says_of_odd_lines(text: bytes, events: list[bytes]) -> None:
    # But for the event that the stream ends in: the specification drops it, and some servers leave its blank line out.
    assert [event for event in parsed(text) if event or b"\n\n" in text] == events


def test_an_event_without_an_end_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sse, "LONGEST_EVENT", 1000)
    parser = EventParser()
    with pytest.raises(ModelUnavailable, match="an event of more than 1,000 bytes"):
        for _ in range(30):
            list(parser.feed(b"data: " + b"x" * 50 + b"\n"))
    with pytest.raises(ModelUnavailable):
        list(EventParser().feed(b"x" * 1001))
