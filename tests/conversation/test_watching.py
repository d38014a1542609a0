"""Following a conversation: events without gap or double, deltas that may be lost, runs as streams."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest

from agentcore import Agent, Conversation, ConversationStatus, ToolContext
from agentcore.errors import ModelUnavailable, RunError
from agentcore.testing import Gate, ScriptedLLM, call, say
from agentcore.tools import tool


async def test_many_watchers_see_every_event_once_and_in_order(tmp_path: Path) -> None:
    llm = ScriptedLLM([say(f"answer {n}") for n in range(20)])
    seen: list[list[int]] = [[] for _ in range(10)]
    with anyio.fail_after(20):
        async with anyio.create_task_group() as tasks, Conversation(Agent(llm=llm), tmp_path) as conversation:

            async def follow(into: list[int]) -> None:
                async for event in conversation.events():
                    into.append(event.seq)

            for into in seen:
                tasks.start_soon(follow, into)
            for n in range(20):
                await conversation.run(f"question {n}")
    expected = list(range(1, conversation.state.head + 1))
    assert all(into == expected for into in seen)


async def test_a_cursor_begins_behind_after_and_can_be_taken_up_anywhere(tmp_path: Path) -> None:
    async with Conversation(Agent(llm=ScriptedLLM([say("a"), say("b")])), tmp_path) as conversation:
        await conversation.run("one")
        cursor = conversation.events()
        first = [(await anext(cursor)).seq for _ in range(3)]
        assert first == [1, 2, 3]
        assert cursor.seq == 3
        other = conversation.events(after=3)
        assert (await anext(other)).seq == 4
        rest: list[int] = []

        async def go_on() -> None:
            async for event in cursor:
                rest.append(event.seq)
                if event.seq == conversation.state.head:
                    break

        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(go_on)
        assert rest == list(range(4, conversation.state.head + 1))
        live = conversation.events(after=conversation.state.head)
        await conversation.send("two")
        assert (await anext(live)).seq == conversation.state.head
        with pytest.raises(ValueError, match="after=-1"):
            conversation.events(after=-1)


async def test_a_watcher_that_never_reads_costs_the_agent_nothing(tmp_path: Path) -> None:
    llm = ScriptedLLM([say(f"{n}") for n in range(50)])
    async with Conversation(Agent(llm=llm), tmp_path) as conversation:
        slow = conversation.events()
        with anyio.fail_after(20):
            for n in range(50):
                await conversation.run(f"{n}")
        assert (await anext(slow)).seq == 1


async def test_deltas_add_up_to_the_reply(tmp_path: Path) -> None:
    llm = ScriptedLLM([say("The quick brown fox jumps over the lazy dog.", thinking="Which animals?")])
    text: list[str] = []
    thought: list[str] = []
    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks, Conversation(Agent(llm=llm), tmp_path) as conversation:
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


async def test_an_interrupted_reply_is_voided_for_those_who_saw_it_begin(tmp_path: Path) -> None:
    gate = Gate()
    llm = ScriptedLLM([gate.hold(say("It begins like this and goes on"), after=2)])
    async with Conversation(Agent(llm=llm), tmp_path) as conversation:
        deltas = conversation.deltas()
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(conversation.run, "go")
                await gate.arrived()
                await conversation.interrupt()
            kinds: list[str] = []
            async for delta in deltas:
                kinds.append(delta.type)
                if delta.type == "reset":
                    break
    assert kinds[0] == "text"


async def test_a_subscriber_that_is_too_slow_is_told_of_the_gap(tmp_path: Path) -> None:
    @tool
    async def chatty(ctx: ToolContext) -> str:
        """Talk."""
        for n in range(3000):
            await ctx.progress(f"line {n}\n")
        return "ok"

    llm = ScriptedLLM([call("chatty"), say("done")])
    async with Conversation(Agent(llm=llm, tools=[chatty]), tmp_path) as conversation:
        deltas = conversation.deltas()
        with anyio.fail_after(20):
            await conversation.run("go")
            first = await anext(deltas)
    assert first.type == "gap"
    assert first.lost > 1000


async def test_the_progress_of_a_tool_reaches_those_who_watch(tmp_path: Path) -> None:
    @tool
    async def build(ctx: ToolContext) -> str:
        """Build."""
        await ctx.progress("compiling\n")
        return "ok"

    llm = ScriptedLLM([call("build"), say("done")])
    async with Conversation(Agent(llm=llm, tools=[build]), tmp_path) as conversation:
        deltas = conversation.deltas()
        await conversation.run("go")
    progress = [delta async for delta in deltas if delta.type == "progress"]
    assert [(delta.tool_name, delta.text) for delta in progress] == [("build", "compiling\n")]


async def test_a_run_as_a_stream_gives_its_events_and_ends_with_its_result(tmp_path: Path) -> None:
    async with Conversation(Agent(llm=ScriptedLLM([say("hi")])), tmp_path) as conversation:
        stream = conversation.run_stream("go")
        with pytest.raises(RuntimeError, match="settled"):
            _ = stream.result
        with anyio.fail_after(10):
            kinds = [event.kind async for event in stream]
        assert kinds[0] == "message"
        assert kinds[-1] == "conversation_state_update"
        assert stream.result.text == "hi"
        with anyio.fail_after(10):
            assert [event async for event in conversation.run_stream()] == []


async def test_a_stream_raises_as_the_run_does(tmp_path: Path) -> None:
    async with Conversation(Agent(llm=ScriptedLLM([ModelUnavailable("no")])), tmp_path) as conversation:
        with pytest.raises(RunError), anyio.fail_after(10):
            async for _ in conversation.run_stream("go"):
                pass


async def test_breaking_off_a_stream_leaves_the_run_to_be_joined(tmp_path: Path) -> None:
    gate = Gate()
    async with Conversation(Agent(llm=ScriptedLLM([gate.hold(say("done"))])), tmp_path) as conversation:
        with anyio.fail_after(10):
            async for _ in conversation.run_stream("go"):
                break
            await gate.arrived()
            assert conversation.state.status is ConversationStatus.RUNNING
            gate.open()
            assert (await conversation.run()).text == "done"
