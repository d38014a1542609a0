"""What a file store leaves on disk, and what it makes of what it finds there."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import stat
import sys
from datetime import datetime
from pathlib import Path

import anyio
import pytest

from agentcore.errors import (
    BlobLost,
    ConversationExists,
    ConversationLocked,
    ConversationNotFound,
    LogDamaged,
    LogReadOnly,
    StoreError,
    UnsupportedPlatform,
)
from agentcore.events import MessageEvent
from agentcore.record import FORMAT_VERSION, EventLog, FileStore, read_log
from agentcore.testing import FaultyDisk
from logged import LARGE, said


async def fill(store: FileStore, conversation_id: str, *texts: str) -> Path:
    log = await EventLog.create(store, conversation_id)
    await log.append([[said(text)] for text in texts])
    await log.close()
    return Path(store.folder(conversation_id))


async def test_a_log_is_a_folder_that_only_its_owner_may_read(tmp_path: Path) -> None:
    folder = await fill(FileStore(tmp_path / "logs"), "a", "one", LARGE)
    (blob,) = (folder / "blobs").iterdir()
    assert {path.name for path in folder.iterdir()} == {"events.jsonl", "meta.json", "epoch", "lock", "blobs"}
    for path in (folder.parent, folder, folder / "blobs"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    for path in (folder / "events.jsonl", folder / "meta.json", folder / "epoch", folder / "lock", blob):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


async def test_meta_and_every_line_are_json_that_any_tool_reads(tmp_path: Path) -> None:
    folder = await fill(FileStore(tmp_path), "a", "żółw \u2028 🐢 \0", "two")
    lines = (folder / "events.jsonl").read_bytes().split(b"\n")
    assert lines.pop() == b""
    read = [json.loads(line) for line in lines]
    assert [(event["seq"], event["group"], event["kind"]) for event in read] == [(1, 1, "message"), (2, 2, "message")]
    assert read[0]["message"]["content"][0]["text"] == "żółw \u2028 🐢 \0"
    assert next(iter(read[0])) == "seq"
    assert list(read[0])[-2:] == ["group", "crc"]

    meta = json.loads((folder / "meta.json").read_bytes())
    assert (meta["id"], meta["format_version"]) == ("a", FORMAT_VERSION)
    assert datetime.fromisoformat(meta["created"]).tzinfo is not None


@pytest.mark.parametrize("path", ["~/logs", "logs"])
async def test_a_path_is_of_the_folder_in_which_the_store_was_made(
    path: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    store = FileStore(path)
    monkeypatch.chdir("/")
    assert await store.list() == []
    assert not (tmp_path / "logs").exists()
    await fill(store, "a")
    assert [info.conversation_id for info in await store.list()] == ["a"]
    assert store.location == str(tmp_path / "logs")
    assert repr(store) == f"FileStore({path!r}, durability='sync')"


async def test_what_is_no_log_is_not_listed(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await fill(store, "a")
    (tmp_path / "begun").mkdir()
    (tmp_path / "begun" / "events.jsonl").touch()
    (tmp_path / "a file").touch()
    (tmp_path / "no id").mkdir()
    (tmp_path / "no id" / "meta.json").write_text("{}")
    assert [info.conversation_id for info in await store.list()] == ["a"]


@pytest.mark.parametrize(
    "meta",
    ["", "{}", "[]", "null", '{"created":"yesterday","format_version":1}', '{"created":"2026-01-01T00:00:00","format_version":1}',
     '{"created":"2026-01-01T00:00:00Z","format_version":0}', '{"created":"2026-01-01T00:00:00Z","format_version":"x"}'],
)  # fmt: skip
async def test_a_damaged_meta_is_told_and_hides_no_other_log(tmp_path: Path, meta: str) -> None:
    store = FileStore(tmp_path)
    folder = await fill(store, "a", "one")
    await fill(store, "b", "one")
    (folder / "meta.json").write_text(meta)
    listed = {info.conversation_id: info.problem for info in await store.list()}
    assert listed["b"] is None
    assert "meta.json' is damaged" in str(listed["a"])
    for action in (EventLog.open(store, "a"), read_log(store, "a"), store.verify("a"), store.repair("a")):
        with pytest.raises(StoreError, match=r"meta\.json' is damaged"):
            await action
    with pytest.raises(ConversationExists):
        await EventLog.create(store, "a")
    await store.delete("a")
    assert [info.conversation_id for info in await store.list()] == ["b"]


async def test_a_log_that_lost_its_meta_is_not_written_over(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    folder = await fill(store, "a", "one")
    (folder / "meta.json").unlink()
    with pytest.raises(ConversationNotFound):
        await EventLog.open(store, "a")
    with pytest.raises(StoreError, match=r"holds events, but its meta\.json is gone"):
        await EventLog.create(store, "a")
    assert (folder / "events.jsonl").stat().st_size > 0


async def test_a_deletion_that_was_cut_off_is_finished_by_the_next_one(tmp_path: Path) -> None:
    disk = FaultyDisk()
    store = FileStore(tmp_path, disk=disk)
    for name in ("a", "b"):
        await fill(store, name, LARGE)
    disk.fail("remove_folder")
    with pytest.raises(StoreError, match="Deleting conversation 'a'"):
        await store.delete("a")
    assert [info.conversation_id for info in await store.list()] == ["b"]
    with pytest.raises(ConversationNotFound):
        await store.open("a")
    await store.delete("b")
    assert os.listdir(tmp_path) == []


async def test_a_deleted_log_is_found_by_nobody_who_was_about_to_open_it(tmp_path: Path) -> None:
    """Deleted between the look at meta.json and the lock: opened it would be nobody's."""
    disk = FaultyDisk()
    store = FileStore(tmp_path, disk=disk)
    await fill(store, "a", "one")
    errors: list[Exception] = []

    async def open_it() -> None:
        try:
            await store.open("a")
        except StoreError as error:
            errors.append(error)

    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            with disk.hang("read") as hang:  # of meta.json
                group.start_soon(open_it)
                await hang.reached()
                await FileStore(tmp_path).delete("a")
    assert [type(error) for error in errors] == [ConversationNotFound]
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("made_anew", [False, True], ids=["deleted", "deleted and made anew"])
async def test_a_lock_that_was_taken_on_a_deleted_log_is_given_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, made_anew: bool
) -> None:
    """Deleted between opening the lock file and locking it: that lock would keep nobody else out."""
    store = FileStore(tmp_path)
    folder = await fill(store, "a", "old")
    lock = fcntl.flock
    hit: list[int] = []

    def delete_first(descriptor: int, operation: int) -> None:
        if not hit:
            hit.append(descriptor)
            shutil.rmtree(folder)
            if made_anew:
                shutil.copytree(tmp_path / "new", folder)
        lock(descriptor, operation)

    if made_anew:
        await fill(store, "new", "new")
    monkeypatch.setattr(fcntl, "flock", delete_first)
    if made_anew:
        log = await EventLog.open(store, "a")
        assert [event.text for event in log.state.events if isinstance(event, MessageEvent)] == ["new"]
        with pytest.raises(ConversationLocked):
            await store.open("a")
        await log.close()
    else:
        with pytest.raises(ConversationNotFound):
            await store.open("a")
    assert len(hit) == 1


