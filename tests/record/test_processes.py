"""Several processes and one log: who may write, and what is left of one that was killed."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from random import Random
from textwrap import dedent
from typing import Protocol

import anyio
import anyio.lowlevel
import pytest
from anyio.abc import Process
from anyio.streams.text import TextReceiveStream

from agentcore.errors import ConversationLocked
from agentcore.events import MessageEvent
from agentcore.messages import Message
from agentcore.record import BLOB_THRESHOLD, EventLog, FileStore, read_log
from warm_python import Forked, Output, WarmPython

HOLDER = """
    import sys
    import anyio
    from agentcore import FileStore
    from agentcore.record import EventLog

    async def main():
        log = await EventLog.create(FileStore(sys.argv[1]), "a")
        print("holding", flush=True)
        await anyio.to_thread.run_sync(sys.stdin.read)
        await log.close()
        print("closed", flush=True)

    anyio.run(main)
"""

WRITER = f"""
    import sys
    import anyio
    from agentcore import FileStore, Message
    from agentcore.errors import ConversationNotFound
    from agentcore.events import MessageEvent
    from agentcore.record import EventLog

    def said(n):
        text = f"number {{n}}"
        return MessageEvent(message=Message.user(text + "x" * {BLOB_THRESHOLD} if n % 20 == 0 else text))

    async def main():
        store = FileStore(sys.argv[1], durability=sys.argv[2])
        try:
            log = await EventLog.open(store, "a")
        except ConversationNotFound:
            log = await EventLog.create(store, "a")
        print("open", log.state.head, log.epoch, flush=True)
        while True:
            head = log.state.head
            groups = [[said(head + 1)], [said(head + 2), said(head + 3), said(head + 4)], [said(head + 5)]]
            await log.append(groups)
            # Through a pipe, which a kill does not empty: what is in it was acknowledged.
            print("kept", log.state.head, flush=True)

    anyio.run(main)
"""


@asynccontextmanager
async def running(program: str, *arguments: str) -> AsyncGenerator[Process]:
    process = await anyio.open_process(
        [sys.executable, "-c", dedent(program), *arguments], stdin=subprocess.PIPE, stderr=None
    )
    async with process:
        try:
            yield process
        finally:
            if process.returncode is None:
                process.kill()


async def first_line(process: Process) -> str:
    assert process.stdout is not None
    text = ""
    with anyio.fail_after(60):
        async for piece in TextReceiveStream(process.stdout):
            text += piece
            if "\n" in text:
                break
    return text.split("\n", 1)[0]


async def test_a_second_process_is_told_who_writes_the_log(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    async with running(HOLDER, str(tmp_path)) as holder:
        assert await first_line(holder) == "holding"
        with pytest.raises(ConversationLocked, match=f"is being written by process {holder.pid} on ") as locked:
            await store.open("a")
        assert locked.value.holder.startswith(f"process {holder.pid} on {os.uname().nodename} since 2")
        with pytest.raises(ConversationLocked, match=f"process {holder.pid} on "):
            await store.delete("a")
        with pytest.raises(ConversationLocked, match=f"process {holder.pid} on "):
            await store.repair("a")
        assert (await read_log(store, "a")).head == 0
        assert holder.stdin is not None
        await holder.stdin.aclose()
        assert await first_line(holder) == "closed"
        await (await EventLog.open(store, "a")).close()


async def test_the_lock_of_a_killed_process_is_free(tmp_path: Path) -> None:
    async with running(HOLDER, str(tmp_path)) as holder:
        assert await first_line(holder) == "holding"
        holder.kill()
        with anyio.fail_after(30):
            await holder.wait()
        log = await EventLog.open(FileStore(tmp_path), "a")
        await log.append([[MessageEvent(message=Message.user("mine now"))]])
        await log.close()


async def test_a_program_that_a_writer_starts_does_not_hold_its_log(tmp_path: Path) -> None:
    """A shell that outlives its conversation must not keep it locked."""
    log = await EventLog.create(FileStore(tmp_path), "a")
    async with running("import sys; print('here', flush=True); sys.stdin.read()") as child:
        assert await first_line(child) == "here"
        await log.close()
        await (await EventLog.open(FileStore(tmp_path), "a")).close()


class Start(Protocol):
    """Starts a program, which ends with the block at the latest."""

    def __call__(self, program: str, *arguments: str) -> AbstractAsyncContextManager[tuple[Forked, Output]]: ...


@pytest.fixture
def start(warm: WarmPython, surroundings: dict[str, str], tmp_path: Path) -> Start:
    """Give what starts a program soon: it is started often."""
    file = tmp_path / "program.py"

    def started(program: str, *arguments: str) -> AbstractAsyncContextManager[tuple[Forked, Output]]:
        file.write_text(dedent(program))
        return warm.telling([str(file), *arguments], env=surroundings, cwd=tmp_path)

    return started


async def kill_while_writing(start: Start, folder: Path, random: Random, durability: str, kills: int) -> int:
    """Kill a writer again and again, each time somewhere else; give how many events there were in the end."""
    acknowledged = epoch = 0
    for _ in range(kills):
        wanted = random.randint(0, 30)
        told = ""
        async with start(WRITER, str(folder), durability) as (writer, output):
            with anyio.fail_after(120):
                async for piece in TextReceiveStream(output):
                    told += piece
                    if told.count("\n") > wanted:
                        break
                # Somewhere in the next few appends, which go on while this runs.
                for _ in range(random.randint(0, 200)):
                    await anyio.lowlevel.checkpoint()
                os.kill(writer.pid, signal.SIGKILL)
                async for piece in TextReceiveStream(output):
                    told += piece
                await writer.wait()
        *whole, _torn = told.split("\n")
        heads = [int(line.split()[1]) for line in whole]
        before, epoch = epoch, int(whole[0].split()[2])
        assert epoch > before
        assert heads[0] >= acknowledged, "what an earlier writer had acknowledged was gone"
        acknowledged = heads[-1]
        state = await read_log(FileStore(folder), "a")
        assert state.head >= acknowledged
        for event in state.events:
            assert isinstance(event, MessageEvent)
            assert event.text.startswith(f"number {event.seq}")
        assert state.is_settled(acknowledged)
    return acknowledged


# On one event loop: the writer is what is tested, and it runs on its own.
@pytest.mark.parametrize("durability", ["sync", "flush"])
def test_killed_anywhere_a_writer_loses_nothing_that_it_acknowledged(
    start: Start, tmp_path: Path, durability: str
) -> None:
    assert anyio.run(kill_while_writing, start, tmp_path / "logs", Random(7), durability, 5) > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_killed_two_hundred_times_a_writer_loses_nothing_that_it_acknowledged(
    start: Start, tmp_path: Path, seed: int
) -> None:
    assert anyio.run(kill_while_writing, start, tmp_path / "logs", Random(seed), "sync", 10) > 0
