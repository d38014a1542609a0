"""A host: one handle for each conversation that is open in it."""

from __future__ import annotations

import asyncio  # noqa: TID251  its own cancellation, which goes through shields, is what is tested
from pathlib import Path

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agentcore import AlwaysConfirm, Conversation, FileStore, Limits, MemoryStore, NeverConfirm
from agentcore.errors import ConversationError, ConversationNotFound
from agentcore.testing import say
from talks import at_once, hosting, scripted, until


async def test_opening_an_open_id_gives_the_same_handle() -> None:
    agent, store = scripted([say("x")]), MemoryStore()
    async with hosting() as host:
        first = await host.open(agent, id="a", store=store, limits=Limits(steps=3))
        assert await host.open(agent, id="a", store=store, limits=Limits(steps=3)) is first
        assert await host.open(None, id="a", store=store, confirm=NeverConfirm()) is first
        assert host.get("a") is first
        assert host.get("a", MemoryStore()) is None
        assert host.conversations == (first,)


async def test_many_who_open_one_id_at_once_share_a_handle() -> None:
    agent, store = scripted([say("x")]), MemoryStore()
    opened: list[Conversation] = []
    async with hosting() as host:

        async def open_it() -> None:
            opened.append(await host.open(agent, id="a", store=store))

        await at_once(*[open_it] * 5)
        assert len(opened) == 5
        assert len(set(map(id, opened))) == 1


async def test_what_differs_is_named() -> None:
    store = MemoryStore()
    async with hosting() as host:
        await host.open(scripted([]), id="a", store=store)
        with pytest.raises(ConversationError, match="another limits and another confirm"):
            await host.open(None, id="a", store=store, limits=Limits(steps=1), confirm=AlwaysConfirm())
        with pytest.raises(ConversationError, match="another agent"):
            await host.open(scripted([]), id="a", store=store)
        with pytest.raises(ConversationError, match="the secret 'TOKEN'"):
            await host.open(None, id="a", store=store, secrets={"TOKEN": "a long value"})


async def test_a_conversation_that_was_closed_is_opened_anew() -> None:
    agent, store = scripted([say("x")]), MemoryStore()
    async with hosting() as host:
        first = await host.open(agent, id="a", store=store)
        handles: list[Conversation] = []

        async def open_again() -> None:
            handles.append(await host.open(agent, id="a", store=store))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(first.close)
            await until(lambda: host.get("a") is None)
            tasks.start_soon(open_again)
        (second,) = handles
        assert second is not first
        assert (await second.run("go")).text == "x"
        await second.close()
        assert host.conversations == ()


async def test_a_host_keeps_nothing_of_what_it_could_not_open_or_has_closed() -> None:
    agent, store = scripted([say("x")]), MemoryStore()
    async with hosting() as host:
        with pytest.raises(ConversationNotFound):
            await host.open(None, id="unknown", store=store)
        await (await host.open(agent, id="a", store=store)).close()
        assert not host._opening  # pyright: ignore[reportPrivateUsage]


async def test_another_workspace_is_named_and_the_same_one_is_taken(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "logs")
    Path("other").mkdir()
    async with hosting() as host:
        agent = scripted([])
        first = await host.open(agent, id="a", store=store)
        assert await host.open(agent, str(Path.cwd()), id="a", store=FileStore(tmp_path / "logs")) is first
        assert await host.open(agent, id="a") is first
        with pytest.raises(ConversationError, match="another workspace"):
            await host.open(agent, "other", id="a", store=store)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_opening_that_is_cancelled_twice_leaves_nothing_half_open() -> None:
    agent, store = scripted([]), FileStore("logs", durability="flush")
    async with hosting() as host:
        for between in range(30):
            opening = asyncio.ensure_future(host.open(agent, id=f"c{between % 3}", store=store))
            for _ in range(between % 7):
                await checkpoint()
            opening.cancel()
            for _ in range(between % 4):
                await checkpoint()
            opening.cancel()
            await asyncio.wait([opening])
            conversation = await host.open(agent, id=f"c{between % 3}", store=store)
            await conversation.send("hello")
            await conversation.close()
        assert host.conversations == ()
