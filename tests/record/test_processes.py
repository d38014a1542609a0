"""Several processes and one log: who may write, and what is left of one that was killed."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path
from random import Random
from textwrap import dedent

import anyio
import anyio.lowlevel
import pytest

from agentcore.errors import ConversationLocked
from agentcore.events import MessageEvent
from agentcore.messages import Message
from agentcore.record import BLOB_THRESHOLD, EventLog, FileStore, read_log
from programs import start_python

HOLDER = """
    import sys
    import anyio
    from agentcore import FileStore
    from agentcore.record import EventLog

    async def main():
        log = await EventLog.create(FileStore(sys.argv[1]), "a")
        print("holding", flush=True)
        await anyio.sleep_forever()

    anyio.run(main)
"""

# Writes two logs at a time, which differ in their durability.
WRITER = f"""
    import sys
    import anyio
    from agentcore import FileStore, Message
    from agentcore.errors import ConversationNotFound
    from agentcore.events import MessageEvent
    from agentcore.record import EventLog

    def message(n):
        text = f"number {{n}}"
        return MessageEvent(message=Message.user(text + "x" * {BLOB_THRESHOLD} if n % 20 == 0 else text))

    async def write(durability):
        store = FileStore(sys.argv[1], durability=durability)
        try:
            log = await EventLog.open(store, durability)
        except ConversationNotFound:
            log = await EventLog.create(store, durability)
        print(durability, log.state.head, log.epoch, flush=True)
        while True:
            head = log.state.head
            groups = [
                [message(head + 1)], [message(head + 2), message(head + 3), message(head + 4)], [message(head + 5)]
            ]
            await log.append(groups)
            # Through a pipe, which a kill does not empty: what is in it was acknowledged.
            print(durability, log.state.head, flush=True)

    async def main():
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(write, "sync")
            tasks.start_soon(write, "flush")

    anyio.run(main)
"""


async def test_a_second_process_cannot_write_the_log_until_the_first_is_killed(
    surroundings: dict[str, str], tmp_path: Path
) -> None:
    store = FileStore(tmp_path)
    async with start_python("-c", dedent(HOLDER), tmp_path, env=surroundings, cwd=tmp_path) as holder:
        assert await holder.line() == "holding"
        pid = holder.process.pid
        with pytest.raises(ConversationLocked, match=f"is being written by process {pid} on ") as locked:
            await store.open("a")
        assert locked.value.holder.startswith(f"process {pid} on {os.uname().nodename} since 2")
        with pytest.raises(ConversationLocked, match=f"process {pid} on "):
            await store.delete("a")
        with pytest.raises(ConversationLocked, match=f"process {pid} on "):
            await store.repair("a")
        assert (await read_log(store, "a")).head == 0
        await holder.kill()
        log = await EventLog.open(store, "a")
        await log.append([[MessageEvent(message=Message.user("mine now"))]])
        await log.close()


async def test_a_program_that_a_writer_starts_does_not_hold_its_log(tmp_path: Path) -> None:
    """A shell that outlives its conversation must not keep it locked."""
    log = await EventLog.create(FileStore(tmp_path), "a")
    async with await anyio.open_process(["cat"], stdin=subprocess.PIPE) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        await child.stdin.send(b"here")
        assert await child.stdout.receive() == b"here"
        await log.close()
        await (await EventLog.open(FileStore(tmp_path), "a")).close()
        child.kill()


async def kill_while_writing(env: dict[str, str], folder: Path, random: Random, kills: int) -> int:
    """Kill a writer again and again, each time somewhere else; return how many events there were in the end."""
    acknowledged = dict.fromkeys(("sync", "flush"), 0)
    epochs = dict(acknowledged)
    for _ in range(kills):
        wanted = random.randint(2, 60)
        async with start_python("-c", dedent(WRITER), folder, env=env, cwd=folder) as writer:
            lines = [await writer.line() for _ in range(wanted)]
            # Somewhere in the next few appends, which go on while this runs.
            for _ in range(random.randint(0, 200)):
                await anyio.lowlevel.checkpoint()
            lines += await writer.kill()
        for durability, before in acknowledged.items():
            heads = [line.split()[1:] for line in lines if line.startswith(durability)]
            if not heads:
                continue
            epoch, epochs[durability] = epochs[durability], int(heads[0][1])
            assert epochs[durability] > epoch
            assert int(heads[0][0]) >= before, "what an earlier writer had acknowledged was gone"
            acknowledged[durability] = int(heads[-1][0])
            state = await read_log(FileStore(folder), durability)
            assert state.head >= acknowledged[durability]
            for event in state.events:
                assert isinstance(event, MessageEvent)
                assert event.text.startswith(f"number {event.seq}")
            assert state.is_settled(acknowledged[durability])
    return min(acknowledged.values())


# On one event loop: the writer is what is tested, and it runs on its own.
def test_killed_anywhere_a_writer_loses_nothing_that_it_acknowledged(
    surroundings: dict[str, str], tmp_path: Path
) -> None:
    assert anyio.run(kill_while_writing, surroundings, tmp_path, Random(7), 3) > 0


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))  # two logs are killed each time
def test_killed_two_hundred_times_a_writer_loses_nothing_that_it_acknowledged(
    surroundings: dict[str, str], tmp_path: Path, seed: int
) -> None:
    assert anyio.run(kill_while_writing, surroundings, tmp_path, Random(seed), 10) > 0
