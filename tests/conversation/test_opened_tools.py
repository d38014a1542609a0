"""Tools with live state of their own: opened when they are first called, closed with the conversation, whatever they do."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agentcore import Action, AgentErrorEvent, MemoryStore, Observation, Tool, ToolContext
from agentcore.conversation import tool_session
from agentcore.errors import ConversationNotFound
from agentcore.record import read_log
from agentcore.testing import call, calls, say
from talks import events_of, scripted, talk


class Nothing(Action):
    """Nothing to say."""


def opened_tool(
    name: str = "served",
    *,
    before: Callable[[], Awaitable[object]] = checkpoint,
    after: Callable[[], Awaitable[object]] = checkpoint,
) -> Tool[Nothing, Observation]:
    """Make a tool whose server does something before it is there and before it is gone."""

    @asynccontextmanager
    async def server(workspace: Any, conversation_id: str) -> AsyncGenerator[Any]:
        await before()
        yield answer
        await after()

    return Tool(name=name, description="A tool with a server.", action=Nothing, open=server, resources=())


async def answer(action: Nothing, ctx: ToolContext) -> Observation:
    return Observation()


async def test_tools_are_closed_in_order_when_the_body_raises() -> None:
    closed: list[str] = []

    async def close() -> None:
        await checkpoint()  # a goodbye, which a cancellation would cut off
        closed.append("said goodbye")

    with pytest.raises(KeyError, match="body"):
        async with talk([call("served"), say("done")], opened_tool(after=close)) as conversation:
            await conversation.run("go")
            raise KeyError("body")
    assert closed == ["said goodbye"]


async def test_a_tool_that_can_not_close_keeps_no_other_from_closing() -> None:
    closed: list[str] = []

    async def close() -> None:
        await checkpoint()
        closed.append("first")

    async def fail() -> None:
        await checkpoint()
        closed.append("second")
        raise ValueError("The server would not stop.")

    script = [calls(call("first"), call("second")), say("done")]
    with pytest.raises(ValueError, match="would not stop") as caught:
        async with talk(script, opened_tool("first", after=close), opened_tool("second", after=fail)) as conversation:
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

    agent = scripted(
        [call("served"), say("one"), call("served"), say("two")],
        Tool(name="served", description="Served.", action=Nothing, open=server),
    )
    async with talk(agent) as conversation:
        await conversation.run("go")
        opened[0].set()
        await died.wait()
        assert (await conversation.run("more")).text == "two"
    assert len(opened) == 2
    assert not events_of(conversation, AgentErrorEvent)


async def test_a_tool_that_does_not_close_is_cancelled_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_session, "_CLOSE_SECONDS", 0)
    async with talk([call("served"), say("done")], opened_tool(after=anyio.sleep_forever)) as conversation:
        await conversation.run("go")


async def test_a_tool_that_is_being_opened_does_not_hold_up_another() -> None:
    other_is_open = anyio.Event()

    async def open_quickly() -> None:
        other_is_open.set()

    tools = (opened_tool("slow", before=other_is_open.wait), opened_tool("quick", before=open_quickly))
    async with talk([calls(call("slow"), call("quick")), say("done")], *tools) as conversation:
        assert (await conversation.run("go")).text == "done"


async def test_a_conversation_whose_tool_breaks_while_it_closes_is_deleted_all_the_same() -> None:
    async def fail() -> None:
        raise ValueError("no goodbye")

    store = MemoryStore()
    with pytest.raises(ValueError, match="no goodbye"):
        async with talk([call("served"), say("done")], opened_tool(after=fail), store=store, id="a") as conversation:
            await conversation.run("go")
            await conversation.delete()
    with pytest.raises(ConversationNotFound):
        await read_log(store, "a")


async def test_a_delete_that_has_begun_is_finished_though_everything_is_cancelled() -> None:
    store = MemoryStore()
    async with anyio.create_task_group() as tasks:

        async def cancel() -> None:
            tasks.cancel_scope.cancel()

        agent = scripted([call("served"), say("done")], opened_tool(after=cancel))
        async with talk(agent, store=store, id="a") as conversation:
            await conversation.run("go")
            await conversation.delete()
    with pytest.raises(ConversationNotFound):
        await read_log(store, "a")
