"""Disks that fail or do not answer: a clear error in bounded time, the log intact."""

from __future__ import annotations

import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from textwrap import dedent

import anyio
import anyio.lowlevel
import pytest

from agentcore.errors import ConversationLocked, StoreError
from agentcore.record import EventLog, FileStore, Record, read_log
from agentcore.record.files.thread import ThreadWork
from agentcore.testing import DiskOperationName, FaultyDisk
from logged import LARGE, said

SHORT = 0.3
"""Seconds after which a store here gives a disk up."""


async def wait_until_unlocked(store: FileStore, conversation_id: str) -> EventLog:
    while True:
        try:
            return await EventLog.open(store, conversation_id)
        except ConversationLocked:
            await anyio.lowlevel.checkpoint()


async def open_impatiently(store: FileStore, conversation_id: str) -> EventLog:
    """Open a log in a store that gives up soon: on a machine that is busy, more often than once."""
    while True:
        try:
            return await EventLog.open(store, conversation_id)
        except StoreError:
            await anyio.lowlevel.checkpoint()


@pytest.mark.parametrize("operation", ["write", "sync"])
async def test_a_hung_append_is_given_up_and_keeps_the_lock_until_it_ends(
    tmp_path: Path, operation: DiskOperationName
) -> None:
    disk = FaultyDisk()
    store, patient = FileStore(tmp_path, disk=disk, seconds=SHORT), FileStore(tmp_path)
    log = await EventLog.create(patient, "a")
    await log.append([[said("one")]])
    await log.close()
    with anyio.fail_after(20):
        log = await open_impatiently(store, "a")
        with disk.hang(operation) as hang:
            with pytest.raises(StoreError, match="does not answer"):
                await log.append([[said("two")]])
            await hang.reached()
            assert log.state.head == 1
            with pytest.raises(StoreError, match="takes no more events"):
                await log.append([[said("three")]])
            await log.close()
            # The thread may still write at any moment: nobody else may.
            with pytest.raises(ConversationLocked, match=f"process {os.getpid()}"):
                await patient.open("a")
            assert (await read_log(patient, "a")).head >= 1
        again = await wait_until_unlocked(patient, "a")
    assert again.state.head == 2  # it was written after all: nobody could know
    await again.append([[said("three")]])
    await again.close()
    assert await patient.verify("a") == (3, None)


async def test_a_hung_append_that_ends_before_the_log_is_closed_lets_go_on_closing(tmp_path: Path) -> None:
    disk = FaultyDisk()
    store, patient = FileStore(tmp_path, disk=disk, seconds=SHORT), FileStore(tmp_path)
    await (await EventLog.create(patient, "a")).close()
    with anyio.fail_after(20):
        log = await open_impatiently(store, "a")
        with disk.hang("write") as hang:
            with pytest.raises(StoreError):
                await log.append([[said("one")]])
            await hang.reached()
        while (await read_log(patient, "a")).head < 1:
            await anyio.lowlevel.checkpoint()
        with pytest.raises(ConversationLocked):
            await patient.open("a")
        await log.close()
        await (await wait_until_unlocked(patient, "a")).close()


async def test_an_opening_that_outlives_its_bound_holds_nothing_when_it_ends(tmp_path: Path) -> None:
    disk = FaultyDisk()
    store, patient = FileStore(tmp_path, disk=disk, seconds=SHORT), FileStore(tmp_path)
    await (await EventLog.create(patient, "a")).close()
    descriptors = len(os.listdir("/dev/fd"))
    with anyio.fail_after(20):
        with disk.hang("open_append") as hang:
            with pytest.raises(StoreError, match=r"Opening conversation 'a' .* does not answer"):
                await EventLog.open(store, "a")
            await hang.reached()
            with pytest.raises(ConversationLocked):
                await patient.open("a")
        await (await wait_until_unlocked(patient, "a")).close()
    assert len(os.listdir("/dev/fd")) <= descriptors


async def test_a_creation_that_outlives_its_bound_holds_nothing_when_it_ends(tmp_path: Path) -> None:
    disk = FaultyDisk()
    store, patient = FileStore(tmp_path, disk=disk, seconds=SHORT), FileStore(tmp_path)
    with anyio.fail_after(20):
        with disk.hang("sync_folder", at=2):
            with pytest.raises(StoreError, match="Making conversation 'a'"):
                await EventLog.create(store, "a")
            assert await patient.holder("a")
        # Nobody has got it, so the thread takes it back.
        while await anyio.to_thread.run_sync(os.listdir, tmp_path):
            await anyio.lowlevel.checkpoint()
        await (await EventLog.create(patient, "a")).close()


