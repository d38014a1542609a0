"""Who writes a log: asked without taking the lock, and let go of by whoever closes it, children included."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import anyio
import anyio.lowlevel
import pytest

from agentcore.errors import ConversationLocked, ConversationNotFound
from agentcore.record import EventLog, FileStore, MemoryStore, Store
from agentcore.record.files.layout import find_holder, lock_file, unlock


async def test_a_log_that_is_closed_is_free_although_a_child_has_its_files(tmp_path: Path) -> None:
    """As a child is between fork and exec: it has all open files of its parent, locks included."""
    store = FileStore(tmp_path)
    log = await EventLog.create(store, "a")
    lock = next(fd for fd in map(int, os.listdir("/dev/fd")) if is_same(fd, tmp_path / "a" / "lock"))
    async with await anyio.open_process(
        [sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE, pass_fds=[lock]
    ) as child:
        assert await store.holder("a")
        await log.close()
        assert await store.holder("a") is None
        await (await EventLog.open(store, "a")).close()
        await store.repair("a")
        await store.delete("a")
        child.kill()


def is_same(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except OSError:
        return False


async def test_the_holder_is_another_process_until_that_is_killed(tmp_path: Path) -> None:
    program = """
        import sys, anyio
        from agentcore import FileStore

        async def main():
            await FileStore(sys.argv[1]).create("a", format_version=1)
            print("holding", flush=True)
            await anyio.sleep_forever()

        anyio.run(main)
    """
    store = FileStore(tmp_path)
    async with await anyio.open_process([sys.executable, "-c", dedent(program), str(tmp_path)]) as holder:
        assert holder.stdout is not None
        with anyio.fail_after(60):
            assert b"holding" in await holder.stdout.receive()
            told = await store.holder("a")
            assert told is not None
            assert told.startswith(f"process {holder.pid} on {os.uname().nodename} since 2")
            holder.send_signal(signal.SIGKILL)
            await holder.wait()
        assert await store.holder("a") is None


async def test_looking_makes_no_file_and_needs_none(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await (await EventLog.create(store, "a")).close()
    (tmp_path / "a" / "lock").unlink()
    assert await store.holder("a") is None
    assert not (tmp_path / "a" / "lock").exists()


@pytest.mark.parametrize("kind", ["files", "memory"])
async def test_of_a_log_that_is_not_there_nobody_is_told(tmp_path: Path, kind: str) -> None:
    store: Store = FileStore(tmp_path) if kind == "files" else MemoryStore()
    with pytest.raises(ConversationNotFound):
        await store.holder("a")


async def test_somebody_who_looks_for_long_is_waited_for_and_told_from_a_writer(tmp_path: Path) -> None:
    """A process that is stopped while it looks: its share of the lock keeps writers out, but not for ever."""
    path = str(tmp_path / "lock")
    await take_and_give_back(path)
    program = "import fcntl, sys; f = open(sys.argv[1]); fcntl.flock(f, fcntl.LOCK_SH); print(1, flush=True); sys.stdin.read()"
    async with await anyio.open_process([sys.executable, "-c", program, path], stdin=subprocess.PIPE) as looking:
        assert looking.stdout is not None
        await looking.stdout.receive()
        assert await anyio.to_thread.run_sync(find_holder, path) is None
        with pytest.raises(ConversationLocked, match="a process that looks at its lock does not go on"):
            await anyio.to_thread.run_sync(lock_file, path, "a")
        async with anyio.create_task_group() as group:
            group.start_soon(take_and_give_back, path)
            await anyio.lowlevel.checkpoint()
            looking.kill()


async def take_and_give_back(path: str) -> None:
    await anyio.to_thread.run_sync(lambda: unlock(lock_file(path, "a")))
