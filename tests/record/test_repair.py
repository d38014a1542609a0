"""Salvage: what a repair keeps, what it cuts, and where it leaves what was."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from agentcore.errors import ConversationNotFound, LogDamaged
from agentcore.events import Event
from agentcore.record import EventLog, FileStore, Record, RepairReport, read_log
from logged import LARGE, said


async def written(store: FileStore, large: str = "five") -> tuple[anyio.Path, bytes, list[Event]]:
    """Write groups of one, of two, of one and of two events."""
    log = await EventLog.create(store, "a")
    groups = [[said("one")], [said("two"), said("three")], [said("four")], [said(large), said("six")]]
    events = [event for group in await log.append(groups) for event in group]
    await log.close()
    path = anyio.Path(store.folder("a"), "events.jsonl")
    return path, await path.read_bytes(), events


async def goes_on(store: FileStore, events: list[Event]) -> None:
    log = await EventLog.open(store, "a")
    assert log.state.events == events
    await log.append([[said("after")]])
    await log.close()
    assert await store.verify("a") == (len(events) + 1, None)


async def test_a_sound_log_is_left_as_it_is(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    path, data, events = await written(store)
    assert await store.repair("a") == RepairReport(kept=6, cut_lines=0, reason=None, backup=None)
    assert await path.read_bytes() == data
    assert {each.name async for each in path.parent.iterdir()} == {"events.jsonl", "meta.json", "epoch", "lock"}
    await goes_on(store, events)


@pytest.mark.parametrize(("line", "kept"), [(1, 0), (2, 1), (3, 1), (4, 3), (5, 4)])
async def test_the_groups_before_the_damage_are_kept_and_all_is_kept_beside(
    tmp_path: Path, line: int, kept: int
) -> None:
    store = FileStore(tmp_path)
    path, data, events = await written(store)
    lines = data.splitlines(keepends=True)
    lines[line - 1] = lines[line - 1].replace(b"message", b"massage", 1)
    damaged = b"".join(lines)
    await path.write_bytes(damaged)
    for read in (EventLog.open(store, "a"), read_log(store, "a"), store.verify("a")):
        with pytest.raises(LogDamaged) as found:
            await read
        assert f"{path}, line {line}: " in str(found.value)
        assert ("agentcore log repair a" in str(found.value)) == (line > 1)
    assert await path.read_bytes() == damaged
    report = await store.repair("a")
    assert report == RepairReport(
        kept=kept,
        cut_lines=6 - kept,
        reason=f"line {line}: the checksum does not fit the line",
        backup=f"{path}.damaged-1",
    )
    assert await anyio.Path(f"{path}.damaged-1").read_bytes() == damaged
    assert await path.read_bytes() == b"".join(data.splitlines(keepends=True)[:kept])
    await goes_on(store, events[:kept])


async def test_each_repair_keeps_a_copy_of_its_own(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    path, data, _ = await written(store)
    for number in (1, 2):
        damaged = data.replace(b"four", b"for ", 1) + b"x" * number
        await path.write_bytes(damaged)
        report = await store.repair("a")
        backup = f"{path}.damaged-{number}"
        assert report.backup == backup
        assert await anyio.Path(backup).read_bytes() == damaged


@pytest.mark.parametrize("lost", ["the end of the last line", "a blob of line 5"])
async def test_lines_that_are_not_whole_are_cut(lost: str, tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    path, data, events = await written(store, LARGE)
    if lost == "a blob of line 5":
        async for blob in (path.parent / "blobs").iterdir():
            await blob.unlink()
    else:
        await path.write_bytes(data[:-3])
    report = await store.repair("a")
    assert (report.kept, report.cut_lines) == (4, 2)
    assert ("line 5: The blob " if "blob" in lost else "unfinished") in str(report.reason)
    await goes_on(store, events[:4])


async def test_a_sound_line_that_is_no_event_is_damage_that_a_repair_cuts(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    _, _, events = await written(store)
    stored = await store.open("a")
    await stored.append([Record(7, 8, b'{"seq":7,"kind":"pause"}'), Record(8, 8, b'{"seq":8,"kind":"message"}')])
    await stored.append([Record(9, 9, b'{"seq":9,"kind":"pause"}')])
    await stored.close()
    for read in (EventLog.open(store, "a"), read_log(store, "a"), store.verify("a")):
        with pytest.raises(LogDamaged) as damaged:
            await read
        assert damaged.value.line == 8
    report = await store.repair("a")
    assert (report.kept, report.cut_lines) == (6, 3)
    await goes_on(store, events)


async def test_what_is_not_there_is_not_repaired(tmp_path: Path) -> None:
    with pytest.raises(ConversationNotFound):
        await FileStore(tmp_path).repair("a")
    with pytest.raises(ConversationNotFound):
        await FileStore(tmp_path).verify("a")
