"""Toolsets that are cancelled, closed at a bad moment, or killed: nothing is left open, and each call has one outcome."""

from __future__ import annotations

import asyncio  # noqa: TID251  its own cancellation is what is tested
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agentcore import Agent, AgentErrorEvent, Conversation, Host, LocalWorkspace, MemoryStore
from agentcore.conversation import tool_session
from agentcore.errors import ConversationNotFound, ReentrantCall
from agentcore.record import read_log
from agentcore.testing import call, calls, cancel_everywhere, say
from agentcore.tools import AnyTool
from live_toolset import Service, raw
from talks import BOUND, events_of, ran, running, scripted, talk

Act = Callable[[], Awaitable[object]]


def agent_with(*services: Service) -> Agent:
    return scripted([calls(call("a"), call("b")), say("done"), *[say("again")] * 3], *services)


class Leaving(Service):
    """Does something more when it is left."""

    def __init__(self, name: str, *tools: AnyTool, inside: Act = checkpoint, after: Act = checkpoint) -> None:
        super().__init__(name, *tools)
        self.inside, self.after = inside, after

    @asynccontextmanager
    async def open(self, context: Any, /) -> AsyncGenerator[Any]:
        async with super().open(context) as opened:
            yield opened
            await self.inside()
        await self.after()


@pytest.mark.slow
async def test_a_conversation_that_is_cancelled_anywhere_leaves_no_toolset_open(tmp_path: Path) -> None:
    async with LocalWorkspace(tmp_path) as workspace:
        for attempt in cancel_everywhere():
            ran.clear()
            one, two = Service("one", raw("a")), Service("two", raw("b"))
            store = MemoryStore()

            async def work(one: Service, two: Service, store: MemoryStore) -> None:
                async with Conversation(agent_with(one, two), workspace, store=store, id="c") as conversation:
                    await conversation.run("go")

            with anyio.fail_after(BOUND):
                await attempt(work, one, two, store)
                assert (one.opened, two.opened) == (one.closed, two.closed)
                try:
                    state = await read_log(store, "c")
                except ConversationNotFound:
                    continue
                assert not state.open_actions
                async with Conversation(agent_with(one, two), workspace, store=store, id="c") as conversation:
                    await conversation.run("go on")
            assert len(ran) <= 4
            assert (one.opened, two.opened) == (one.closed, two.closed)


@pytest.mark.slow
async def test_a_run_whose_caller_is_cancelled_anywhere_leaves_toolsets_that_work(tmp_path: Path) -> None:
    async with LocalWorkspace(tmp_path) as workspace, Host() as host:
        for attempt in cancel_everywhere():
            one, two = Service("one", raw("a")), Service("two", raw("b"))
            with anyio.fail_after(BOUND):
                conversation = await host.open(agent_with(one, two), workspace)
                await conversation.send("go")
                await attempt(conversation.run)
                assert not conversation.state.open_actions
                await conversation.run("go on")
                assert (one.opened, two.opened) == (1, 1)
                await conversation.close()
            assert (one.closed, two.closed) == (1, 1)


async def test_a_conversation_that_is_closed_while_a_toolset_opens_cancels_the_opening_at_once() -> None:
    slow, quick = Service("slow"), Service("quick", raw("a"))
    slow.gate = anyio.Event()
    async with talk(agent_with(slow, quick)) as conversation:
        async with running(conversation):
            await slow.until_asked(1)
            await quick.until_opened(1)
            await conversation.close()
    assert (slow.opened, quick.opened, quick.closed) == (0, 1, 1)


async def test_a_conversation_that_is_closed_while_a_toolset_waits_to_be_opened_again_is_closed_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tool_session, "_FIRST_DELAY", 3600.0)
    broken = Service("broken")
    broken.failure = OSError("no such server")
    async with talk(agent_with(broken)) as conversation:
        await conversation.run("go")
    assert len(broken.contexts) == 1