async def test_a_log_that_somebody_else_made_meanwhile_is_not_made_again(tmp_path: Path) -> None:
    disk = FaultyDisk()
    errors: list[Exception] = []

    async def create() -> None:
        try:
            await EventLog.create(FileStore(tmp_path, disk=disk), "a")
        except StoreError as error:
            errors.append(error)

    with anyio.fail_after(20), disk.hang("make_folder") as hang:
        async with anyio.create_task_group() as group:
            group.start_soon(create)
            await hang.reached()
            await fill(FileStore(tmp_path), "a", "one")
            hang.release()
    assert [type(error) for error in errors] == [ConversationExists]
    assert (await read_log(FileStore(tmp_path), "a")).head == 1


async def test_a_file_where_the_folder_should_be_is_told(tmp_path: Path) -> None:
    (tmp_path / "logs").write_text("no folder")
    store = FileStore(tmp_path / "logs")
    with pytest.raises(StoreError, match="File exists"):
        await EventLog.create(store, "a")
    with pytest.raises(StoreError, match="Not a directory"):
        await store.list()


async def test_a_log_in_a_newer_format_is_read_and_never_touched(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    folder = await fill(store, "a", "one", "two")
    meta = json.loads((folder / "meta.json").read_bytes())
    (folder / "meta.json").write_text(json.dumps({**meta, "format_version": FORMAT_VERSION + 1}))
    lines = (folder / "events.jsonl").read_bytes()
    unfinished = lines + b"a line as only the future knows it"
    (folder / "events.jsonl").write_bytes(unfinished)
    state = await read_log(store, "a")
    assert state.head == 2
    assert state.read_only == f"it is in format {FORMAT_VERSION + 1}, and this version of agentcore writes format 1"
    for action in (EventLog.open(store, "a"), store.repair("a")):
        with pytest.raises(LogReadOnly, match="with the version of agentcore that wrote it, or a newer one"):
            await action
    assert (folder / "events.jsonl").read_bytes() == unfinished
    assert [info.format_version for info in await store.list()] == [FORMAT_VERSION + 1]


def test_windows_is_refused_in_one_plain_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with pytest.raises(UnsupportedPlatform, match="does not run on Windows"):
        FileStore("logs")


@pytest.mark.parametrize("reason", ["is missing", "its hash is another one"])
async def test_a_lost_blob_is_damage_of_the_line_that_names_it(tmp_path: Path, reason: str) -> None:
    store = FileStore(tmp_path)
    folder = await fill(store, "a", "one", "two", LARGE, "four")
    (blob,) = (folder / "blobs").iterdir()
    if reason == "is missing":
        blob.unlink()
    else:
        blob.write_bytes(blob.read_bytes()[:-1])
    for action in (EventLog.open(store, "a"), read_log(store, "a"), store.verify("a")):
        with pytest.raises(LogDamaged, match=reason) as damaged:
            await action
        assert damaged.value.line == 3
    stored = await store.open("a")
    with pytest.raises(BlobLost, match=reason):
        await stored.read_blob(blob.name)
    await stored.close()
