"""Deleting conversations that are closed, and through a host."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from agentcore import FileStore, Host, LocalWorkspace, MemoryStore, ObservationEvent, ToolContext
from agentcore.errors import ConversationError, ConversationLocked, ConversationNotFound
from agentcore.record import Store
from agentcore.testing import call, say
from agentcore.tools import tool
from talks import events_of, scripted, talk


@tool
async def spool(ctx: ToolContext) -> str:
    """Keep something in the workspace."""
    return await ctx.spool("whole.txt", "all of it")


@pytest.mark.parametrize("make", [MemoryStore, lambda: FileStore("logs")], ids=["memory", "files"])
@pytest.mark.parametrize("how", ["its handle", "a host", "an open workspace"])
async def test_deleting_a_closed_conversation_removes_its_outputs_too(make: Callable[[], Store], how: str) -> None:
    store = make()
    async with LocalWorkspace(".") as place:
        async with talk(
            [call("spool"), say("done")], spool, store=store, workspace=place if how == "an open workspace" else "."
        ) as conversation:
            await conversation.run("go")
            kept = Path(events_of(conversation, ObservationEvent)[0].text)
        assert kept.exists()
        if how == "a host":
            async with Host() as host:
                with pytest.raises(ConversationError, match="Pass its store"):
                    await host.delete(conversation.id)
                await host.delete(conversation.id, store)
        else:
            await conversation.delete()
    assert not kept.exists()
    assert not await store.list()
    with pytest.raises(ConversationNotFound):
        await conversation.delete()


async def test_a_host_deletes_what_is_open_there_and_refuses_what_is_open_elsewhere() -> None:
    store = FileStore("logs")
    async with Host() as host:
        conversation = await host.open(scripted([call("spool"), say("done")], spool), store=store)
        await conversation.run("go")
        kept = Path(events_of(conversation, ObservationEvent)[0].text)
        async with Host() as other:
            with pytest.raises(ConversationLocked):
                await other.delete(conversation.id, store)
        await host.delete(conversation.id)
        assert host.conversations == ()
    assert not kept.exists()
    assert not await store.list()


async def test_a_conversation_whose_workspace_is_gone_is_deleted_all_the_same(tmp_path: Path) -> None:
    store, root = MemoryStore(), tmp_path / "gone"
    root.mkdir()
    async with talk([say("done")], store=store, workspace=root) as conversation:
        await conversation.run("go")
    root.rmdir()
    await conversation.delete()
    assert not await store.list()
