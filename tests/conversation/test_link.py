"""Links: runs that nobody waits for, and a workspace that holds conversations elsewhere."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import copy_context
from pathlib import Path
from typing import Any, cast

import anyio
import pytest

from agentcore import Conversation, MemoryStore, Workspace
from agentcore.commands import Condense, Fork, Leave, Run
from agentcore.conversation.link import HostsConversations, Link
from agentcore.conversation.local import LocalLink
from agentcore.errors import ConversationClosed, ConversationError
from agentcore.testing import call, say
from talks import FINISHED, IDLE, PAUSED, RUNNING, hang, scripted, talk, until


async def test_a_run_that_was_started_goes_on_without_anybody() -> None:
    async with talk(scripted([say("done")])) as conversation:
        seq = await conversation.start("go")
        await until(lambda: conversation.state.status is FINISHED or conversation.state.status is IDLE)
        assert conversation.state.answer == "done"
        assert conversation.state.run.seq == seq


async def test_of_those_who_wait_beside_a_start_none_interrupts() -> None:
    async with talk(scripted([call("hang"), say("done")], hang)) as conversation:
        await conversation.start("go")
        with anyio.move_on_after(0.05) as scope:
            await conversation.run()
        assert scope.cancelled_caught
        assert conversation.state.status is RUNNING
        await conversation.interrupt()
        assert conversation.state.status is PAUSED


async def test_a_start_needs_something_to_work_on_and_an_open_conversation() -> None:
    async with talk(scripted([say("done")])) as conversation:
        with pytest.raises(ConversationError, match="nothing to work on"):
            await conversation.start()
    with pytest.raises(ConversationClosed):
        await conversation.start("go")


async def test_a_waiter_that_leaves_by_its_id_interrupts_when_it_is_the_last() -> None:
    async with talk(scripted([call("hang"), say("done")], hang)) as conversation:
        run = Run(message=None)
        await conversation.send("go")
        pending = conversation.link.begin_run(run, copy_context())
        await pending.recorded()
        await until(lambda: any(action.started for action in conversation.state.open_actions.values()))
        await conversation.link.leave("another")
        assert conversation.state.status is RUNNING
        await conversation.link.leave(run.id)
        assert conversation.state.status is PAUSED
        result = pending.result
        assert result is not None
        assert result.status is PAUSED


async def test_jobs_are_values() -> None:
    store = MemoryStore()
    async with talk(scripted([say("done")]), store=store) as conversation:
        await conversation.run("go")
        job = Fork()
        assert await conversation.link.job(job) == job.conversation
        assert job.conversation in [info.conversation_id for info in await store.list()]
        assert await conversation.link.job(Condense()) is None
        receipt = await conversation.link.execute(Leave(waiter="nobody"))
        assert receipt.seq == conversation.state.head


class Elsewhere:
    """A place that opens conversations itself."""

    is_open = False

    def __init__(self, root: Path) -> None:
        self._root = root
        self.opened: list[Any] = []

    def open_process(self) -> None:
        raise AssertionError("it is asked for a link")

    @asynccontextmanager
    async def open_link(self, setup: Any) -> AsyncGenerator[Link]:
        self.opened.append(setup)
        async with Conversation(setup.agent, self._root) as inner:
            yield inner.link


async def test_a_workspace_that_hosts_conversations_is_asked_for_the_link(tmp_path: Path) -> None:
    workspace = Elsewhere(tmp_path)
    assert isinstance(workspace, HostsConversations)
    async with Conversation(scripted([say("done")]), cast("Workspace", workspace)) as conversation:
        assert (await conversation.run("go")).text == "done"
        assert isinstance(conversation.link, LocalLink)
    assert len(workspace.opened) == 1
