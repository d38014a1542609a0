"""Many conversations at once in one process."""

from __future__ import annotations

import threading
from pathlib import Path

import anyio
import pytest

from agentcore import Conversation, FileStore, Host, LocalWorkspace, MemoryStore, RunResult
from agentcore.testing import Gate, call, say
from talks import FINISHED, ping, scripted


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
@pytest.mark.parametrize("count", [200, pytest.param(1_000, marks=pytest.mark.slow)])
async def test_conversations_work_at_once_without_a_thread_each(tmp_path: Path, count: int) -> None:
    gate = Gate()
    results: list[RunResult] = []
    store = MemoryStore()
    before = threading.active_count()
    with anyio.fail_after(120):
        async with LocalWorkspace(tmp_path) as workspace, Host() as host, anyio.create_task_group() as tasks:

            async def one(number: int) -> None:
                # Each waits in its second step until all of them are there: they really are at work at once.
                agent = scripted([call("ping"), gate.hold(say(f"done {number}"))], ping)
                conversation = await host.open(agent, workspace, store=store, id=f"c{number}")
                results.append(await conversation.run("go"))

            for number in range(count):
                tasks.start_soon(one, number)
            await gate.arrived(count)
            assert threading.active_count() - before <= 16
            gate.open()
    assert {result.status for result in results} == {FINISHED}
    assert {result.text for result in results} == {f"done {number}" for number in range(count)}
    assert len(await store.list()) == count


async def test_a_hundred_conversations_write_files_with_a_few_threads(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "logs")
    before = threading.active_count()
    most = 0
    with anyio.fail_after(60):
        async with LocalWorkspace(tmp_path) as workspace, Host() as host, anyio.create_task_group() as tasks:

            async def one(number: int) -> None:
                nonlocal most
                agent = scripted([call("ping"), say("done")], ping)
                conversation: Conversation = await host.open(agent, workspace, store=store, id=f"c{number}")
                assert (await conversation.run("go")).text == "done"
                most = max(most, threading.active_count() - before)

            for number in range(100):
                tasks.start_soon(one, number)
    assert most <= 16
    assert len(await store.list()) == 100