async def test_work_that_never_began_does_not_begin_later(tmp_path: Path) -> None:
    """All threads of the stores hang; an append that waits for one is given up, and must not write when one is free."""
    patient, disk = FileStore(tmp_path), FaultyDisk()
    names = "bcdefghi"
    for name in names:
        await (await EventLog.create(patient, name)).close()
    await (await EventLog.create(patient, "a")).close()

    async def open_and_close(name: str) -> None:
        await (await FileStore(tmp_path, disk=disk).open(name)).close()

    with anyio.fail_after(30), ExitStack() as stack:
        log = await open_impatiently(FileStore(tmp_path, seconds=SHORT), "a")
        hangs = [stack.enter_context(disk.hang("read", at=number)) for number, _ in enumerate(names, 1)]
        async with anyio.create_task_group() as group:
            for name in names:
                group.start_soon(open_and_close, name)
            for hang in hangs:
                await hang.reached()
            with pytest.raises(StoreError, match="does not answer"):
                await log.append([[said("one")]])
            for hang in hangs:
                hang.release()
    await log.close()
    assert (await read_log(patient, "a")).head == 0
    await (await EventLog.open(patient, "a")).close()


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EIO, errno.EROFS, errno.EDQUOT])
@pytest.mark.parametrize("operation", ["write", "sync"])
async def test_a_failing_disk_is_an_error_that_says_what_to_do(
    tmp_path: Path, operation: DiskOperationName, code: int
) -> None:
    disk = FaultyDisk()
    store = FileStore(tmp_path, disk=disk)
    log = await EventLog.create(store, "a")
    await log.append([[said("one"), said("two")]])
    disk.fail(operation, times=None, code=code)
    with pytest.raises(StoreError) as raised:
        await log.append([[said("three"), said("four")]])
    assert os.strerror(code) in str(raised.value)
    assert "Free space or repair the disk, then open it again" in str(raised.value)
    assert str(tmp_path / "a") in str(raised.value)
    assert log.state.head == 2
    disk.normalize()
    with pytest.raises(StoreError, match="takes no more events"):
        await log.append([[said("three")]])
    await log.close()
    assert (await read_log(store, "a")).snapshot() == log.state.snapshot()


@pytest.mark.parametrize("at", range(1, 8))
async def test_a_blob_that_can_not_be_written_leaves_no_line_that_names_it(tmp_path: Path, at: int) -> None:
    disk = FaultyDisk()
    store = FileStore(tmp_path, disk=disk)
    log = await EventLog.create(store, "a")
    disk.fail(at=at)
    large = said(LARGE)
    with pytest.raises(StoreError, match="No space left"):
        await log.append([[said("small"), large]])
    await log.close()
    again = await EventLog.open(store, "a")
    assert again.state.head == 0
    await again.append([[large]])
    await again.close()
    assert (await read_log(store, "a")).head == 1


@pytest.mark.parametrize("at", range(1, 18))
async def test_a_creation_that_fails_anywhere_can_be_made_again(tmp_path: Path, at: int) -> None:
    disk = FaultyDisk()
    store = FileStore(tmp_path / "new" / "logs", disk=disk)
    disk.fail(at=at)
    with pytest.raises(StoreError, match="No space left"):
        await EventLog.create(store, "a")
    try:
        log = await EventLog.create(store, "a")
    except StoreError:
        log = await EventLog.open(store, "a")  # it failed when all but the last sync was done
    await log.append([[said("one")]])
    await log.close()


FILLS_UP = """
    import resource, signal, sys
    import anyio
    from agentcore import FileStore, Message
    from agentcore.errors import StoreError
    from agentcore.events import MessageEvent
    from agentcore.record import EventLog, read_log

    async def main():
        store = FileStore(sys.argv[1])
        log = await EventLog.create(store, "a")
        try:
            while True:
                await log.append([[MessageEvent(message=Message.user("x" * 100)) for _ in range(7)]])
        except StoreError as error:
            print(error)
        await log.close()
        print(log.state.head)
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        again = await EventLog.open(store, "a")
        assert (again.state.head, again.repaired) == (log.state.head, None)
        await again.append([[MessageEvent(message=Message.user("room again"))]])
        await again.close()

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
    anyio.run(main)
"""


