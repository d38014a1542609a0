"""Files of a log that somebody has put something else in the place of: refused at once, with words that say what it is."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from agentcore import FileStore
from agentcore.errors import StoreError
from agentcore.record import EventLog, read_log
from logged import said


async def begin(store: FileStore) -> Path:
    log = await EventLog.create(store, "strange")
    await log.append([[said("Hello.")]])
    await log.close()
    return Path(store.folder("strange"))


def as_socket(path: str) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path)


INSTEAD: dict[str, Callable[[str], object]] = {
    "pipe": os.mkfifo,
    "device": lambda path: os.symlink(os.devnull, path),
    "folder": os.mkdir,
    "socket": as_socket,
}


@pytest.mark.parametrize("name", ["events.jsonl", "meta.json"])
@pytest.mark.parametrize("put", INSTEAD.values(), ids=INSTEAD)
async def test_what_is_no_regular_file_is_refused_at_once(
    name: str, put: Callable[[str], object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = FileStore(tmp_path)
    folder = await begin(store)
    monkeypatch.chdir(folder)  # the address of a socket may not be long
    await anyio.Path(name).unlink()
    await anyio.to_thread.run_sync(put, name)
    for use in (
        lambda: EventLog.open(store, "strange"),
        lambda: read_log(store, "strange"),
        lambda: store.verify("strange"),
        lambda: store.repair("strange"),
    ):
        with anyio.fail_after(30), pytest.raises(StoreError, match=f"{name}' is not a regular file but a pipe"):
            await use()
    (told,) = await store.list()
    assert (told.problem is None) == (name != "meta.json")


async def test_a_link_to_a_file_is_that_file(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "logs")
    folder = anyio.Path(await begin(store))
    await (folder / "events.jsonl").rename(tmp_path / "elsewhere")
    await (folder / "events.jsonl").symlink_to(tmp_path / "elsewhere")
    log = await EventLog.open(store, "strange")
    await log.append([[said("And on.")]])
    await log.close()
    assert (await read_log(store, "strange")).head == 2


async def test_meta_that_is_nested_without_end_is_damaged(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    folder = await begin(store)
    await anyio.Path(folder, "meta.json").write_text("[" * 200_000)
    for use in (lambda: EventLog.open(store, "strange"), lambda: store.verify("strange")):
        with pytest.raises(StoreError, match=r"meta\.json' is damaged .RecursionError"):
            await use()
    (told,) = await store.list()
    assert told.problem is not None


async def test_a_log_that_holds_nothing_is_opened_and_told_of(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    folder = await begin(store)
    await anyio.Path(folder, "events.jsonl").write_bytes(b"")
    events, told = await store.verify("strange")
    assert events == 0
    assert told is not None
    assert told.startswith("no event at all")
    log = await EventLog.open(store, "strange")
    assert log.repaired == told
    await log.append([[said("Anew.")]])
    await log.close()
    again = await EventLog.open(store, "strange")
    assert (again.state.head, again.repaired) == (1, None)
    await again.close()