async def test_a_toolset_that_does_not_close_is_cancelled_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_session, "_CLOSE_SECONDS", 0)

    stubborn, other = Leaving("stubborn", raw("a"), inside=anyio.sleep_forever), Service("other", raw("b"))
    async with talk(agent_with(other, stubborn)) as conversation:
        await conversation.run("go")
    assert (stubborn.closed, other.closed) == (1, 1)


async def test_a_toolset_that_can_not_close_keeps_no_other_from_closing() -> None:
    async def fail() -> None:
        raise ValueError("The server would not stop.")

    failing, other = Leaving("failing", raw("a"), after=fail), Service("other", raw("b"))
    with pytest.raises(ValueError, match="would not stop") as caught:
        async with talk(agent_with(other, failing)) as conversation:
            await conversation.run("go")
    assert (failing.closed, other.closed) == (1, 1)
    assert caught.value.__notes__ == ["Raised while the toolset 'failing' was closed."]


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_toolset_that_raises_a_cancellation_by_itself_ends_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_session, "_FIRST_DELAY", 0.0)
    service = Service("service", raw("a"), raw("b"))
    async with talk(agent_with(service)) as conversation:
        await conversation.run("go")
        service.end(asyncio.CancelledError())
        await service.until_opened(2)
        assert (await conversation.run("more")).text == "again"
    assert (service.opened, service.closed) == (2, 2)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_an_opening_that_raises_a_cancellation_by_itself_is_tried_again_with_the_next_message() -> None:
    service = Service("service", raw("again"))
    service.failure = asyncio.CancelledError()
    async with talk([say("one"), call("again"), say("two")], service) as conversation:
        assert (await conversation.run("go")).text == "one"
        service.failure = None
        assert (await conversation.run("more")).text == "two"
    assert (service.opened, service.closed) == (1, 1)
    assert not events_of(conversation, AgentErrorEvent)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_asyncios_own_cancellation_leaves_no_toolset_open() -> None:
    service = Service("service", raw("a"), raw("b"))
    ran = asyncio.Event()

    async def work() -> None:
        async with talk(agent_with(service)) as conversation:
            await conversation.run("go")
            ran.set()
            await anyio.sleep_forever()

    task = asyncio.create_task(work())
    await ran.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (service.opened, service.closed) == (1, 1)


@pytest.mark.parametrize("when", ["opening", "open", "waiting"])
def test_a_loop_that_cancels_all_its_tasks_ends(when: str) -> None:
    """As asyncio.run does when Ctrl-C is pressed: every task is cancelled once, and waited for."""
    service = Service("service", raw("a"), raw("b"))

    async def main() -> None:
        if when == "opening":
            service.gate = anyio.Event()
        elif when == "waiting":
            service.failure = OSError("no such server")

        async def work() -> None:
            async with talk(agent_with(service)) as conversation:
                await conversation.run("go")
                await anyio.sleep_forever()

        task = asyncio.create_task(work())
        await service.until_asked(1)
        for _ in range(200):
            await asyncio.sleep(0)
        for each in asyncio.all_tasks() - {asyncio.current_task()}:
            each.cancel()
        with anyio.fail_after(30):
            await asyncio.wait([task])

    asyncio.run(main())
    assert service.opened == service.closed


async def test_a_toolset_can_not_wait_for_the_conversation_that_waits_for_it() -> None:
    refused: list[BaseException] = []

    class Meddling(Service):
        @asynccontextmanager
        async def open(self, context: Any, /) -> AsyncGenerator[Any]:
            with pytest.raises(ReentrantCall) as caught:
                await conversation.run()
            refused.append(caught.value)
            async with super().open(context) as opened:
                yield opened

    async with talk(agent_with(Meddling("m", raw("a"), raw("b")))) as conversation:
        await conversation.run("go")
    assert len(refused) == 1
    assert not events_of(conversation, AgentErrorEvent)
