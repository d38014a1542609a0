"""Events to bodies and back, large strings by way of blobs."""

from __future__ import annotations

import hashlib
import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from agentcore.events import Event, MessageEvent, ObservationEvent, RetryEvent, UnknownEvent
from agentcore.messages import DocumentBlock, ImageBlock, Message, TextBlock
from agentcore.record import BLOB_THRESHOLD, EventLog, MemoryStore, read_log
from agentcore.record.codec import decode, encode, find_blobs
from strategies import events

LARGE = "x" * (BLOB_THRESHOLD + 1)


def observation(text: str = "", **data: Any) -> ObservationEvent:
    return ObservationEvent(tool_name="t", call_id="c", content=(TextBlock(text=text),), data=data)


class Blobs(dict[str, str]):
    """Blobs as a log keeps them, by digest."""

    async def write(self, data: bytes) -> str:
        digest = hashlib.sha256(data).hexdigest()
        self[digest] = data.decode()
        return digest


def run(event: Event, blobs: Blobs) -> tuple[Event, bytes]:
    """Encode; nothing here waits, so no event loop is needed."""
    steps = encode(event, blobs.write)
    try:
        steps.send(None)
    except StopIteration as end:
        result: tuple[Event, bytes] = end.value
        return result
    raise AssertionError("it waited")


@given(events)
def test_an_event_is_read_back_as_it_was(event: Event) -> None:
    blobs = Blobs()
    kept, body = run(event, blobs)
    assert kept == event
    assert set(find_blobs(body)) == set(blobs)
    assert decode(body, blobs) == event
    assert body.startswith(b'{"seq":0,')
    assert b"\n" not in body


@pytest.mark.parametrize(
    "block", [ImageBlock(data=LARGE, media_type="image/png"), DocumentBlock(data=LARGE, name="plan.pdf")]
)
def test_large_pictures_and_documents_are_blobs_once_each(block: ImageBlock | DocumentBlock) -> None:
    event = MessageEvent(source="user", message=Message.user("See:", block, "and again:", block))
    blobs = Blobs()
    _, body = run(event, blobs)
    assert list(blobs.values()) == [LARGE]
    assert len(body) < 1_000
    assert decode(body, blobs) == event


@given(st.sampled_from(["", "x", "é", "\u2028", "🐢"]), st.integers(-2, 2))
def test_a_string_is_a_blob_from_the_first_byte_over_the_threshold(letter: str, over: int) -> None:
    size = len(letter.encode()) or 1
    text = (letter or "y") * ((BLOB_THRESHOLD + over) // size)
    event = observation(text, again=text)
    blobs = Blobs()
    _, body = run(event, blobs)
    assert list(blobs.values()) == ([text] if len(text.encode()) > BLOB_THRESHOLD else [])
    assert decode(body, blobs) == event


def test_a_large_string_leaves_its_digest_in_the_line() -> None:
    blobs = Blobs()
    event = observation("small", nested=[{"deep": LARGE}])
    kept, body = run(event, blobs)
    digest = hashlib.sha256(LARGE.encode()).hexdigest()
    assert json.loads(body)["data"]["nested"][0]["deep"] == f"blob:sha256:{digest}"
    assert json.loads(body)["content"][0]["text"] == "small"
    assert kept is event
    assert decode(body, blobs) == event


def test_many_strings_below_the_threshold_stay_in_the_line() -> None:
    blobs = Blobs()
    event = observation("", **{f"part{n}": "x" * 40_000 for n in range(5)})
    assert decode(run(event, blobs)[1], blobs) == event
    assert blobs == {}


@pytest.mark.parametrize("text", ["blob:sha256:", "blob:sha256:" + "0" * 64, "blob:sha256:../../etc/passwd"])
def test_a_string_that_looks_like_a_blob_is_read_back_as_it_was(text: str) -> None:
    blobs = Blobs()
    event = observation(text, key={text: "a name of that look is no value"})
    _, body = run(event, blobs)
    assert list(blobs.values()) == [text]
    assert decode(body, blobs) == event


def test_what_json_can_not_say_is_changed_before_it_is_true() -> None:
    blobs = Blobs()
    odd = observation("half \ud83d of a pair", a=math.nan, b=[math.inf, {"c": -math.inf}], fine="NaN and \ufffd")
    kept, body = run(odd, blobs)
    assert isinstance(kept, ObservationEvent)
    assert kept.text == "half \N{REPLACEMENT CHARACTER} of a pair"
    assert kept.data == {"a": None, "b": [None, {"c": None}], "fine": "NaN and \ufffd"}
    assert (kept.id, kept.timestamp) == (odd.id, odd.timestamp)
    assert decode(body, blobs) == kept


@pytest.mark.parametrize(
    ("odd", "as_kept"),
    [
        (observation("\ud83d\udc22"), {"content": [{"type": "text", "text": "🐢"}]}),
        (observation("", **{"a\udc80": 1}), {"content": [{"type": "text", "text": ""}]}),
        (UnknownEvent.model_validate({"kind": "dream", "depth": math.inf}), {"depth": None}),
    ],
    ids=["two halves of a pair", "a name", "an unknown event"],
)
def test_an_odd_event_is_kept_as_json_can_say_it(odd: Event, as_kept: dict[str, Any]) -> None:
    kept, body = run(odd, Blobs())
    assert decode(body, {}) == kept
    assert {name: json.loads(body)[name] for name in as_kept} == as_kept


def test_a_time_that_is_no_number_is_refused_where_the_event_is_made() -> None:
    with pytest.raises(ValidationError):
        RetryEvent(attempt=1, error="x", delay=math.inf)


async def test_what_is_folded_is_what_is_read_back() -> None:
    store = MemoryStore()
    log = await EventLog.create(store, "odd")
    batch = [observation("\ud800", x=math.nan), MessageEvent(message=Message.user(LARGE, "blob:sha256:x"))]
    kept = await log.append([batch])
    assert log.state.events == kept[0]
    await log.close()
    assert (await read_log(store, "odd")).snapshot() == log.state.snapshot()
