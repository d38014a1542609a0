"""asyncio's own cancellation, which passes anyio's shields: nothing is left open, locked or half-made, and no append is lost track of."""

from __future__ import annotations

import asyncio  # noqa: TID251  it is asyncio's way of cancelling that is at stake
import errno
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from agentcore.errors import ConversationNotFound, StoreError
from agentcore.record import EventLog, FileStore, Record, read_log
from agentcore.record.files.thread import ThreadWork
from agentcore.testing import DiskOperationName, FaultyDisk
from rounds import some_quick


@pytest.fixture(autouse=True)
def _only_on_asyncio(anyio_backend_name: str) -> None:
    if anyio_backend_name != "asyncio":
        pytest.skip("on trio all cancellation is by scopes, which a shield keeps out")


def record(seq: int) -> Record:
    return Record(seq, seq, b'{"seq":%d,"said":"words"}' % seq)


def descriptors() -> int:
    return len(os.listdir("/dev/fd"))


async def make(store: FileStore, conversation_id: str) -> None:
    await (await EventLog.create(store, conversation_id)).close()


async def cancelled_in(
    work: Coroutine[Any, Any, object], disk: FaultyDisk, operation: DiskOperationName, *, times: int = 1
) -> None:
    """Cancel work while its thread is in this operation, and see that it ends only after the thread has."""
    with anyio.fail_after(20):
        with disk.hang(operation) as hang:
            task = asyncio.create_task(work)
            await hang.reached()
            for _ in range(times):
                task.cancel()
                for _ in range(5):
                    await anyio.lowlevel.checkpoint()
                assert not task.done()
        with pytest.raises(asyncio.CancelledError):
            await task


@pytest.mark.parametrize("times", some_quick([2, 1, 3], 3))
@pytest.mark.parametrize(
    ("act", "operation"),
    [
        *(("create", operation) for operation in ("make_folder", "open_append", "replace", "sync_folder")),
        *(("open", operation) for operation in ("read", "open_append", "sync")),
        ("delete", "replace"),
    ],
)
async def test_a_creation_is_undone_an_opening_lets_go_and_a_deletion_is_done(
    tmp_path: Path, act: str, operation: DiskOperationName, times: int
) -> None:
    disk = FaultyDisk()
    store = FileStore(tmp_path, disk=disk)
    await make(store, "a" if act != "create" else "other")
    before = descriptors()
    work: dict[str, Callable[[], Coroutine[Any, Any, object]]] = {
        "create": lambda: store.create("a", format_version=1),
        "open": lambda: store.open("a"),
        "delete": lambda: store.delete("a"),
    }
    await cancelled_in(work[act](), disk, operation, times=times)
    assert descriptors() == before
    assert os.listdir(tmp_path) == {"create": ["other"], "open": ["a"], "delete": []}[act]
    await (await store.open("a") if act == "open" else await store.create("a", format_version=1)).close()


async def test_a_result_that_is_there_when_the_cancellation_comes_is_discarded() -> None:
    reached, go_on, discarded = threading.Event(), threading.Event(), list[str]()

    def work() -> str:
        reached.set()
        go_on.wait()
        return "an open file"

    thread_work = ThreadWork(work, discard=discarded.append)
    task = asyncio.create_task(thread_work.wait(20, "Opening"))
    await anyio.to_thread.run_sync(reached.wait)
    # Without giving way to the loop: the thread has ended, and the task does not know it yet.
    go_on.set()
    assert thread_work._finished.wait(20)  # pyright: ignore[reportPrivateUsage]
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert discarded == ["an open file"]


async def test_a_result_that_comes_to_a_coroutine_that_is_thrown_away_is_discarded() -> None:
    discarded: list[str] = []
    thread_work = ThreadWork(lambda: "an open file", discard=discarded.append)
    waiting = thread_work.wait(20, "Opening")
    waiting.send(None)  # to its first checkpoint, as a loop does that ends before it comes to the next
    await anyio.to_thread.run_sync(thread_work.run)
    waiting.close()
    assert discarded == ["an open file"]


