"""Draining a host: what runs is paused, what does not stop is interrupted, and all of it is in the logs."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from agentcore import FileStore, MemoryStore
from agentcore.errors import ConversationClosed
from agentcore.record import read_log
from agentcore.testing import call, say
from agentcore.tools import tool
from talks import FINISHED, IDLE, PAUSED, answers_of, at_once, hang, hosting, ping, scripted, until


async def test_those_that_work_are_paused_at_the_end_of_their_step() -> None:
    reached, release = anyio.Event(), anyio.Event()

    @tool(resources=())
    async def hold() -> str:
        reached.set()
        await release.wait()
        return "held"

    async with hosting() as host, anyio.create_task_group() as tasks:
        working = await host.open(scripted([call("hold"), say("done")], hold))
        resting = await host.open(scripted([say("x")], ping))
        tasks.start_soon(working.run, "go")
        await reached.wait()

        async def let_go() -> None:
            await until(lambda: working.state.pause_requested)
            release.set()

        await at_once(lambda: host.drain(30), let_go)
        assert working.state.status is PAUSED
        assert working.state.status_code != "interrupt"
        assert len(answers_of(working)) == 1
        assert resting.state.status is IDLE
        assert (await working.run()).status is FINISHED


async def test_what_does_not_stop_in_time_is_interrupted_and_recorded(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "logs", durability="flush")
    async with hosting() as host, anyio.create_task_group() as tasks:
        ids: list[str] = []
        for _ in range(5):
            conversation = await host.open(scripted([call("hang")], hang), store=store)
            ids.append(conversation.id)
            tasks.start_soon(conversation.run, "go")
            await until(lambda state=conversation.state: any(each.started for each in state.open_actions.values()))
        await host.drain(0.01)
        for conversation_id in ids:
            state = await read_log(store, conversation_id)
            assert state.status is PAUSED
            assert not state.open_actions
            assert state.is_settled(state.head)


async def test_a_conversation_that_closes_meanwhile_holds_nobody_up() -> None:
    async with hosting() as host, anyio.create_task_group() as tasks:
        conversation = await host.open(scripted([call("hang")], hang), store=MemoryStore())
        tasks.start_soon(conversation.run, "go")
        await until(lambda: any(each.started for each in conversation.state.open_actions.values()))
        await at_once(lambda: host.drain(30), conversation.close)
        with pytest.raises(ConversationClosed):
            await conversation.run("more")


async def test_seconds_have_to_be_a_number_of_seconds() -> None:
    async with hosting() as host:
        with pytest.raises(TypeError, match="seconds"):
            await host.drain("ten")  # pyright: ignore[reportArgumentType]
