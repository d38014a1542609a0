"""Nothing is acknowledged before it would survive, and a crash at any moment loses nothing that was acknowledged."""

from __future__ import annotations

import itertools
import os
from collections.abc import Sequence
from pathlib import Path
from random import Random

import anyio
import pytest

from agentcore.errors import ConversationNotFound, StoreError
from agentcore.events import Event, PauseEvent
from agentcore.record import EventLog, FileStore, Record, read_log
from agentcore.record.files.line import encode_line
from agentcore.testing import (
    Crash,
    CrashingDisk,
    DiskOperation,
    DiskOperationName,
    FaultyDisk,
    RecordingDisk,
    Survival,
    crash_everywhere,
)
from logged import LARGE, said


def tell(operations: Sequence[DiskOperation], below: Path) -> list[str]:
    """Say operations in few words, blobs without their names."""
    told: list[str] = []
    for each in operations:
        path = os.path.relpath(each.path, below)
        folder, name = os.path.split(path)
        told.append(f"{each.name} {os.path.join(folder, '…') if len(name) > 50 else path}")
    return told


async def test_creating_a_log_makes_every_name_durable_before_it_returns(tmp_path: Path) -> None:
    disk = RecordingDisk()
    store = FileStore(tmp_path / "new" / "logs", disk=disk)
    log = await EventLog.create(store, "a")
    assert tell(disk.operations, tmp_path) == [
        "make_folder new",
        "sync_folder .",
        "make_folder new/logs",
        "sync_folder new",
        "make_folder new/logs/a",
        "open_append new/logs/a/events.jsonl",
        "open_append new/logs/a/epoch",
        "truncate new/logs/a/epoch",
        "write new/logs/a/epoch",
        "sync new/logs/a/epoch",
        "open_append new/logs/a/meta.json.part",
        "truncate new/logs/a/meta.json.part",
        "write new/logs/a/meta.json.part",
        "sync new/logs/a/meta.json.part",
        "replace new/logs/a/meta.json.part",
        "sync_folder new/logs/a",
        "sync_folder new/logs",
    ]
    await log.close()


async def test_an_append_is_one_write_and_one_sync_however_many_groups_it_has(tmp_path: Path) -> None:
    disk = RecordingDisk()
    log = await EventLog.create(FileStore(tmp_path, disk=disk), "a")
    disk.clear()
    await log.append([[said("one"), said("two")], [said("three")], [said("four")]])
    assert tell(disk.operations, tmp_path) == ["write a/events.jsonl", "sync a/events.jsonl"]
    assert disk.operations[0].data.count(b"\n") == 4
    await log.close()


async def test_a_blob_is_durable_before_the_line_that_names_it_is_written(tmp_path: Path) -> None:
    disk = RecordingDisk()
    log = await EventLog.create(FileStore(tmp_path, disk=disk), "a")
    disk.clear()
    await log.append([[said(LARGE)]])
    done = tell([each for each in disk.operations if each.name != "read"], tmp_path)
    assert [name for name in done if "blobs" in name or "events" in name or name == "sync_folder a"] == [
        "make_folder a/blobs",
        *[f"{name} a/blobs/…" for name in ("open_append", "truncate", "write", "sync", "replace")],
        "sync_folder a/blobs",
        "sync_folder a",
        "write a/events.jsonl",
        "sync a/events.jsonl",
    ]
    await log.close()


async def test_a_blob_that_is_there_already_is_synced_before_it_is_named_again(tmp_path: Path) -> None:
    await fill(FileStore(tmp_path, durability="flush"), [], [[said(LARGE)]])
    disk = RecordingDisk()
    log = await EventLog.open(FileStore(tmp_path, disk=disk), "a")
    disk.clear()
    await log.append([[said(LARGE)]])
    names = [each.name for each in disk.operations]
    assert names == ["make_folder", "read", "open_append", "sync", "sync_folder", "sync_folder", "write", "sync"]
    await log.close()


