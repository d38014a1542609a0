"""A host: one handle for each conversation that is open in it."""

from __future__ import annotations

import asyncio  # noqa: TID251  its own cancellation, which goes through shields, is what is tested
from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agentcore import Agent, AlwaysConfirm, Conversation, FileStore, Host, Limits, MemoryStore, NeverConfirm
from agentcore.errors import ConversationError, ConversationNotFound
from agentcore.testing import ScriptedLLM, say


async def test_opening_an_open_id_gives_the_same_handle(tmp_path: Path) -> None:
    agent, store = Agent(llm=ScriptedLLM([say("x")])), MemoryStore()
    with anyio.fail_after(10):
        async with Host() as host:
            first = await host.open(agent, tmp_path, id="a", store=store, limits=Limits(steps=3))
            assert await host.open(agent, tmp_path, id="a", store=store, limits=Limits(steps=3)) is first
            assert await host.open(None, tmp_path, id="a", store=store, confirm=NeverConfirm()) is first
            assert host.get("a") is first
            assert host.get("a", MemoryStore()) is None
            assert host.conversations == (first,)


async def test_many_who_open_one_id_at_once_share_a_handle(tmp_path: Path) -> None:
    agent, store = Agent(llm=ScriptedLLM([say("x")])), MemoryStore()
    opened: list[Conversation] = []
    with anyio.fail_after(10):
        async with Host() as host:

            async def open_it() -> None:
                opened.append(await host.open(agent, tmp_path, id="a", store=store))

            async with anyio.create_task_group() as tasks:
                for _ in range(5):
                    tasks.start_soon(open_it)
            assert len(opened) == 5
            assert len(set(map(id, opened))) == 1


async def test_what_differs_is_named(tmp_path: Path) -> None:
    store = MemoryStore()
    async with Host() as host:
        await host.open(Agent(llm=ScriptedLLM([])), tmp_path, id="a", store=store)
        with pytest.raises(ConversationError, match="another limits and another confirm"):
            await host.open(None, tmp_path, id="a", store=store, limits=Limits(steps=1), confirm=AlwaysConfirm())
        with pytest.raises(ConversationError, match="another agent"):
            await host.open(Agent(llm=ScriptedLLM([])), tmp_path, id="a", store=store)
        with pytest.raises(ConversationError, match="the secret 'TOKEN'"):
            await host.open(None, tmp_path, id="a", store=store, secrets={"TOKEN": "a long value"})


async def test_a_conversation_that_was_closed_is_opened_anew(tmp_path: Path) -> None:
    agent, store = Agent(llm=ScriptedLLM([say("x")])), MemoryStore()
    with anyio.fail_after(10):
        async with Host() as host:
            first = await host.open(agent, tmp_path, id="a", store=store)
            handles: list[Conversation] = []

            async def open_again() -> None:
                handles.append(await host.open(agent, tmp_path, id="a", store=store))

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(first.close)
                while host.get("a") is not None:
                    await checkpoint()
                tasks.start_soon(open_again)
            (second,) = handles
            assert second is not first
            assert (await second.run("go")).text == "x"
            await second.close()
            assert host.conversations == ()


async def test_a_host_keeps_nothing_of_what_it_could_not_open_or_has_closed(tmp_path: Path) -> None:
    agent, store = Agent(llm=ScriptedLLM([say("x")])), MemoryStore()
    async with Host() as host:
        with pytest.raises(ConversationNotFound):
            await host.open(None, tmp_path, id="unknown", store=store)
        await (await host.open(agent, tmp_path, id="a", store=store)).close()
        assert not host._opening  # pyright: ignore[reportPrivateUsage]


async def test_another_workspace_is_named_and_the_same_one_is_taken(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "logs")
    (tmp_path / "other").mkdir()
    async with Host() as host:
        agent = Agent(llm=ScriptedLLM([]))
        first = await host.open(agent, tmp_path, id="a", store=store)
        assert await host.open(agent, str(tmp_path), id="a", store=FileStore(tmp_path / "logs")) is first
        assert await host.open(agent, id="a") is first
        with pytest.raises(ConversationError, match="another workspace"):
            await host.open(agent, tmp_path / "other", id="a", store=store)


async def test_an_opening_that_is_cancelled_twice_leaves_nothing_half_open(
    tmp_path: Path, anyio_backend_name: str
) -> None:
    if anyio_backend_name != "asyncio":
        pytest.skip("only asyncio's cancellation goes through shields")
    agent, store = Agent(llm=ScriptedLLM([])), FileStore(tmp_path / "logs", durability="flush")
    with anyio.fail_after(60):
        async with Host() as host:
            for between in range(30):
                opening = asyncio.ensure_future(host.open(agent, tmp_path, id=f"c{between % 3}", store=store))
                for _ in range(between % 7):
                    await checkpoint()
                opening.cancel()
                for _ in range(between % 4):
                    await checkpoint()
                opening.cancel()
                await asyncio.wait([opening])
                conversation = await host.open(agent, tmp_path, id=f"c{between % 3}", store=store)
                await conversation.send("hello")
                await conversation.close()
            assert host.conversations == ()
