"""Stores that die, end the process, refuse to delete or are left while they open: nobody waits for ever, and all is told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
import pytest

from agentcore import AlwaysConfirm, Conversation, Host, Limits, MemoryStore
from agentcore.errors import ConversationClosed, ConversationError, ConversationLocked, StoreError
from agentcore.testing import call, say
from talks import BOUND, HookedStore, hosting, ping, scripted, talk


class Boom(BaseException):
    """Not an Exception: the end of a test, of a process, of a greenlet."""


class DyingStore(HookedStore):
    """Raises at each append after so many."""

    def __init__(self, appends: int, error: BaseException | None = None) -> None:
        super().__init__(self._append)
        self.left = appends
        self.error = error or StoreError("no space left on device")

    async def _append(self, _: object) -> None:
        self.left -= 1
        if self.left < 0:
            raise self.error


@pytest.mark.parametrize("appends", range(1, 7))
async def test_whenever_the_store_dies_everybody_hears_of_it_and_what_was_kept_is_whole(appends: int) -> None:
    store = DyingStore(appends)
    agent = scripted([call("ping"), call("ping"), say("done")], ping)
    async with talk(agent, store=store, id="a") as conversation:
        with pytest.raises(StoreError, match="no space"):
            await conversation.run("go")
        with pytest.raises(StoreError, match="no space"):
            await conversation.send("still there?")
        assert conversation.state.head > 0
    store.left = 1_000
    async with talk(agent, store=store, id="a") as conversation:
        assert not [a for a in conversation.state.open_actions.values() if not a.waits]


@pytest.mark.parametrize("appends", range(5))
async def test_a_store_that_ends_the_process_leaves_nobody_waiting(appends: int) -> None:
    with pytest.raises(Boom):
        async with talk([call("think", thought="hm"), say("done")], store=DyingStore(appends, Boom())) as conversation:
            await conversation.run("go")


async def test_one_dead_store_leaves_the_other_conversations_of_a_host_alone() -> None:
    async with hosting() as host:
        doomed = await host.open(scripted([say("x")]), store=DyingStore(2, OSError("no space")))
        healthy = await host.open(scripted([say("fine")]))
        with pytest.raises(StoreError, match="no space"):
            await doomed.run("go")
        assert (await healthy.run("go")).text == "fine"
        await doomed.close()


async def test_a_failure_that_nobody_asked_about_is_raised_on_leaving() -> None:
    with pytest.raises(StoreError, match="no space"):
        async with talk([call("ping"), say("done")], ping, store=DyingStore(3)) as conversation:
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
async def test_a_dead_store_that_a_command_met_is_not_raised_again_on_leaving(name: str) -> None:
    async with talk([say("done")], store=DyingStore(1)) as conversation:
        with pytest.raises(StoreError, match="no space"):
            await COMMANDS[name](conversation)


async def test_a_second_handle_on_one_log_is_refused() -> None:
    store = MemoryStore()
    async with talk([], store=store, id="a"):
        with pytest.raises(ConversationLocked):
            async with talk([], store=store, id="a"):
                pass


async def test_a_host_closes_conversations_of_one_id_in_two_stores_and_opens_none_when_it_was_left() -> None:
    async with hosting() as host:
        for _ in range(2):
            await host.open(scripted([]), id="same", store=MemoryStore())
    with pytest.raises(ConversationError, match="not open"):
        await host.open(scripted([]))


async def test_a_conversation_that_opens_while_its_host_is_left_is_closed() -> None:
    opening, go = anyio.Event(), anyio.Event()
    opened: list[Conversation] = []

    async def wait(_: object) -> None:
        opening.set()
        await go.wait()

    async def open_one(host: Host) -> None:
        opened.append(await host.open(scripted([]), store=HookedStore(wait)))

    async def let_go() -> None:
        await anyio.wait_all_tasks_blocked()
        go.set()

    with anyio.fail_after(BOUND):
        async with anyio.create_task_group() as tasks:
            async with Host() as host:
                tasks.start_soon(open_one, host)
                await opening.wait()
                tasks.start_soon(let_go)
    with pytest.raises(ConversationClosed):
        await opened[0].send("hello")


async def test_who_deletes_hears_of_a_log_that_can_not_be_deleted() -> None:
    class Keeper(MemoryStore):
        async def delete(self, conversation_id: str) -> None:
            raise StoreError("It is kept by law.")

    async with hosting() as host:
        conversation = await host.open(scripted([]), store=Keeper())
        with pytest.raises(StoreError, match="by law"):
            await conversation.delete()
