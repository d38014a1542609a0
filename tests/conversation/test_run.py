"""A run: from a message until the conversation settles."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from pydantic import BaseModel, JsonValue
from typing_extensions import TypedDict

from agentcore import (
    AgentErrorEvent,
    FileStore,
    MemoryStore,
    Message,
    MessageEvent,
    ObservationEvent,
    ToolContext,
    UsageEvent,
)
from agentcore.context import rebuild_request
from agentcore.errors import ConversationError, ModelUnavailable, ReentrantCall, RunError
from agentcore.record import read_log
from agentcore.testing import Gate, ScriptedLLM, call, calls, say
from agentcore.tools import OutputSchema, tool
from talks import ERROR, FINISHED, IDLE, STUCK, change, error_of, events_of, kinds_of, ran, running, scripted, talk


@tool
async def spool(ctx: ToolContext) -> str:
    """Keep something in the workspace."""
    return await ctx.spool("whole.txt", "all of it")


async def test_words_without_calls_finish_the_run() -> None:
    async with talk([say("Hello!")]) as conversation:
        result = await conversation.run("Hi")
    assert (result.status, result.text, result.steps) == (FINISHED, "Hello!", 1)
    assert repr(result).startswith("<RunResult finished, 1 step")
    assert conversation.state.status is FINISHED


async def test_calls_are_run_and_the_model_reads_their_answers() -> None:
    llm = ScriptedLLM([call("change", name="Rome"), call("finish", message="It is done.")])
    async with talk(llm, change) as conversation:
        assert (await conversation.run("go")).text == "It is done."
    assert [message.role for message in llm.requests[1].messages] == ["system", "user", "assistant", "tool"]
    assert "changed Rome" in str(llm.requests[1].messages[-1])
    times = [event.timestamp for event in conversation.state.events]
    assert times == sorted(times)


async def test_an_action_is_kept_before_its_tool_starts_and_in_one_group_with_its_start() -> None:
    seen: list[list[str]] = []

    @tool
    async def look() -> str:
        """Look."""
        seen.append(kinds_of(conversation))
        return "ok"

    async with talk([call("look"), say("done")], look) as conversation:
        await conversation.run("go")
    assert seen[0][-3:] == ["action", "usage", "action_started"]


async def test_a_message_sent_while_the_agent_works_is_read_at_the_next_step() -> None:
    @tool
    async def work() -> str:
        """Work."""
        await conversation.send("Also greet Bob.")
        return "worked"

    llm = ScriptedLLM([call("work"), say("Hi Bob")])
    async with talk(llm, work) as conversation:
        await conversation.run("go")
    messages = llm.requests[1].messages
    assert [message.role for message in messages[-2:]] == ["tool", "user"]
    assert messages[-1].text == "Also greet Bob."


async def test_a_run_does_not_finish_over_a_message_that_its_last_request_had_not_seen() -> None:
    gate = Gate()
    async with talk([gate.hold(say("Done.")), say("And Bob: hi.")]) as conversation:
        async with running(conversation) as run:
            await gate.arrived()
            await conversation.send("Greet Bob too.")
            gate.open()
    assert (run.result.text, run.result.steps) == ("And Bob: hi.", 2)


async def test_a_finished_conversation_returns_at_once_and_a_message_makes_it_idle_again() -> None:
    llm = ScriptedLLM([say("one"), say("two")])
    async with talk(llm) as conversation:
        first = await conversation.run("go")
        again = await conversation.run()
        assert (again.status, again.text, len(llm.requests)) == (first.status, "one", 1)
        await conversation.send("more")
        assert conversation.state.status is IDLE
        assert (await conversation.run()).text == "two"


async def test_a_second_run_joins_the_first_and_its_text_is_sent_before() -> None:
    gate = Gate()
    async with talk([gate.hold(say("first")), say("both")]) as conversation:
        async with running(conversation, "one") as first:
            await gate.arrived()
            async with running(conversation, "two") as second:
                await anyio.wait_all_tasks_blocked()
                gate.open()
    assert first.result == second.result
    assert [event.text for event in events_of(conversation, MessageEvent)] == ["one", "two", "first", "both"]


async def test_a_failed_model_raises_with_the_result_and_the_run_can_be_tried_again() -> None:
    async with talk([ModelUnavailable("overloaded"), say("now")]) as conversation:
        with pytest.raises(RunError, match="overloaded") as caught:
            await conversation.run("go")
        assert isinstance(caught.value.error, ModelUnavailable)
        assert caught.value.result.status is ERROR
        assert conversation.state.status_code == "ModelUnavailable"
        assert (await conversation.run()).text == "now"


async def test_a_run_without_any_message_is_refused_with_what_to_do_and_only_user_messages_can_be_sent() -> None:
    async with talk([]) as conversation:
        with pytest.raises(ConversationError, match="send a message"):
            await conversation.run()
        with pytest.raises(ValueError, match="assistant"):
            await conversation.send(Message.assistant("I am the agent"))


async def test_an_empty_reply_is_nudged_once_and_then_stuck() -> None:
    llm = ScriptedLLM([say(""), say("")])
    async with talk(llm) as conversation:
        result = await conversation.run("go")
    assert (result.status, result.error and result.error.code) == (STUCK, "empty_reply")
    assert "empty" in llm.requests[1].messages[-1].text


async def test_thinking_alone_is_nudged_and_the_thinking_is_kept() -> None:
    llm = ScriptedLLM([say("", thinking="hmm"), say("ok")])
    async with talk(llm) as conversation:
        assert (await conversation.run("go")).text == "ok"
    assert "hmm" in str(llm.requests[1].messages[-2])


async def test_calls_after_finish_are_not_run_and_that_is_said() -> None:
    async with talk([calls(call("finish", message="done"), call("change", name="late"))], change) as conversation:
        assert (await conversation.run("go")).text == "done"
    assert error_of(conversation).outcome == "not_run"
    assert not conversation.state.open_actions
    assert not ran


class Facts(BaseModel):
    count: int


async def test_an_output_type_is_given_at_the_result_and_read_back_from_the_log() -> None:
    store = MemoryStore()
    agent = scripted([say("just words"), call("finish", message="ok", result={"count": 3})], output=Facts)
    async with talk(agent, store=store, id="a") as conversation:
        assert (await conversation.run("count")).output == Facts(count=3)
    async with talk(agent, store=store, id="a") as conversation:
        assert (await conversation.run()).output == Facts(count=3)


@dataclass
class Place:
    name: str
    at: tuple[int, int] = (0, 0)


class Trip(TypedDict):
    places: list[Place]


@pytest.mark.parametrize(
    ("output", "given", "expected", "name"),
    [
        (list[int], [1, 2], [1, 2], "list[int]"),
        (str, "words", "words", "str"),
        (int | None, None, None, "int | None"),
        (int | str, "x", "x", "int | str"),
        (Literal["yes", "no"], "no", "no", "Literal['yes', 'no']"),
        (Place, {"name": "a", "at": [1, 2]}, Place("a", (1, 2)), "Place"),
        (Trip, {"places": [{"name": "a"}]}, {"places": [Place("a")]}, "Trip"),
    ],
)
async def test_the_output_is_of_any_type_that_pydantic_knows(
    output: Any, given: JsonValue, expected: object, name: str
) -> None:
    store = MemoryStore()
    wrong = call("finish", message="ok", result={"of": "another shape"})
    script = [wrong, call("finish", message="ok", result=given)]
    async with talk(scripted(script, output=output), store=store, id="a") as conversation:
        result = await conversation.run("go")
        assert (result.output, result.steps) == (expected, 2), "the model read what was wrong, and tried again"
        assert conversation.state.agent is not None
        recorded: Any = conversation.state.agent.agent["output"]
        assert recorded["name"] == name
    async with talk(scripted(script, output=output), store=store, id="a") as conversation:
        assert (await conversation.run()).output == expected
    by_schema = OutputSchema(**recorded)
    async with talk(scripted(script, output=by_schema), store=store, id="a") as conversation:
        assert (await conversation.run()).output == given


async def test_words_instead_of_the_output_twice_are_an_error() -> None:
    async with talk(scripted([say("a"), say("b")], output=Facts)) as conversation:
        result = await conversation.run("count")
    assert (result.status, result.error and result.error.code) == (ERROR, "output_missing")


async def test_run_and_close_from_inside_a_tool_are_refused_with_what_to_do() -> None:
    @tool
    async def naughty() -> str:
        """Try."""
        for attempt in (conversation.run, conversation.close):
            with pytest.raises(ReentrantCall, match=r"ctx\.send"):
                await attempt()
        return "refused"

    async with talk([call("naughty"), say("done")], naughty) as conversation:
        assert (await conversation.run("go")).text == "done"
    assert not events_of(conversation, AgentErrorEvent)


async def test_a_tool_may_send_ask_and_spool() -> None:
    @tool
    async def helper(ctx: ToolContext) -> str:
        """Help."""
        answer = await ctx.ask("What is it?")
        await ctx.send("A note.")
        path = await ctx.spool("whole.txt", "all of it")
        return f"{answer} {(await ctx.workspace.read(path)).decode()}"

    llm = ScriptedLLM([call("helper"), say("forty-two"), say("done")])
    async with talk(llm, helper) as conversation:
        await conversation.run("go")
    assert "forty-two all of it" in str(conversation.state.events)
    assert llm.requests[2].messages[-1].text == "A note."
    assert [event.purpose for event in events_of(conversation, UsageEvent)] == ["step", "ask", "step"]


async def test_a_side_question_leaves_no_message_and_its_usage_counts() -> None:
    async with talk([say("hello"), say("It was a greeting.")]) as conversation:
        await conversation.run("hi")
        before = len(conversation.state.shown)
        assert await conversation.ask("What was that?") == "It was a greeting."
        assert len(conversation.state.shown) == before
        assert conversation.state.usage.requests == 2


async def test_long_output_is_cut_for_the_model_and_kept_whole_where_it_can_be_read() -> None:
    @tool
    async def chatty() -> str:
        """Talk."""
        return "begin\n" + "x" * 100_000 + "\nend"

    async with talk([call("chatty"), say("done")], chatty) as conversation:
        await conversation.run("go")
        (answer,) = events_of(conversation, ObservationEvent)
        assert len(answer.text) < 31_000
        assert answer.text.startswith("begin")
        assert answer.text.rstrip().endswith("end")
        path = answer.text.split("Full output: ")[1].split("]")[0]
        assert len(await conversation.workspace.read(path)) == 100_010


@pytest.mark.parametrize("stored", [False, True])
async def test_a_conversation_goes_on_where_it_was(stored: bool) -> None:
    store = FileStore("logs") if stored else MemoryStore()
    llm = ScriptedLLM([say("one"), say("two")])
    async with talk(llm, store=store, id="mine") as conversation:
        await conversation.run("first")
        before = conversation.state.snapshot()
    async with talk(llm, store=store, id="mine") as conversation:
        assert conversation.state.snapshot() == before
        assert (await conversation.run("second")).text == "two"
    assert [m.text for m in llm.requests[1].messages[1:]] == ["first", "one", "second"]


async def test_the_request_of_every_past_step_can_be_rebuilt_from_the_log() -> None:
    store = FileStore("logs")
    two = calls(call("change", name="Rome"), call("change", name="Oslo"), text="Two cities.")
    llm = ScriptedLLM([two, say("", thinking="hmm"), call("nothing_such"), say("one"), say("two")])
    async with talk(llm, change, store=store, id="a") as conversation:
        await conversation.run("first")
        await conversation.rewind(to=0)
        await conversation.run("second")
    state = await read_log(store, "a")
    seen = [event.view_seq for event in events_of(state, UsageEvent)]
    assert len(seen) == len(llm.requests) == 5
    for request, view_seq in zip(llm.requests, seen, strict=True):
        assert view_seq is not None
        messages, tools = rebuild_request(state, view_seq)
        assert list(request.messages) == list(messages)
        assert list(request.tools) == list(tools)


async def test_deleting_a_conversation_removes_its_log_and_what_it_kept_in_the_workspace() -> None:
    store = FileStore("logs")
    async with talk([call("spool"), say("done")], spool, store=store) as conversation:
        await conversation.run("go")
        kept = Path(events_of(conversation, ObservationEvent)[0].text)
        assert kept.read_text() == "all of it"
        await conversation.delete()
        assert not kept.exists()
        assert not await store.list()


@pytest.mark.parametrize("stored", [False, True])
async def test_what_was_kept_in_the_workspace_lasts_as_long_as_the_log(stored: bool) -> None:
    store = FileStore("logs") if stored else None
    agent = scripted([call("spool"), say("done")], spool)
    async with talk(agent, store=store) as conversation:
        await conversation.run("go")
        kept = Path(events_of(conversation, ObservationEvent)[0].text)
    assert kept.exists() is stored
    if stored:
        async with talk(agent, store=store, id=conversation.id) as conversation:
            await conversation.workspace.remove_private_folder(conversation.id)