async def test_a_file_that_may_not_grow_ends_at_what_was_acknowledged(tmp_path: Path) -> None:
    # A real short write, then a real refusal: the limit is none of the multiples of a line.
    ended = await run_python(FILLS_UP, str(tmp_path))
    told, head = ended.rsplit("\n", 1)
    assert "File too large" in told
    assert "Free space or repair the disk" in told
    assert int(head) % 7 == 0
    assert int(head) > 0
    assert (await read_log(FileStore(tmp_path), "a")).head == int(head) + 1


MAY_ONLY_READ = """
    import os, sys
    import anyio
    from agentcore import FileStore
    from agentcore.errors import StoreError
    from agentcore.record import EventLog, read_log

    async def tour(store):
        told = [str((await read_log(store, "a")).head)]
        for action in (EventLog.open(store, "a"), EventLog.create(store, "b"), store.repair("a"), store.delete("a")):
            try:
                log = await action
                if isinstance(log, EventLog):
                    await log.close()
            except StoreError as error:
                told.append(f"{type(error).__name__} {error}")
        return told

    async def main():
        # Once as it works, so that all is imported: another user may not look where it is imported from.
        warm = FileStore(sys.argv[2])
        await (await EventLog.create(warm, "a")).close()
        assert len(await tour(warm)) == 1
        if os.getuid() == 0:
            os.setuid(65534)
        print(*await tour(FileStore(sys.argv[1])), sep="\\n")

    anyio.run(main)
"""


@pytest.fixture
def open_folder() -> Iterator[str]:
    """Give a folder that is not below pytest's own, into which only its owner may look."""
    folder = tempfile.mkdtemp()
    yield folder
    for path, folders, _ in os.walk(folder):
        for name in folders:
            os.chmod(os.path.join(path, name), 0o755)
    os.chmod(folder, 0o755)
    shutil.rmtree(folder)


@pytest.mark.slow
async def test_a_folder_that_may_only_be_read_is_read_and_not_written(open_folder: str, tmp_path: Path) -> None:
    log = await EventLog.create(FileStore(open_folder), "a")
    await log.append([[said("one")]])
    await log.close()
    await anyio.to_thread.run_sync(_let_others_read, open_folder)
    head, *errors = (await run_python(MAY_ONLY_READ, open_folder, str(tmp_path))).splitlines()
    assert head == "1"
    assert len(errors) == 4
    for error in errors:
        assert error.startswith("StoreError")
        assert "Permission denied" in error
    assert (await read_log(FileStore(open_folder), "a")).head == 1


def _let_others_read(folder: str) -> None:
    for path, folders, files in os.walk(folder):
        for name in (*folders, *files):
            os.chmod(os.path.join(path, name), 0o555)
    os.chmod(folder, 0o555)


async def run_python(program: str, *arguments: str) -> str:
    with anyio.fail_after(60):
        ended = await anyio.run_process([sys.executable, "-c", dedent(program), *arguments], check=False)
    assert ended.returncode == 0, ended.stderr.decode()
    return ended.stdout.decode().strip()


async def test_a_log_that_is_closed_while_an_append_waits_for_a_thread_is_not_written_to(tmp_path: Path) -> None:
    """By the time that there is a thread the descriptor is closed, and may be another file's."""
    disk, began = FaultyDisk(), list[bool]()
    await (await EventLog.create(FileStore(tmp_path), "a")).close()
    log = await FileStore(tmp_path, disk=disk).open("a")
    work = ThreadWork(lambda: began.append(True))
    assert not work.hand_over(lambda: began.append(False))
    await log.close()
    with pytest.raises(StoreError, match="Writing did not begin: it was closed before"):
        await work.wait(20, "Writing")
    assert began == []


async def test_two_appends_to_one_log_at_once_are_refused(tmp_path: Path) -> None:
    disk = FaultyDisk()
    log = await FileStore(tmp_path, disk=disk).create("a", format_version=1)
    one = Record(1, 1, b'{"seq":1}')
    with anyio.fail_after(20):
        async with anyio.create_task_group() as group:
            with disk.hang("write") as hang:
                group.start_soon(log.append, [one])
                await hang.reached()
                with pytest.raises(StoreError, match="append one after the other"):
                    await log.append([one])
    await log.append([Record(2, 2, b'{"seq":2}')])
    await log.close()
