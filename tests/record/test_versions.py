"""Logs of other versions: what a newer one wrote is kept, what must not be continued is not, what is old is upgraded."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agentcore.errors import LogReadOnly, StoreError
from agentcore.events import ConversationStateUpdateEvent, Event, MessageEvent, UnknownEvent, UnknownFact, parse_event
from agentcore.messages import Message, UnknownBlock
from agentcore.record import FORMAT_VERSION, EventLog, FileStore, MemoryStore, Record, Store, read_log, upgrade

STAMP = {"id": "ev_1", "timestamp": "2026-01-01T00:00:00Z", "source": "user", "cause": None}

NEWER: list[dict[str, Any]] = [
    {"kind": "dream", "about": {"sheep": [1, 2.5, None, "żółw"]}, "group": 8, "crc": "00000000"},
    {"kind": "message", "message": {"role": "user", "content": [{"type": "video", "data": "aGk="}], "mood": "good"}},
    {"kind": "conversation_state_update", "update": {"fact": "weather", "rain": True}},
    {"kind": "pause", "because": {"of": "tea"}},
    {"kind": "dream", "large": "x" * 70_000, "looks like": "blob:sha256:0"},
]


def body(seq: int, said: dict[str, Any]) -> bytes:
    return json.dumps({"seq": seq, **STAMP, "id": f"ev_{seq}", **said}, separators=(",", ":")).encode()


async def write(store: Store, *said: dict[str, Any], format_version: int = FORMAT_VERSION) -> None:
    log = await store.create("a", format_version=format_version)
    await log.append([Record(seq, seq, body(seq, each)) for seq, each in enumerate(said, 1)])
    await log.close()


@pytest.fixture(params=["memory", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return MemoryStore() if request.param == "memory" else FileStore(tmp_path)


async def test_what_a_newer_version_wrote_goes_into_another_log_and_back_unchanged(store: Store) -> None:
    source = MemoryStore()
    # A large string and one that looks like a blob are written as a newer version would: by way of blobs.
    copied = await EventLog.create(source, "a")
    await copied.append([[parse_event(json.dumps({"seq": seq, **STAMP, **each})) for seq, each in enumerate(NEWER, 1)]])
    await copied.close()
    read = (await read_log(source, "a")).events
    log = await EventLog.create(store, "b")
    await log.append([list(read)])
    await log.append([[MessageEvent(message=Message.user("after"))]])
    await log.close()
    again = await EventLog.open(store, "b")
    assert list(again.state.events[: len(NEWER)]) == list(read)
    for event, said in zip(again.state.events, NEWER, strict=False):
        kept = json.loads(event.model_dump_json())
        assert {name: kept[name] for name in said} == said
    await again.close()


async def test_what_is_unknown_is_there_to_be_seen_and_changes_nothing(store: Store) -> None:
    await write(store, *NEWER[:4])
    log = await EventLog.open(store, "a")
    dream, message, update, _ = log.state.events
    assert isinstance(dream, UnknownEvent)
    assert (dream.kind, dream.model_extra) == ("dream", {name: NEWER[0][name] for name in ("about", "group", "crc")})
    assert isinstance(message, MessageEvent)
    assert isinstance(message.message.content[0], UnknownBlock)
    assert isinstance(update, ConversationStateUpdateEvent)
    assert isinstance(update.update, UnknownFact)
    assert log.state.read_only is None
    assert [event.seq for event in log.state.shown] == [2]
    await log.append([[MessageEvent(message=Message.user("after"))]])
    await log.close()


async def test_a_critical_event_of_an_unknown_kind_makes_a_log_read_only(store: Store) -> None:
    await write(store, {"kind": "pause"}, {"kind": "format_changed", "critical": True}, {"kind": "pause"})
    with pytest.raises(LogReadOnly, match="an event of kind 'format_changed', which this version does not know"):
        await EventLog.open(store, "a")
    state = await read_log(store, "a")
    assert state.head == 3
    assert state.read_only is not None
    # And nothing is held.
    await (await store.open("a")).close()


async def test_shapes_that_changed_after_a_critical_event_are_not_called_damage(store: Store) -> None:
    await write(store, {"kind": "format_changed", "critical": True}, {"kind": "message", "words": "new shape"})
    for read in (EventLog.open(store, "a"), read_log(store, "a")):
        with pytest.raises(StoreError, match=r"can't be read beyond event 1: .*format_changed") as raised:
            await read
        assert "repair" not in str(raised.value)


async def test_a_log_in_a_newer_format_is_read_as_far_as_its_shapes_are_known(store: Store) -> None:
    await write(store, {"kind": "pause"}, {"kind": "dream"}, format_version=FORMAT_VERSION + 1)
    state = await read_log(store, "a")
    assert (state.head, state.read_only is None) == (2, False)
    with pytest.raises(LogReadOnly, match=f"in format {FORMAT_VERSION + 1}"):
        await EventLog.open(store, "a")
    await store.delete("a")
    await write(store, {"kind": "pause"}, {"kind": "message"}, format_version=FORMAT_VERSION + 1)
    with pytest.raises(StoreError, match="can't be read beyond event 1: it is in format 2"):
        await read_log(store, "a")


def from_0(event: dict[str, Any]) -> dict[str, Any]:
    """Version 0 said "note" for a message of bare words."""
    if event["kind"] != "note":
        return event
    words = {key: value for key, value in event.items() if key not in {"kind", "words"}}
    content = [{"type": "text", "text": event["words"]}]
    return {**words, "kind": "message", "message": {"role": "user", "content": content}}


def from_minus_1(event: dict[str, Any]) -> dict[str, Any]:
    """The version before called the kind a type."""
    return {("kind" if key == "type" else key): value for key, value in event.items()}


def upgraded(old: dict[str, Any], version: int) -> Event:
    steps = {-1: from_minus_1, 0: from_0}
    return parse_event(upgrade(json.dumps({"seq": 4, **STAMP, **old}).encode(), version, current=1, upgrades=steps))


def test_an_old_event_takes_every_step_to_the_current_version() -> None:
    event = upgraded({"type": "note", "words": "żółw", "x_unknown": [1.5]}, -1)
    assert isinstance(event, MessageEvent)
    assert (event.seq, event.text, event.model_extra) == (4, "żółw", {"x_unknown": [1.5]})
    assert upgraded({"kind": "note", "words": "żółw", "x_unknown": [1.5]}, 0) == event


def test_an_event_of_the_current_or_a_newer_version_is_not_touched() -> None:
    odd = b'{"seq":1,  "kind":"pause"}'
    for version in (FORMAT_VERSION, FORMAT_VERSION + 1):
        assert upgrade(odd, version) is odd


def test_an_upgraded_event_begins_with_its_seq_on_one_line() -> None:
    old = b'{"seq":12,"type":"note","words":"a\\nb"}'
    new = upgrade(old, -1, current=1, upgrades={-1: from_minus_1, 0: from_0})
    assert new.startswith(b'{"seq":12,')
    assert b"\n" not in new
