"""A handle that is used in another event loop than its own, or when that is gone: refused at once, never a wait."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.from_thread import run as run_in_loop
from anyio.to_thread import run_sync

from agentcore import Conversation, Host, MemoryStore
from agentcore.errors import ConversationClosed, ConversationError
from agentcore.testing import call, say
from agentcore.tools import ToolContext, tool
from agentcore.usage import Limits
from talks import scripted, talk

Use = Callable[[Conversation], Awaitable[Any]]


async def next_event(conversation: Conversation) -> None:
    await anext(conversation.events(after=conversation.state.head))


async def next_delta(conversation: Conversation) -> None:
    await anext(conversation.deltas())


async def stream(conversation: Conversation) -> None:
    await anext(conversation.run_stream("x"))


USES: dict[str, Use] = {
    "run": lambda conversation: conversation.run("x"),
    "send": lambda conversation: conversation.send("x"),
    "close": lambda conversation: conversation.close(),
    "delete": lambda conversation: conversation.delete(),
    "pause": lambda conversation: conversation.pause(),
    "interrupt": lambda conversation: conversation.interrupt(),
    "interrupt_call": lambda conversation: conversation.interrupt_call("ev"),
    "approve": lambda conversation: conversation.approve(),
    "reject": lambda conversation: conversation.reject("no"),
    "ask": lambda conversation: conversation.ask("x"),
    "rewind": lambda conversation: conversation.rewind(0),
    "fork": lambda conversation: conversation.fork(),
    "set_limits": lambda conversation: conversation.set_limits(Limits()),
    "run_stream": stream,
    "events": next_event,
    "deltas": next_delta,
}


def used_in_a_loop_of_its_own(use: Use, conversation: Conversation, backend: str) -> None:
    async def bounded() -> None:
        with anyio.fail_after(30):
            await use(conversation)

    anyio.run(bounded, backend=backend)


@pytest.mark.parametrize("use", USES.values(), ids=USES)
async def test_in_another_threads_loop_it_is_refused_and_its_owner_goes_on(use: Use, anyio_backend_name: str) -> None:
    async with talk([say("ok")]) as conversation:
        with pytest.raises(ConversationError, match="from_thread") as caught:
            await run_sync(used_in_a_loop_of_its_own, use, conversation, anyio_backend_name)
        assert not isinstance(caught.value, ConversationClosed)
        assert (await conversation.run("go")).text == "ok"


async def test_what_is_in_memory_can_be_read_anywhere(anyio_backend_name: str) -> None:
    async def read(conversation: Conversation) -> None:
        events = conversation.events()
        assert [(await anext(events)).seq for _ in range(conversation.state.head)] == [
            event.seq for event in conversation.state.events
        ]

    async with talk([say("ok")]) as conversation:
        await conversation.run("go")
        await run_sync(used_in_a_loop_of_its_own, read, conversation, anyio_backend_name)


async def test_a_thread_uses_it_by_way_of_its_loop() -> None:
    async with talk([say("ok")]) as conversation:
        result = await run_sync(run_in_loop, conversation.run, "go")
        assert result.text == "ok"


async def test_a_tool_that_uses_its_context_in_a_loop_of_its_own_is_told_so(anyio_backend_name: str) -> None:
    @tool
    def elsewhere(ctx: ToolContext) -> str:
        """Send from a loop of its own."""
        anyio.run(ctx.send, "hello", backend=anyio_backend_name)
        return "never"

    async with talk([call("elsewhere"), say("done")], elsewhere) as conversation:
        assert (await conversation.run("go")).text == "done"
        assert any("another event loop" in getattr(event, "error", "") for event in conversation.state.events)


async def test_a_host_opens_nothing_from_another_loop(tmp_path: Path, anyio_backend_name: str) -> None:
    async with Host() as host:

        async def open_one() -> None:
            with anyio.fail_after(30):
                await host.open(scripted([]), tmp_path)

        def in_a_loop_of_its_own() -> None:
            anyio.run(open_one, backend=anyio_backend_name)

        with pytest.raises(ConversationError, match="The host belongs to another event loop"):
            await run_sync(in_a_loop_of_its_own)


LEFT_BY_ITS_LOOP = """
import asyncio, os, sys
import anyio
from agentcore import Agent, Conversation
from agentcore.errors import ConversationClosed
from agentcore.testing import ScriptedLLM, say

conversation = Conversation(Agent(llm=ScriptedLLM([say("ok")])))
loop = asyncio.new_event_loop()
loop.run_until_complete(conversation.__aenter__())
loop.close()

async def use():
    with anyio.fail_after(30):
        for command in (conversation.run("x"), conversation.send("x"), conversation.interrupt(), conversation.delete()):
            try:
                await command
            except ConversationClosed:
                print("closed")
        await conversation.close()
        print(len([event async for event in conversation.events()]) == conversation.state.head)

anyio.run(use)
sys.stdout.flush()
os._exit(0)  # what the loop has left behind is of no interest
"""


@pytest.mark.slow
def test_a_loop_that_is_closed_by_force_leaves_a_closed_conversation(tmp_path: Path) -> None:
    async def run() -> bytes:
        with anyio.fail_after(60):
            return (await anyio.run_process([sys.executable, "-c", LEFT_BY_ITS_LOOP], cwd=tmp_path)).stdout

    assert anyio.run(run) == b"closed\n" * 4 + b"True\n"


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_after_its_loop_has_ended_it_is_closed(tmp_path: Path, backend: str) -> None:
    async def leave() -> Conversation:
        agent = scripted([say("ok")])
        async with talk(agent, store=MemoryStore()) as conversation:
            await conversation.run("go")
        return conversation

    conversation = anyio.run(leave, backend=backend)
    for name, use in USES.items():
        if name not in ("close", "delete", "events", "deltas"):
            with pytest.raises(ConversationClosed):
                used_in_a_loop_of_its_own(use, conversation, backend)
    used_in_a_loop_of_its_own(USES["close"], conversation, backend)
    for name in ("events", "deltas"):
        with pytest.raises(StopAsyncIteration):
            used_in_a_loop_of_its_own(USES[name], conversation, backend)
    assert conversation.state.events
    used_in_a_loop_of_its_own(USES["delete"], conversation, backend)
