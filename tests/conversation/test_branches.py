"""Rewinding and forking: the log keeps everything, the active branch changes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentcore import Agent, AlwaysConfirm, Conversation, ConversationStatus, Limits, MemoryStore
from agentcore.context import build_messages
from agentcore.errors import RewindRefused
from agentcore.testing import ScriptedLLM, call, calls, say
from agentcore.tools import tool


@tool(resources=())
async def ping(n: int) -> str:
    """Ping."""
    return f"pong {n}"


def words(conversation: Conversation) -> list[str]:
    return [message.text for message in build_messages(conversation.state) if message.text][1:]


async def test_a_rewind_goes_on_from_an_earlier_point_and_says_that_files_did_not(tmp_path: Path) -> None:
    llm = ScriptedLLM([say("one"), say("two"), say("other two")])
    async with Conversation(Agent(llm=llm), tmp_path) as conversation:
        await conversation.run("first")
        point = conversation.state.head
        await conversation.run("second")
        head = conversation.state.head
        await conversation.rewind(to=point)
        assert conversation.state.head > head
        assert conversation.state.status is ConversationStatus.IDLE
        await conversation.run("another second")
    shown = words(conversation)
    assert shown[:2] == ["first", "one"]
    assert "taken back" in shown[2]
    assert shown[3:] == ["another second", "other two"]
    assert conversation.state.usage.requests == 3


async def test_a_branch_that_was_left_can_be_returned_to(tmp_path: Path) -> None:
    llm = ScriptedLLM([say("one"), say("two"), say("three")])
    async with Conversation(Agent(llm=llm), tmp_path) as conversation:
        await conversation.run("first")
        early = conversation.state.head
        await conversation.run("second")
        late = conversation.state.head
        await conversation.rewind(to=early)
        await conversation.rewind(to=late)
        await conversation.run("third")
    shown = words(conversation)
    assert shown[:4] == ["first", "one", "second", "two"]
    assert shown[-2:] == ["third", "three"]


async def test_a_rewind_to_the_start_begins_with_the_prompt_again(tmp_path: Path) -> None:
    llm = ScriptedLLM([say("one"), say("two")])
    async with Conversation(Agent(llm=llm), tmp_path) as conversation:
        await conversation.run("first")
        await conversation.rewind(to=0)
        await conversation.run("again")
    assert [m.role for m in llm.requests[1].messages] == ["system", "user", "user"]


async def test_a_point_inside_a_batch_is_refused_and_the_nearest_one_named(tmp_path: Path) -> None:
    llm = ScriptedLLM([calls(call("ping", n=1), call("ping", n=2)), say("done")])
    async with Conversation(Agent(llm=llm, tools=[ping]), tmp_path) as conversation:
        await conversation.run("go")
        inside = next(event.seq for event in conversation.state.events if event.kind == "action")
        with pytest.raises(RewindRefused) as caught:
            await conversation.rewind(to=inside)
        assert caught.value.nearest is not None
        await conversation.rewind(to=caught.value.nearest)
        with pytest.raises(RewindRefused, match="no such event"):
            await conversation.rewind(to=10_000)


async def test_a_rewind_refunds_nothing_and_loosens_nothing(tmp_path: Path) -> None:
    llm = ScriptedLLM([say("one")])
    async with Conversation(Agent(llm=llm), tmp_path) as conversation:
        await conversation.run("first")
        await conversation.set_limits(Limits(steps=1))
        await conversation.set_policy(AlwaysConfirm())
        usage = conversation.state.usage
        await conversation.rewind(to=0)
        assert conversation.state.usage == usage
        assert conversation.state.limits.steps == 1
        assert conversation.state.policy is not None


async def test_a_fork_is_a_conversation_of_its_own(tmp_path: Path) -> None:
    store = MemoryStore()
    llm = ScriptedLLM([say("one"), say("two"), say("fork two")])
    agent = Agent(llm=llm)
    async with Conversation(agent, tmp_path, store=store) as conversation:
        await conversation.run("first")
        point = conversation.state.head
        await conversation.run("second")
        await conversation.set_limits(Limits(steps=7))
        fork_id = await conversation.fork(at=point)
        original = [event.id for event in conversation.state.events[:point]]
        async with Conversation(agent, tmp_path, store=store, id=fork_id) as fork:
            assert [event.id for event in fork.state.events[:point]] == original
            assert fork.state.forked_from is not None
            assert (fork.state.forked_from.conversation_id, fork.state.forked_from.at) == (conversation.id, point)
            assert fork.state.limits.steps == 7
            await fork.run("other second")
            assert words(fork) == ["first", "one", "other second", "fork two"]
        assert words(conversation) == ["first", "one", "second", "two"]


async def test_a_fork_of_a_rewound_conversation_has_the_branch_alone(tmp_path: Path) -> None:
    store = MemoryStore()
    llm = ScriptedLLM([say("one"), say("two"), say("three")])
    agent = Agent(llm=llm)
    async with Conversation(agent, tmp_path, store=store) as conversation:
        await conversation.run("first")
        point = conversation.state.head
        await conversation.run("second")
        await conversation.rewind(to=point)
        await conversation.run("third")
        fork_id = await conversation.fork()
        async with Conversation(agent, tmp_path, store=store, id=fork_id) as fork:
            assert words(fork) == words(conversation)
            assert "second" not in words(fork)


async def test_forking_inside_a_batch_is_refused(tmp_path: Path) -> None:
    llm = ScriptedLLM([call("ping", n=1), say("done")])
    async with Conversation(Agent(llm=llm, tools=[ping]), tmp_path, confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        with pytest.raises(RewindRefused):
            await conversation.fork()


@pytest.mark.parametrize("seq", [1.5, "x", True, b"1"])
async def test_what_is_no_seq_is_refused_by_the_argument_s_name(tmp_path: Path, seq: Any) -> None:
    async with Conversation(Agent(llm=ScriptedLLM([say("one")])), tmp_path) as conversation:
        await conversation.run("go")
        with pytest.raises(TypeError, match=r"^to=.*: it is the seq of an event"):
            await conversation.rewind(to=seq)
        with pytest.raises(TypeError, match=r"^at=.*: it is the seq of an event"):
            await conversation.fork(at=seq)
        with pytest.raises(TypeError, match=r"^after=.*: it is the seq of an event"):
            conversation.events(after=seq)
        nothing: Any = None
        with pytest.raises(TypeError, match=r"^to=None"):
            await conversation.rewind(to=nothing)
