"""Tools with live state of their own: opened when they are first called, closed with the conversation, whatever they do."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agentcore import (
    Action,
    AgentErrorEvent,
    Conversation,
    MemoryStore,
    Observation,
    Tool,
    ToolContext,
)
from agentcore.conversation import tool_session
from agentcore.errors import ConversationNotFound
from agentcore.record import read_log
from agentcore.testing import call, calls, say
from talks import events_of, scripted, talk


class Nothing(Action):
    """Nothing to say."""


Opened = Callable[[Any, str], Any]


def opened_tool(name: str, opened: Opened) -> Tool[Nothing, Observation]:
    return Tool(name=name, description="A tool with a server.", action=Nothing, open=opened)


async def answer(action: Nothing, ctx: ToolContext) -> Observation:
    return Observation()


def errors(conversation: Conversation) -> list[AgentErrorEvent]:
    return events_of(conversation, AgentErrorEvent)


async def test_tools_are_closed_in_order_when_the_body_raises() -> None:
    closed: list[str] = []

    @asynccontextmanager
    async def server(workspace: Any, conversation_id: str) -> AsyncGenerator[Any]:
        try:
            yield answer
        finally:
            await checkpoint()  # a goodbye, which a cancellation would cut off
            closed.append("said goodbye")

    agent = scripted([call("served"), say("done")], opened_tool("served", server))
    with pytest.raises(KeyError, match="body"):
        async with talk(agent) as conversation:
            await conversation.run("go")
            raise KeyError("body")
    assert closed == ["said goodbye"]


async def test_a_tool_that_can_not_close_keeps_no_other_from_closing() -> None:
    closed: list[str] = []

    def server(name: str, *, fails: bool) -> Opened:
        @asynccontextmanager
        async def opened(workspace: Any, conversation_id: str) -> AsyncGenerator[Any]:
            yield answer
            await checkpoint()
            closed.append(name)
            if fails:
                raise ValueError("The server would not stop.")

        return opened

    tools = [opened_tool("first", server("first", fails=False)), opened_tool("second", server("second", fails=True))]
    agent = scripted([calls(call("first"), call("second")), say("done")], *tools)
    with pytest.raises(ValueError, match="would not stop") as caught:
        async with talk(agent) as conversation:
            await conversation.run("go")
    assert sorted(closed) == ["first", "second"]
    assert caught.value.__notes__ == ["Raised while the tool 'second' was closed."]


async def test_a_tool_whose_server_died_is_opened_again() -> None:
    opened: list[anyio.Event] = []
    died = anyio.Event()

    @asynccontextmanager
    async def server(workspace: Any, conversation_id: str) -> AsyncGenerator[Any]:
        die = anyio.Event()
        opened.append(die)

        async def live() -> None:
            await die.wait()
            raise RuntimeError("The server is gone.")

        try:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(live)
                yield answer
                tasks.cancel_scope.cancel()
        finally:
            died.set()

    agent = scripted([call("served"), say("one"), call("served"), say("two")], opened_tool("served", server))
    async with talk(agent) as conversation:
        await conversation.run("go")
        opened[0].set()
        await died.wait()
        assert (await conversation.run("more")).text == "two"
    assert len(opened) == 2
    assert not errors(conversation)


async def test_a_tool_that_does_not_close_is_cancelled_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_session, "_CLOSE_SECONDS", 0)

    @asynccontextmanager
    async def server(workspace: Any, conversation_id: str) -> AsyncGenerator[Any]:
        yield answer
        await anyio.sleep_forever()

    agent = scripted([call("served"), say("done")], opened_tool("served", server))
    async with talk(agent) as conversation:
        await conversation.run("go")


async def test_a_tool_that_is_being_opened_does_not_hold_up_another() -> None:
    other_is_open = anyio.Event()

    @asynccontextmanager
    async def slow(workspace: Any, conversation_id: str) -> AsyncGenerator[Any]:
        await other_is_open.wait()
        yield answer

    @asynccontextmanager
    async def quick(workspace: Any, conversation_id: str) -> AsyncGenerator[Any]:
        other_is_open.set()
        yield answer

    tools = [
        Tool(name=name, description="Opens.", action=Nothing, open=opened, resources=())
        for name, opened in (("slow", slow), ("quick", quick))
    ]
    agent = scripted([calls(call("slow"), call("quick")), say("done")], *tools)
    async with talk(agent) as conversation:
        assert (await conversation.run("go")).text == "done"


async def test_a_conversation_whose_tool_breaks_while_it_closes_is_deleted_all_the_same() -> None:
    @asynccontextmanager
    async def server(workspace: Any, conversation_id: str) -> AsyncGenerator[Any]:
        yield answer
        raise ValueError("no goodbye")

    store = MemoryStore()
    agent = scripted([call("served"), say("done")], opened_tool("served", server))
    with pytest.raises(ValueError, match="no goodbye"):
        async with talk(agent, store=store, id="a") as conversation:
            await conversation.run("go")
            await conversation.delete()
    with pytest.raises(ConversationNotFound):
        await read_log(store, "a")


async def test_a_delete_that_has_begun_is_finished_though_everything_is_cancelled() -> None:
    farewell = anyio.Event()

    @asynccontextmanager
    async def server(workspace: Any, conversation_id: str) -> AsyncGenerator[Any]:
        yield answer
        farewell.set()
        await checkpoint()

    store = MemoryStore()
    agent = scripted([call("served"), say("done")], opened_tool("served", server))
    async with anyio.create_task_group() as tasks:

        async def cancel() -> None:
            await farewell.wait()
            tasks.cancel_scope.cancel()

        tasks.start_soon(cancel)
        async with talk(agent, store=store, id="a") as conversation:
            await conversation.run("go")
            await conversation.delete()
    with pytest.raises(ConversationNotFound):
        await read_log(store, "a")
