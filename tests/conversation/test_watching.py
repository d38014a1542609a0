"""Following a conversation: events without gap or double, deltas that may be lost, runs as streams."""

from __future__ import annotations

import anyio
import pytest

from agentcore import ToolContext
from agentcore.errors import ModelUnavailable, RunError
from agentcore.testing import Gate, ScriptedLLM, call, say
from agentcore.tools import tool
from talks import RUNNING, running, talk


async def test_many_watchers_see_every_event_once_and_in_order() -> None:
    seen: list[list[int]] = [[] for _ in range(10)]
    async with anyio.create_task_group() as tasks, talk([say(f"answer {n}") for n in range(20)]) as conversation:

        async def follow(into: list[int]) -> None:
            async for event in conversation.events():
                into.append(event.seq)

        never_read = conversation.events()
        for into in seen:
            tasks.start_soon(follow, into)
        for n in range(20):
            await conversation.run(f"question {n}")
        assert (await anext(never_read)).seq == 1
    expected = list(range(1, conversation.state.head + 1))
    assert all(into == expected for into in seen)


async def test_a_cursor_begins_behind_after_and_can_be_taken_up_anywhere() -> None:
    async with talk([say("a"), say("b")]) as conversation:
        await conversation.run("one")
        cursor = conversation.events()
        first = [(await anext(cursor)).seq for _ in range(3)]
        assert first == [1, 2, 3]
        assert cursor.seq == 3
        other = conversation.events(after=3)
        assert (await anext(other)).seq == 4
        rest = [(await anext(cursor)).seq for _ in range(conversation.state.head - 3)]
        assert rest == list(range(4, conversation.state.head + 1))
        live = conversation.events(after=conversation.state.head)
        await conversation.send("two")
        assert (await anext(live)).seq == conversation.state.head
        with pytest.raises(ValueError, match="after=-1"):
            conversation.events(after=-1)


async def test_deltas_add_up_to_the_reply() -> None:
    llm = ScriptedLLM([say("The quick brown fox jumps over the lazy dog.", thinking="Which animals?")])
    text: list[str] = []
    thought: list[str] = []
    async with anyio.create_task_group() as tasks, talk(llm) as conversation:
        deltas = conversation.deltas()

        async def follow() -> None:
            async for delta in deltas:
                into = {"text": text, "reasoning": thought}[delta.type]
                assert delta.offset == sum(map(len, into))
                into.append(delta.text)

        tasks.start_soon(follow)
        await conversation.run("go")
    assert "".join(text) == "The quick brown fox jumps over the lazy dog."
    assert "".join(thought) == "Which animals?"
    assert len(text) > 1


async def test_an_interrupted_reply_is_voided_for_those_who_saw_it_begin() -> None:
    gate = Gate()
    async with talk([gate.hold(say("It begins like this and goes on"), after=2)]) as conversation:
        deltas = conversation.deltas()
        async with running(conversation):
            await gate.arrived()
            await conversation.interrupt()
        kinds: list[str] = []
        async for delta in deltas:
            kinds.append(delta.type)
            if delta.type == "reset":
                break
    assert kinds[0] == "text"


async def test_a_subscriber_that_is_too_slow_is_told_of_the_gap() -> None:
    @tool
    async def chatty(ctx: ToolContext) -> str:
        """Talk."""
        for n in range(3000):
            await ctx.progress(f"line {n}\n")
        return "ok"

    async with talk([call("chatty"), say("done")], chatty) as conversation:
        deltas, others = conversation.deltas(), conversation.deltas()
        await conversation.run("go")
        first = await anext(deltas)
        taken = others.take()
        assert others.take() == []
    assert first.type == "gap"
    assert first.lost > 1000
    assert taken[0] == first
    assert len(taken) == 1025


async def test_the_progress_of_a_tool_reaches_those_who_watch() -> None:
    @tool
    async def build(ctx: ToolContext) -> str:
        """Build."""
        await ctx.progress("compiling\n")
        return "ok"

    async with talk([call("build"), say("done")], build) as conversation:
        deltas = conversation.deltas()
        await conversation.run("go")
    progress = [delta async for delta in deltas if delta.type == "progress"]
    assert [(delta.tool_name, delta.text) for delta in progress] == [("build", "compiling\n")]


async def test_a_run_as_a_stream_gives_its_events_and_ends_with_its_result_or_raises_as_the_run_does() -> None:
    async with talk([say("hi"), ModelUnavailable("no")]) as conversation:
        stream = conversation.run_stream("go")
        with pytest.raises(RuntimeError, match="settled"):
            _ = stream.result
        kinds = [event.kind async for event in stream]
        assert kinds[0] == "message"
        assert kinds[-1] == "conversation_state_update"
        assert stream.result.text == "hi"
        assert [event async for event in conversation.run_stream()] == []
        with pytest.raises(RunError):
            async for _ in conversation.run_stream("more"):
                pass


async def test_breaking_off_a_stream_leaves_the_run_to_be_joined() -> None:
    gate = Gate()
    async with talk([gate.hold(say("done"))]) as conversation:
        async for _ in conversation.run_stream("go"):
            break
        await gate.arrived()
        assert conversation.state.status is RUNNING
        gate.open()
        assert (await conversation.run()).text == "done"
