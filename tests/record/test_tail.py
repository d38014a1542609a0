"""Reading a log on, beside its writer: every event once, and nothing that was read is read again."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import pytest

from agentcore.errors import ConversationNotFound, LogDamaged
from agentcore.events import MessageEvent
from agentcore.record import EventLog, FileStore, LogReader, MemoryStore, Store
from agentcore.testing import DiskOperation, DiskWrapper
from logged import LARGE, said

T = TypeVar("T")


async def texts(reader: LogReader) -> list[str]:
    return [event.text for event in await reader.read() if isinstance(event, MessageEvent)]


class Weighing:
    """A disk that weighs what is read of the events."""

    def __init__(self) -> None:
        self.read = 0
        self.disk = DiskWrapper(None, self._perform)

    def _perform(self, operation: DiskOperation, act: Callable[[], T], /) -> T:
        done = act()
        if operation.name == "read" and operation.path.endswith("events.jsonl"):
            assert isinstance(done, bytes)
            self.read += len(done)
        return done


@pytest.mark.parametrize("kind", ["files", "memory"])
async def test_each_event_is_given_once_and_the_state_goes_along(tmp_path: Path, kind: str) -> None:
    store: Store = FileStore(tmp_path) if kind == "files" else MemoryStore()
    log = await EventLog.create(store, "a")
    reader = await LogReader.open(store, "a")
    assert await texts(reader) == []
    await log.append([[said("one"), said("two")], [said("three")]])
    assert await texts(reader) == ["one", "two", "three"]
    assert await texts(reader) == []
    await log.append([[said(LARGE)], [said("four")]])
    assert await texts(reader) == [LARGE, "four"]
    assert reader.state.snapshot() == log.state.snapshot()
    await log.close()


async def test_what_was_read_is_not_read_again(tmp_path: Path) -> None:
    log = await EventLog.create(FileStore(tmp_path), "a")
    await log.append([[said(f"{number:0100}")] for number in range(500)])
    weighing = Weighing()
    reader = await LogReader.open(FileStore(tmp_path, disk=weighing.disk), "a")
    await reader.read()
    size = (tmp_path / "a" / "events.jsonl").stat().st_size
    assert weighing.read == size
    for number in range(20):
        await log.append([[said(str(number))]])
        assert await texts(reader) == [str(number)]
    # And the newline before each, by which it is known for the same log.
    assert weighing.read == (tmp_path / "a" / "events.jsonl").stat().st_size + 20
    await log.close()


async def test_half_a_line_and_half_a_group_are_given_when_they_are_whole(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    log = await EventLog.create(store, "a")
    await log.append([[said("one")], [said("two"), said("three")]])
    await log.close()
    path = tmp_path / "a" / "events.jsonl"
    whole = path.read_bytes()
    first = whole.index(b"\n") + 1
    second = whole.index(b"\n", first) + 1
    reader: LogReader | None = None
    for end, expected in (
        (first, ["one"]),
        (first + 20, []),
        (second, []),
        (second + 30, []),
        (None, ["two", "three"]),
    ):
        path.write_bytes(whole[:end])
        reader = reader or await LogReader.open(store, "a")
        assert await texts(reader) == expected


async def test_a_log_that_was_cut_back_is_followed_from_its_new_end(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    log = await EventLog.create(store, "a")
    await log.append([[said("one")], [said("two, which is longer than what comes in its place")]])
    await log.close()
    reader = await LogReader.open(store, "a")
    assert len(await texts(reader)) == 2
    path = tmp_path / "a" / "events.jsonl"
    path.write_bytes(path.read_bytes()[: path.read_bytes().index(b"\n") + 1])
    assert await texts(reader) == []
    log = await EventLog.open(store, "a")
    await log.append([[said("another two")]])
    assert await texts(reader) == ["another two"]
    assert reader.state.snapshot() == log.state.snapshot()
    await log.close()


async def test_damage_and_a_log_that_is_not_there_are_told(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    with pytest.raises(ConversationNotFound):
        await LogReader.open(store, "a")
    log = await EventLog.create(store, "a")
    reader = await LogReader.open(store, "a")
    await log.append([[said("one")]])
    await reader.read()
    await log.append([[said("two")], [said("three")]])
    await log.close()
    path = tmp_path / "a" / "events.jsonl"
    path.write_bytes(path.read_bytes().replace(b'"two"', b'"TWO"'))
    with pytest.raises(LogDamaged) as damage:
        await reader.read()
    assert damage.value.line == 2