async def test_a_blob_that_was_cut_short_is_written_again(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await fill(store, [], [[said(LARGE)]])
    (blob,) = [path async for path in anyio.Path(tmp_path, "a", "blobs").iterdir()]
    await blob.write_bytes(b"half")
    log = await store.open("a")
    await log.write_blob(LARGE.encode())
    assert await log.read_blob(blob.name) == LARGE.encode()
    await log.close()


async def test_flush_never_syncs_and_keeps_all_that_was_written(tmp_path: Path) -> None:
    disk = RecordingDisk()
    store = FileStore(tmp_path / "logs", durability="flush", disk=disk)
    acknowledged: list[Event] = []
    await fill(store, acknowledged, [[said(LARGE), said("b")], [said("c")]])
    await store.delete("a")
    assert {each.name for each in disk.operations}.isdisjoint({"sync", "sync_folder"})


async def test_opening_makes_durable_what_a_killed_writer_left_in_memory(tmp_path: Path) -> None:
    await fill(FileStore(tmp_path / "before", durability="flush"), [], [[said("one")]])
    disk = CrashingDisk(tmp_path / "before")
    # As a writer that was killed between its write and its sync: the line is there, and only in memory.
    await anyio.to_thread.run_sync(append_unsynced, disk, tmp_path / "before" / "a" / "events.jsonl")
    log = await EventLog.open(FileStore(tmp_path / "before", disk=disk), "a")
    assert log.state.head == 2
    disk.lose_power()
    await log.close()
    await anyio.to_thread.run_sync(disk.restore, tmp_path / "after")
    assert (await read_log(FileStore(tmp_path / "after"), "a")).head == 2


def append_unsynced(disk: CrashingDisk, path: Path) -> None:
    descriptor = disk.open_append(str(path))
    try:
        disk.write(descriptor, encode_line(Record(2, 2, PauseEvent(seq=2).model_dump_json().encode())))
    finally:
        os.close(descriptor)


async def fill(store: FileStore, acknowledged: list[Event], groups: list[list[Event]]) -> None:
    log = await EventLog.create(store, "a")
    for group in groups:
        acknowledged.extend((await log.append([group]))[0])
    await log.close()


async def work(store: FileStore, acknowledged: list[Event]) -> None:
    """Create, append groups with and without blobs, close, open again, append, delete another log."""
    other = await EventLog.create(store, "other")
    await other.append([[said("other")]])
    await other.close()
    log = await EventLog.create(store, "a")
    for groups in ([[said("one")]], [[said("two"), PauseEvent()], [said("three")]], [[said(LARGE), said("four")]]):
        acknowledged.extend(itertools.chain.from_iterable(await log.append(groups)))
    await log.close()
    again = await EventLog.open(store, "a")
    acknowledged.extend((await again.append([[said(LARGE + "y")]]))[0])
    acknowledged.extend((await again.append([[said(LARGE), said("five")]]))[0])
    await again.close()
    await store.delete("other")
    acknowledged.append(said("deleted"))


async def check(found: Crash, acknowledged: list[Event]) -> None:
    """All that was acknowledged is there, groups are whole, and the log goes on."""
    deleted = bool(acknowledged) and acknowledged[-1].seq == 0
    expected = acknowledged[:-1] if deleted else acknowledged
    try:
        log = await EventLog.open(found.store, "a")
    except ConversationNotFound:
        assert not expected
        return
    assert log.state.events[: len(expected)] == expected
    assert log.state.head in {0, 1, 3, 4, 6, 7, 9}, "groups are whole"
    await log.append([[said("after")]])
    await log.close()
    ids = {info.conversation_id for info in await found.store.list()}
    assert ids == ({"a"} if deleted else ids & {"a", "other"})
    for conversation_id in ids:
        assert (await found.store.verify(conversation_id))[1] is None or conversation_id == "other"


async def crash_all(folder: Path, kept: Survival) -> int:
    attempts = 0
    for attempt in crash_everywhere(folder, kept=kept):
        acknowledged: list[Event] = []
        found = await attempt(work, acknowledged)
        assert found.error is None or isinstance(found.error, StoreError)
        await check(found, acknowledged)
        attempts += 1
    return attempts


@pytest.mark.parametrize("kept", ["least", "most", Random(1)], ids=["least", "most", "some"])
def test_power_lost_at_any_operation_loses_nothing_that_was_acknowledged(tmp_path: Path, kept: Survival) -> None:
    # On one event loop: it is about the disk.
    assert anyio.run(crash_all, tmp_path, kept) > 50


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 17))
def test_power_lost_at_any_operation_with_many_outcomes(tmp_path: Path, seed: int) -> None:
    assert anyio.run(crash_all, tmp_path, Random(seed)) > 50


@pytest.mark.parametrize("operation", ["write", "sync"])
async def test_after_a_failed_write_or_sync_the_log_is_as_acknowledged(
    tmp_path: Path, operation: DiskOperationName
) -> None:
    disk = FaultyDisk()
    store = FileStore(tmp_path, disk=disk)
    log = await EventLog.create(store, "a")
    await log.append([[said("one")]])
    disk.fail(operation, written=70)
    with pytest.raises(StoreError, match="No space left"):
        await log.append([[said("two")]])
    assert log.state.head == 1
    with pytest.raises(StoreError, match="takes no more events"):
        await log.append([[said("three")]])
    with pytest.raises(StoreError, match="takes no more events"):
        await log.append([[said(LARGE)]])
    await log.close()
    # Not what is in memory and may never have reached the disk: only what was acknowledged.
    again = await EventLog.open(store, "a")
    assert (again.state.head, again.repaired) == (1, None)
    await again.append([[said("two")]])
    await again.close()
    assert await store.verify("a") == (2, None)