@pytest.mark.parametrize("times", some_quick([1, 2], 2))
@pytest.mark.parametrize("how", ["create", "open", "list", "delete", "read"])
async def test_cancelled_at_any_moment_no_operation_leaves_a_file_open(tmp_path: Path, how: str, times: int) -> None:
    store = FileStore(tmp_path, durability="flush")
    act: dict[str, Callable[[], Awaitable[object]]] = {
        "create": lambda: EventLog.create(store, "a"),
        "open": lambda: EventLog.open(store, "a"),
        "list": store.list,
        "delete": lambda: store.delete("a"),
        "read": lambda: read_log(store, "a"),
    }

    async def run() -> None:
        held = await act[how]()
        if isinstance(held, EventLog):
            await held.close()

    await make(store, "warm")
    before = descriptors()
    with anyio.fail_after(60):
        for moment in range(60):
            if how == "create":
                await delete_if_there(store, "a")
            elif "a" not in os.listdir(tmp_path):
                await make(store, "a")
            task = asyncio.create_task(run())
            for _ in range(moment):
                await asyncio.sleep(0)
            for _ in range(times):
                task.cancel()
                await asyncio.sleep(0)
            await asyncio.wait([task])
            assert task.cancelled() or task.exception() is None
            assert descriptors() == before
            if "a" in os.listdir(tmp_path):
                assert await store.holder("a") is None


async def delete_if_there(store: FileStore, conversation_id: str) -> None:
    try:
        await store.delete(conversation_id)
    except ConversationNotFound:
        return


async def test_an_append_that_is_cancelled_when_it_has_begun_counts(tmp_path: Path) -> None:
    disk = FaultyDisk()
    store = FileStore(tmp_path, disk=disk)
    log = await store.create("a", format_version=1)
    await log.append([record(1)])
    await cancelled_in(log.append([record(2)]), disk, "write")
    await cancelled_in(log.append([record(3)]), disk, "sync")
    await log.append([record(4)])
    assert [each.seq for each in await log.read()] == [1, 2, 3, 4]
    await log.close()
    assert await store.holder("a") is None


async def test_an_append_that_is_cancelled_and_fails_ends_the_log(tmp_path: Path) -> None:
    disk = FaultyDisk()
    store = FileStore(tmp_path, disk=disk)
    log = await store.create("a", format_version=1)
    disk.fail("sync", code=errno.EIO)
    await cancelled_in(log.append([record(1)]), disk, "write")
    with pytest.raises(StoreError, match="takes no more events"):
        await log.append([record(1)])
    await log.close()
    again = await store.open("a")
    assert await again.read() == []
    await again.close()


async def test_what_is_cancelled_before_a_thread_is_free_does_not_begin_but_closing_does(tmp_path: Path) -> None:
    patient, disk = FileStore(tmp_path), FaultyDisk()
    log = await patient.create("a", format_version=1)
    names = "bcdefghi"
    for name in names:
        await make(patient, name)

    async def open_and_close(name: str) -> None:
        await (await FileStore(tmp_path, disk=disk).open(name)).close()

    before = descriptors()
    with anyio.fail_after(30), ExitStack() as stack:
        hangs = [stack.enter_context(disk.hang("read", at=number)) for number, _ in enumerate(names, 1)]
        async with anyio.create_task_group() as group:
            for name in names:
                group.start_soon(open_and_close, name)
            for hang in hangs:
                await hang.reached()
            append = asyncio.create_task(log.append([record(1)]))
            await anyio.wait_all_tasks_blocked()
            append.cancel()
            with pytest.raises(asyncio.CancelledError):
                await append
            close = asyncio.create_task(log.close())
            await anyio.wait_all_tasks_blocked()
            close.cancel()
            await anyio.wait_all_tasks_blocked()
            for hang in hangs:
                hang.release()
            with pytest.raises(asyncio.CancelledError):
                await close
    assert descriptors() == before - 2
    again = await patient.open("a")
    assert await again.read() == []
    await again.close()
