"""Stores that end the process, refuse to delete or are left while they open: nobody waits for ever, and all is told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcore import (
    Agent,
    Conversation,
    Host,
    MemoryStore,
)
from agentcore.errors import (
    ConversationClosed,
    ConversationError,
    StoreError,
)
from agentcore.record import Record, StoredLog
from agentcore.testing import ScriptedLLM, call, say


class Boom(BaseException):
    """Not an Exception: the end of a test, of a process, of a greenlet."""


class StrangeStore(MemoryStore):
    """Does something strange at its n-th append."""

    def __init__(self, n: int, act: Callable[[], Awaitable[None]]) -> None:
        super().__init__()
        self.n = n
        self.act = act

    async def create(self, conversation_id: str, *, format_version: int) -> Any:
        return _StrangeLog(await super().create(conversation_id, format_version=format_version), self)


class _StrangeLog:
    def __init__(self, log: StoredLog, store: StrangeStore) -> None:
        self._log = log
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def append(self, records: Sequence[Record]) -> None:
        self._store.n -= 1
        if self._store.n == 0:
            await self._store.act()
        await self._log.append(records)


@pytest.mark.parametrize("n", range(1, 6))
async def test_a_store_that_ends_the_process_leaves_nobody_waiting(tmp_path: Path, n: int) -> None:
    async def end() -> None:
        raise Boom("out")

    agent = Agent(llm=ScriptedLLM([call("think", thought="hm"), say("done")]))
    with pytest.raises(Boom), anyio.fail_after(10):
        async with Conversation(agent, tmp_path, store=StrangeStore(n, end)) as conversation:
            await conversation.run("go")


@pytest.mark.parametrize("n", range(2, 6))
async def test_a_dead_store_that_was_told_of_is_not_told_of_again_on_leaving(tmp_path: Path, n: int) -> None:
    async def end() -> None:
        raise OSError("no space left")

    agent = Agent(llm=ScriptedLLM([call("think", thought="hm"), say("done")]))
    with anyio.fail_after(10):
        async with Conversation(agent, tmp_path, store=StrangeStore(n, end)) as conversation:
            with pytest.raises(StoreError, match="no space left"):
                await conversation.run("go")


async def test_a_host_closes_conversations_of_one_id_in_two_stores(tmp_path: Path) -> None:
    agent = Agent(llm=ScriptedLLM([]))
    with anyio.fail_after(10):
        async with Host() as host:
            for _ in range(2):
                await host.open(agent, tmp_path, id="same", store=MemoryStore())


async def test_a_host_that_was_left_says_so(tmp_path: Path) -> None:
    async with Host() as host:
        pass
    with pytest.raises(ConversationError, match="not open"):
        await host.open(Agent(llm=ScriptedLLM([])), tmp_path)


async def test_a_conversation_that_opens_while_its_host_is_left_is_closed(tmp_path: Path) -> None:
    opening, go = anyio.Event(), anyio.Event()
    opened: list[Conversation] = []

    async def wait() -> None:
        opening.set()
        await go.wait()

    async def open_one(host: Host) -> None:
        opened.append(await host.open(Agent(llm=ScriptedLLM([])), tmp_path, store=StrangeStore(1, wait)))

    async def let_go() -> None:
        await anyio.wait_all_tasks_blocked()
        go.set()

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            async with Host() as host:
                tasks.start_soon(open_one, host)
                await opening.wait()
                tasks.start_soon(let_go)
    with pytest.raises(ConversationClosed):
        await opened[0].send("hello")


async def test_a_log_that_can_not_be_deleted_is_told_to_who_asked(tmp_path: Path) -> None:
    class Keeper(MemoryStore):
        async def delete(self, conversation_id: str) -> None:
            raise StoreError("It is kept by law.")

    async with Host() as host:
        conversation = await host.open(Agent(llm=ScriptedLLM([])), tmp_path, store=Keeper())
        with pytest.raises(StoreError, match="by law"):
            await conversation.delete()


async def test_a_closed_conversation_can_not_be_deleted_in_silence(tmp_path: Path) -> None:
    store = MemoryStore()
    async with Conversation(Agent(llm=ScriptedLLM([])), tmp_path, store=store) as conversation:
        await conversation.close()
        with pytest.raises(ConversationClosed):
            await conversation.delete()
    assert len(await store.list()) == 1
