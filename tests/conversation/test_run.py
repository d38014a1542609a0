"""A run: from a message until the conversation settles."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import anyio
import pytest
from pydantic import BaseModel

from agentcore import (
    Agent,
    AgentErrorEvent,
    Conversation,
    ConversationStatus,
    FileStore,
    MemoryStore,
    Message,
    MessageEvent,
    ObservationEvent,
    RunResult,
    ToolContext,
    UsageEvent,
)
from agentcore.context import rebuild_request
from agentcore.errors import ConversationError, ModelUnavailable, ReentrantCall, RunError
from agentcore.events import EventBase
from agentcore.record import read_log
from agentcore.testing import Gate, ScriptedLLM, call, calls, say
from agentcore.tools import tool


@tool
async def weather(city: str) -> str:
    """Tell the weather."""
    return f"Sunny in {city}"


E = TypeVar("E", bound=EventBase)


def events_of(conversation: Conversation, kind: type[E]) -> list[E]:
    return [event for event in conversation.state.events if isinstance(event, kind)]


def kinds(conversation: Conversation) -> list[str]:
    return [event.kind for event in conversation.state.events]


async def test_words_without_calls_finish_the_run(tmp_path: Path) -> None:
    agent = Agent(llm=ScriptedLLM([say("Hello!")]))
    async with Conversation(agent, tmp_path) as conversation:
        result = await conversation.run("Hi")
    assert result.status is ConversationStatus.FINISHED
    assert result.text == "Hello!"
    assert result.steps == 1
    assert conversation.state.status is ConversationStatus.FINISHED


async def test_calls_are_run_and_the_model_reads_their_answers(tmp_path: Path) -> None:
    llm = ScriptedLLM([call("weather", city="Rome"), call("finish", message="It is sunny.")])
    async with Conversation(Agent(llm=llm, tools=[weather]), tmp_path) as conversation:
        result = await conversation.run("How is Rome?")
    assert result.text == "It is sunny."
    roles = [message.role for message in llm.requests[1].messages]
    assert roles == ["system", "user", "assistant", "tool"]
    assert "Sunny in Rome" in str(llm.requests[1].messages[-1])


async def test_an_action_is_kept_before_its_tool_starts_and_in_one_group_with_its_start(tmp_path: Path) -> None:
    seen: list[list[str]] = []

    @tool
    async def look() -> str:
        """Look."""
        seen.append(kinds(conversation))
        return "ok"

    llm = ScriptedLLM([call("look"), say("done")])
    async with Conversation(Agent(llm=llm, tools=[look]), tmp_path) as conversation:
        await conversation.run("go")
    assert seen[0][-3:] == ["action", "usage", "action_started"]


async def test_a_message_sent_while_the_agent_works_is_read_at_the_next_step(tmp_path: Path) -> None:
    @tool
    async def work() -> str:
        """Work."""
        await conversation.send("Also greet Bob.")
        return "worked"

    llm = ScriptedLLM([call("work"), say("Hi Bob")])
    async with Conversation(Agent(llm=llm, tools=[work]), tmp_path) as conversation:
        await conversation.run("go")
    messages = llm.requests[1].messages
    assert [message.role for message in messages[-2:]] == ["tool", "user"]
    assert messages[-1].text == "Also greet Bob."


async def test_a_run_does_not_finish_over_a_message_that_its_last_request_had_not_seen(tmp_path: Path) -> None:
    gate = Gate()
    llm = ScriptedLLM([gate.hold(say("Done.")), say("And Bob: hi.")])
    results: list[RunResult] = []
    async with Conversation(Agent(llm=llm), tmp_path) as conversation:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:

                async def run() -> None:
                    results.append(await conversation.run("go"))

                tasks.start_soon(run)
                await gate.arrived()
                await conversation.send("Greet Bob too.")
                gate.open()
    assert results[0].text == "And Bob: hi."
    assert results[0].steps == 2


async def test_a_finished_conversation_returns_at_once_and_a_message_makes_it_idle_again(tmp_path: Path) -> None:
    llm = ScriptedLLM([say("one"), say("two")])
    async with Conversation(Agent(llm=llm), tmp_path) as conversation:
        first = await conversation.run("go")
        again = await conversation.run()
        assert (again.status, again.text) == (first.status, "one")
        assert len(llm.requests) == 1
        await conversation.send("more")
        assert conversation.state.status is ConversationStatus.IDLE
        assert (await conversation.run()).text == "two"


async def test_a_second_run_joins_the_first_and_its_text_is_sent_before(tmp_path: Path) -> None:
    gate = Gate()
    llm = ScriptedLLM([gate.hold(say("first")), say("both")])
    results: list[RunResult] = []
    async with Conversation(Agent(llm=llm), tmp_path) as conversation:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:

                async def run(text: str) -> None:
                    results.append(await conversation.run(text))

                tasks.start_soon(run, "one")
                await gate.arrived()
                tasks.start_soon(run, "two")
                await anyio.wait_all_tasks_blocked()
                gate.open()
    assert results[0] == results[1]
    assert [event.text for event in events_of(conversation, MessageEvent)] == ["one", "two", "first", "both"]


async def test_a_failed_model_raises_with_the_result_and_the_run_can_be_tried_again(tmp_path: Path) -> None:
    llm = ScriptedLLM([ModelUnavailable("overloaded"), say("now")])
    async with Conversation(Agent(llm=llm), tmp_path) as conversation:
        with pytest.raises(RunError, match="overloaded") as caught:
            await conversation.run("go")
        assert isinstance(caught.value.__cause__, ModelUnavailable)
        assert caught.value.result.status is ConversationStatus.ERROR
        assert conversation.state.status_code == "ModelUnavailable"
        assert (await conversation.run()).text == "now"


async def test_a_run_without_any_message_is_refused_with_what_to_do(tmp_path: Path) -> None:
    async with Conversation(Agent(llm=ScriptedLLM([])), tmp_path) as conversation:
        with pytest.raises(ConversationError, match="send a message"):
            await conversation.run()


async def test_only_user_messages_can_be_sent(tmp_path: Path) -> None:
    async with Conversation(Agent(llm=ScriptedLLM([])), tmp_path) as conversation:
        with pytest.raises(ValueError, match="assistant"):
            await conversation.send(Message.assistant("I am the agent"))


async def test_an_empty_reply_is_nudged_once_and_then_stuck(tmp_path: Path) -> None:
    llm = ScriptedLLM([say(""), say("")])
    async with Conversation(Agent(llm=llm), tmp_path) as conversation:
        result = await conversation.run("go")
    assert result.status is ConversationStatus.STUCK
    assert result.error is not None
    assert result.error.code == "empty_reply"
    assert "empty" in llm.requests[1].messages[-1].text


async def test_thinking_alone_is_nudged_and_the_thinking_is_kept(tmp_path: Path) -> None:
    llm = ScriptedLLM([say("", thinking="hmm"), say("ok")])
    async with Conversation(Agent(llm=llm), tmp_path) as conversation:
        result = await conversation.run("go")
    assert result.text == "ok"
    assert "hmm" in str(llm.requests[1].messages[-2])


async def test_calls_after_finish_are_not_run_and_that_is_said(tmp_path: Path) -> None:
    ran: list[str] = []

    @tool
    async def late() -> str:
        """Late."""
        ran.append("late")
        return "no"

    llm = ScriptedLLM([calls(call("finish", message="done"), call("late"))])
    async with Conversation(Agent(llm=llm, tools=[late]), tmp_path) as conversation:
        result = await conversation.run("go")
    assert result.text == "done"
    assert not ran
    answers = events_of(conversation, AgentErrorEvent)
    assert len(answers) == 1
    assert answers[0].outcome == "not_run"
    assert not conversation.state.open_actions


class Facts(BaseModel):
    count: int


async def test_an_output_type_is_given_at_the_result_and_read_back_from_the_log(tmp_path: Path) -> None:
    store = MemoryStore()
    agent = Agent(llm=ScriptedLLM([say("just words"), call("finish", message="ok", result={"count": 3})]), output=Facts)
    async with Conversation(agent, tmp_path, store=store) as conversation:
        result = await conversation.run("count")
        assert result.output == Facts(count=3)
    async with Conversation(agent, tmp_path, store=store, id=conversation.id) as conversation:
        assert (await conversation.run()).output == Facts(count=3)


async def test_words_instead_of_the_output_twice_are_an_error(tmp_path: Path) -> None:
    agent = Agent(llm=ScriptedLLM([say("a"), say("b")]), output=Facts)
    async with Conversation(agent, tmp_path) as conversation:
        result = await conversation.run("count")
    assert result.status is ConversationStatus.ERROR
    assert result.error is not None
    assert result.error.code == "output_missing"


async def test_run_and_close_from_inside_a_tool_are_refused_with_what_to_do(tmp_path: Path) -> None:
    @tool
    async def naughty() -> str:
        """Try."""
        for attempt in (conversation.run, conversation.close):
            with pytest.raises(ReentrantCall, match=r"ctx\.send"):
                await attempt()
        return "refused"

    llm = ScriptedLLM([call("naughty"), say("done")])
    async with Conversation(Agent(llm=llm, tools=[naughty]), tmp_path) as conversation:
        with anyio.fail_after(10):
            assert (await conversation.run("go")).text == "done"


async def test_a_tool_may_send_ask_and_spool(tmp_path: Path) -> None:
    @tool
    async def helper(ctx: ToolContext) -> str:
        """Help."""
        answer = await ctx.ask("What is it?")
        await ctx.send("A note.")
        path = await ctx.spool("whole.txt", "all of it")
        return f"{answer} {(await ctx.workspace.read(path)).decode()}"

    llm = ScriptedLLM([call("helper"), say("forty-two"), say("done")])
    async with Conversation(Agent(llm=llm, tools=[helper]), tmp_path) as conversation:
        await conversation.run("go")
    assert "forty-two all of it" in str(conversation.state.events)
    assert llm.requests[2].messages[-1].text == "A note."
    assert [event.purpose for event in events_of(conversation, UsageEvent)] == ["step", "ask", "step"]


async def test_a_side_question_leaves_no_message_and_its_usage_counts(tmp_path: Path) -> None:
    llm = ScriptedLLM([say("hello"), say("It was a greeting.")])
    async with Conversation(Agent(llm=llm), tmp_path) as conversation:
        await conversation.run("hi")
        before = len(conversation.state.shown)
        assert await conversation.ask("What was that?") == "It was a greeting."
        assert len(conversation.state.shown) == before
        assert conversation.state.usage.requests == 2


async def test_long_output_is_cut_for_the_model_and_kept_whole_where_it_can_be_read(tmp_path: Path) -> None:
    @tool
    async def chatty() -> str:
        """Talk."""
        return "begin\n" + "x" * 100_000 + "\nend"

    llm = ScriptedLLM([call("chatty"), say("done")])
    async with Conversation(Agent(llm=llm, tools=[chatty]), tmp_path) as conversation:
        await conversation.run("go")
        text = events_of(conversation, ObservationEvent)[0].text
        assert len(text) < 31_000
        assert text.startswith("begin")
        assert text.rstrip().endswith("end")
        path = text.split("Full output: ")[1].split("]")[0]
        assert len(await conversation.workspace.read(path)) == 100_010


@pytest.mark.parametrize("stored", [False, True])
async def test_a_conversation_goes_on_where_it_was(tmp_path: Path, stored: bool) -> None:
    store = FileStore(tmp_path / "logs") if stored else MemoryStore()
    llm = ScriptedLLM([say("one"), say("two")])
    agent = Agent(llm=llm)
    async with Conversation(agent, tmp_path, store=store, id="mine") as conversation:
        await conversation.run("first")
        before = conversation.state.snapshot()
    async with Conversation(agent, tmp_path, store=store, id="mine") as conversation:
        assert conversation.state.snapshot() == before
        assert (await conversation.run("second")).text == "two"
    assert [m.text for m in llm.requests[1].messages[1:]] == ["first", "one", "second"]


async def test_the_request_of_every_past_step_can_be_rebuilt_from_the_log(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "logs")
    llm = ScriptedLLM(
        [
            calls(call("weather", city="Rome"), call("weather", city="Oslo"), text="Two cities."),
            say("", thinking="hmm"),
            call("nothing_such"),
            say("one"),
            say("two"),
        ]
    )
    agent = Agent(llm=llm, tools=[weather])
    async with Conversation(agent, tmp_path, store=store, id="a") as conversation:
        await conversation.run("first")
        await conversation.rewind(to=0)
        await conversation.run("second")
    state = await read_log(store, "a")
    seen = [event.view_seq for event in state.events if isinstance(event, UsageEvent)]
    assert len(seen) == len(llm.requests) == 5
    for request, view_seq in zip(llm.requests, seen, strict=True):
        assert view_seq is not None
        messages, tools = rebuild_request(state, view_seq)
        assert list(request.messages) == list(messages)
        assert list(request.tools) == list(tools)


async def test_deleting_a_conversation_removes_its_log_and_what_it_kept_in_the_workspace(tmp_path: Path) -> None:
    @tool
    async def chatty(ctx: ToolContext) -> str:
        """Talk."""
        return await ctx.spool("whole.txt", "all of it")

    store = FileStore(tmp_path / "logs")
    agent = Agent(llm=ScriptedLLM([call("chatty"), say("done")]), tools=[chatty])
    async with Conversation(agent, tmp_path, store=store) as conversation:
        await conversation.run("go")
        kept = Path(events_of(conversation, ObservationEvent)[0].text)
        assert kept.read_text() == "all of it"
        await conversation.delete()
        assert not kept.exists()
        assert not await store.list()


@pytest.mark.parametrize("stored", [False, True])
async def test_what_was_kept_in_the_workspace_lasts_as_long_as_the_log(tmp_path: Path, stored: bool) -> None:
    @tool
    async def chatty(ctx: ToolContext) -> str:
        """Talk."""
        return await ctx.spool("whole.txt", "all of it")

    store = FileStore(tmp_path / "logs") if stored else None
    agent = Agent(llm=ScriptedLLM([call("chatty"), say("done")]), tools=[chatty])
    async with Conversation(agent, tmp_path, store=store) as conversation:
        await conversation.run("go")
        kept = Path(events_of(conversation, ObservationEvent)[0].text)
    assert kept.exists() is stored
    if stored:
        async with Conversation(agent, tmp_path, store=store, id=conversation.id) as conversation:
            await conversation.workspace.remove_private_folder(conversation.id)
