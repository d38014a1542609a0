"""How often a log was opened for writing: never back, never twice the same, whatever happens to the writer."""

from __future__ import annotations

import itertools
import shutil
from pathlib import Path
from random import Random

import pytest

from agentcore.errors import ConversationNotFound, StoreError
from agentcore.record import EventLog, FileStore, MemoryStore, Store
from agentcore.testing import FaultyDisk, RecordingDisk, Survival, crash_everywhere
from logged import said
from rounds import some_quick


@pytest.fixture(params=["files", "memory"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    return FileStore(tmp_path / "logs") if request.param == "files" else MemoryStore()


async def open_and_close(store: Store, conversation_id: str = "a") -> int:
    log = await EventLog.open(store, conversation_id)
    await log.close()
    return log.epoch


async def test_the_event_log_tells_it(store: Store) -> None:
    log = await EventLog.create(store, "a")
    assert log.epoch == 1
    await log.close()
    assert [await open_and_close(store) for _ in range(12)] == list(range(2, 14))


async def test_opening_costs_one_sync_more(tmp_path: Path) -> None:
    disk = RecordingDisk()
    store = FileStore(tmp_path, disk=disk)
    await (await EventLog.create(store, "a")).close()
    disk.clear()
    await open_and_close(store)
    assert [(each.name, Path(each.path).name) for each in disk.operations if each.name.startswith("sync")] == [
        ("sync", "events.jsonl"),
        ("sync", "epoch"),
    ]


@pytest.mark.parametrize("kept", some_quick(["least", "most", Random(3)], 3), ids=["least", "most", "some"])
async def test_a_loss_of_power_at_any_moment_repeats_no_number(tmp_path: Path, kept: Survival) -> None:
    async def work(store: FileStore, told: list[int]) -> None:
        log = await EventLog.create(store, "a")
        told.append(log.epoch)
        await log.append([[said("one")]])
        await log.close()
        for _ in range(3):
            told.append(await open_and_close(store))

    for attempt in crash_everywhere(tmp_path, kept=kept):
        told: list[int] = []
        found = await attempt(work, told)
        try:
            epoch = await open_and_close(found.store)
        except ConversationNotFound:
            assert told == []
            continue
        assert told == list(range(1, len(told) + 1))
        assert epoch > len(told)


async def test_a_number_that_could_not_be_synced_is_told_to_nobody(tmp_path: Path) -> None:
    disk = FaultyDisk()
    store = FileStore(tmp_path, disk=disk)
    await (await EventLog.create(store, "a")).close()
    disk.fail("sync", at=2)
    with pytest.raises(StoreError, match="No space left"):
        await EventLog.open(store, "a")
    assert await store.holder("a") is None
    assert await open_and_close(store) > 1


async def test_a_creation_that_was_cut_off_does_not_count(tmp_path: Path) -> None:
    for at in itertools.count(1):
        disk = FaultyDisk()
        store = FileStore(tmp_path / str(at), disk=disk)
        disk.fail(at=at)
        try:
            log = await EventLog.create(store, "a")
        except StoreError:
            disk.normalize()
            try:
                log = await EventLog.create(store, "a")
            except StoreError:
                continue  # it was there but for its last sync
        else:
            assert at > 10
            await log.close()
            break
        assert log.epoch == 1
        await log.close()


async def test_a_log_without_a_count_begins_with_one_and_repairing_changes_nothing(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await (await EventLog.create(store, "a")).close()
    (tmp_path / "a" / "epoch").unlink()
    reader = await store.open("a", write=False)
    assert reader.epoch == 0
    await reader.close()
    assert [await open_and_close(store) for _ in range(2)] == [1, 2]
    with (tmp_path / "a" / "events.jsonl").open("ab") as file:
        file.write(b"damage\nmore\n")
    await store.repair("a")
    assert await open_and_close(store) == 3
    shutil.copytree(tmp_path / "a", tmp_path / "copy")
    assert await open_and_close(store, "copy") == 4
