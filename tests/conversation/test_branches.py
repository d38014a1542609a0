"""Rewinding and forking: the log keeps everything, the active branch changes."""

from __future__ import annotations

from typing import Any

import pytest

from agentcore import AlwaysConfirm, Conversation, Limits, MemoryStore
from agentcore.context import build_messages
from agentcore.errors import RewindRefused
from agentcore.testing import ScriptedLLM, call, calls, say
from talks import IDLE, ping, scripted, talk


def words(conversation: Conversation) -> list[str]:
    return [message.text for message in build_messages(conversation.state) if message.text][1:]


async def test_a_rewind_goes_on_from_an_earlier_point_and_says_that_files_did_not() -> None:
    async with talk([say("one"), say("two"), say("other two")]) as conversation:
        await conversation.run("first")
        point = conversation.state.head
        await conversation.run("second")
        head = conversation.state.head
        await conversation.rewind(to=point)
        assert conversation.state.head > head
        assert conversation.state.status is IDLE
        await conversation.run("another second")
    shown = words(conversation)
    assert shown[:2] == ["first", "one"]
    assert "taken back" in shown[2]
    assert shown[3:] == ["another second", "other two"]
    assert conversation.state.usage.requests == 3


async def test_a_branch_that_was_left_can_be_returned_to_and_forked_alone() -> None:
    agent, store = scripted([say("one"), say("two"), say("three"), say("four")]), MemoryStore()
    async with talk(agent, store=store) as conversation:
        await conversation.run("first")
        early = conversation.state.head
        await conversation.run("second")
        late = conversation.state.head
        await conversation.rewind(to=early)
        await conversation.rewind(to=late)
        await conversation.run("third")
        shown = words(conversation)
        assert (shown[:4], shown[-2:]) == (["first", "one", "second", "two"], ["third", "three"])
        await conversation.rewind(to=early)
        await conversation.run("fourth")
        async with talk(agent, store=store, id=await conversation.fork()) as fork:
            assert words(fork) == words(conversation)
            assert "second" not in words(fork)


async def test_a_rewind_to_the_start_begins_with_the_prompt_again() -> None:
    llm = ScriptedLLM([say("one"), say("two")])
    async with talk(llm) as conversation:
        await conversation.run("first")
        await conversation.rewind(to=0)
        await conversation.run("again")
    assert [m.role for m in llm.requests[1].messages] == ["system", "user", "user"]


async def test_a_point_inside_a_batch_is_refused_and_the_nearest_one_named() -> None:
    async with talk([calls(call("ping"), call("ping")), say("done")], ping) as conversation:
        await conversation.run("go")
        inside = next(event.seq for event in conversation.state.events if event.kind == "action")
        with pytest.raises(RewindRefused) as caught:
            await conversation.rewind(to=inside)
        assert caught.value.nearest is not None
        await conversation.rewind(to=caught.value.nearest)
        with pytest.raises(RewindRefused, match="no such event"):
            await conversation.rewind(to=10_000)


async def test_why_a_point_is_refused_is_true() -> None:
    async with talk([calls(call("ping"), call("ping")), say("done")], ping) as conversation:
        together = conversation.state.group_of(1)
        assert together > 1
        with pytest.raises(
            RewindRefused, match=f"to 1: it was written together with what follows it, up to {together}"
        ):
            await conversation.rewind(to=1)
        await conversation.run("go")
        called = [event.seq for event in conversation.state.events if event.kind == "action"]
        with pytest.raises(RewindRefused, match="there are calls before it that were answered after it"):
            await conversation.rewind(to=conversation.state.group_of(called[-1]))


async def test_a_rewind_refunds_nothing_and_loosens_nothing() -> None:
    async with talk([say("one")]) as conversation:
        await conversation.run("first")
        await conversation.set_limits(Limits(steps=1))
        await conversation.set_policy(AlwaysConfirm())
        usage = conversation.state.usage
        await conversation.rewind(to=0)
        assert conversation.state.usage == usage
        assert conversation.state.limits.steps == 1
        assert conversation.state.policy is not None


async def test_a_fork_is_a_conversation_of_its_own() -> None:
    store = MemoryStore()
    agent = scripted([say("one"), say("two"), say("fork two")])
    async with talk(agent, store=store) as conversation:
        await conversation.run("first")
        point = conversation.state.head
        await conversation.run("second")
        await conversation.set_limits(Limits(steps=7))
        fork_id = await conversation.fork(at=point)
        original = [event.id for event in conversation.state.events[:point]]
        async with talk(agent, store=store, id=fork_id) as fork:
            assert [event.id for event in fork.state.events[:point]] == original
            assert fork.state.forked_from is not None
            assert (fork.state.forked_from.conversation_id, fork.state.forked_from.at) == (conversation.id, point)
            assert fork.state.limits.steps == 7
            await fork.run("other second")
            assert words(fork) == ["first", "one", "other second", "fork two"]
        assert words(conversation) == ["first", "one", "second", "two"]


async def test_forking_inside_a_batch_is_refused() -> None:
    async with talk([call("ping"), say("done")], ping, confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        with pytest.raises(RewindRefused):
            await conversation.fork()


async def test_what_is_no_seq_is_refused_by_the_argument_s_name() -> None:
    async with talk([say("one")]) as conversation:
        await conversation.run("go")
        wrong: list[Any] = [1.5, "x", True, b"1"]
        for seq in wrong:
            with pytest.raises(TypeError, match=r"^to=.*: it is the seq of an event"):
                await conversation.rewind(to=seq)
            with pytest.raises(TypeError, match=r"^at=.*: it is the seq of an event"):
                await conversation.fork(at=seq)
            with pytest.raises(TypeError, match=r"^after=.*: it is the seq of an event"):
                conversation.events(after=seq)
        nothing: Any = None
        with pytest.raises(TypeError, match=r"^to=None"):
            await conversation.rewind(to=nothing)
