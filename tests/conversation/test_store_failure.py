"""A store that dies: everybody is told, nothing hangs, what was acknowledged is there."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcore import Agent, AlwaysConfirm, Conversation, Host, Limits, MemoryStore
from agentcore.errors import ConversationLocked, StoreError
from agentcore.record import Record, StoredLog
from agentcore.testing import ScriptedLLM, call, say
from agentcore.tools import tool


@tool(resources=())
async def ping() -> str:
    """Ping."""
    return "pong"


class DyingStore(MemoryStore):
    """Refuses every append from the n-th on."""

    def __init__(self, appends: int) -> None:
        super().__init__()
        self.left = appends

    async def create(self, conversation_id: str, *, format_version: int) -> Any:
        return DyingLog(await super().create(conversation_id, format_version=format_version), self)


class DyingLog:
    """Passes everything on until its store dies."""

    def __init__(self, log: StoredLog, store: DyingStore) -> None:
        self._log = log
        self._store = store

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def append(self, records: Sequence[Record]) -> None:
        self._store.left -= 1
        if self._store.left < 0:
            raise StoreError("no space left on device")
        await self._log.append(records)


@pytest.mark.parametrize("appends", range(1, 7))
async def test_whenever_the_store_dies_everybody_is_told_and_what_was_kept_is_whole(
    tmp_path: Path, appends: int
) -> None:
    store = DyingStore(appends)
    agent = Agent(llm=ScriptedLLM([call("ping"), call("ping"), say("done")]), tools=[ping])
    told = 0
    with anyio.fail_after(10):
        try:
            async with Conversation(agent, tmp_path, store=store, id="a") as conversation:
                with pytest.raises(StoreError, match="no space"):
                    await conversation.run("go")
                told += 1
                with pytest.raises(StoreError, match="no space"):
                    await conversation.send("still there?")
                assert conversation.state.head > 0
        except StoreError:
            assert not told
    if appends:
        store.left = 1_000
        async with Conversation(agent, tmp_path, store=store, id="a") as conversation:
            assert not [a for a in conversation.state.open_actions.values() if not a.waits]


async def test_one_dead_store_leaves_the_other_conversations_of_a_host_alone(tmp_path: Path) -> None:
    with anyio.fail_after(10):
        async with Host() as host:
            doomed = await host.open(Agent(llm=ScriptedLLM([say("x")])), tmp_path, store=DyingStore(2))
            healthy = await host.open(Agent(llm=ScriptedLLM([say("fine")])), tmp_path)
            with pytest.raises(StoreError):
                await doomed.run("go")
            assert (await healthy.run("go")).text == "fine"
            await doomed.close()


async def test_a_failure_that_nobody_asked_about_is_raised_on_leaving(tmp_path: Path) -> None:
    @tool(resources=())
    async def quiet() -> str:
        """Let the store die behind the caller's back."""
        return "ok"

    store = DyingStore(3)
    agent = Agent(llm=ScriptedLLM([call("quiet"), say("done")]), tools=[quiet])
    with pytest.raises(StoreError, match="no space"), anyio.fail_after(10):
        async with Conversation(agent, tmp_path, store=store) as conversation:
            async for _ in conversation.run_stream("go"):
                break
            async for _ in conversation.events():
                pass


COMMANDS: dict[str, Callable[[Conversation], Awaitable[object]]] = {
    "send": lambda conversation: conversation.send("hello"),
    "set_limits": lambda conversation: conversation.set_limits(Limits(steps=3)),
    "set_title": lambda conversation: conversation.set_title("A title"),
    "set_tags": lambda conversation: conversation.set_tags({"a": "b"}),
    "set_policy": lambda conversation: conversation.set_policy(AlwaysConfirm()),
    "add_secrets": lambda conversation: conversation.add_secrets({"KEY": "a-secret-value"}),
    "pause": lambda conversation: conversation.pause(),
    "rewind": lambda conversation: conversation.rewind(to=0),
    "run_stream": lambda conversation: anext(conversation.run_stream("go")),
}


@pytest.mark.parametrize("name", COMMANDS)
async def test_a_dead_store_that_a_command_met_is_not_told_of_again_on_leaving(tmp_path: Path, name: str) -> None:
    agent = Agent(llm=ScriptedLLM([say("done")]))
    with anyio.fail_after(10):
        async with Conversation(agent, tmp_path, store=DyingStore(1)) as conversation:
            with pytest.raises(StoreError, match="no space"):
                await COMMANDS[name](conversation)


async def test_a_second_handle_on_one_log_is_refused(tmp_path: Path) -> None:
    store = MemoryStore()
    agent = Agent(llm=ScriptedLLM([]))
    async with Conversation(agent, tmp_path, store=store, id="a"):
        with pytest.raises(ConversationLocked):
            async with Conversation(agent, tmp_path, store=store, id="a"):
                pass
