"""Running the calls of a reply: at once where their resources allow, each in a scope of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcore import (
    Action,
    ActionStarted,
    Agent,
    AgentErrorEvent,
    Conversation,
    Limits,
    ObservationEvent,
    RunResult,
    Tool,
    ToolContext,
    Workspace,
)
from agentcore.messages import ToolResultBlock
from agentcore.testing import ScriptedLLM, call, calls, say
from agentcore.tools import Resource, TextObservation, tool


def answers(conversation: Conversation) -> list[ObservationEvent | AgentErrorEvent]:
    return [event for event in conversation.state.events if isinstance(event, ObservationEvent | AgentErrorEvent)]


async def test_calls_that_share_nothing_overlap(tmp_path: Path) -> None:
    together = anyio.Event()
    inside = 0

    @tool(resources=())
    async def meet() -> str:
        """Wait for the others."""
        nonlocal inside
        inside += 1
        if inside == 3:
            together.set()
        await together.wait()
        return "met"

    llm = ScriptedLLM([calls(call("meet"), call("meet"), call("meet")), say("done")])
    async with Conversation(Agent(llm=llm, tools=[meet]), tmp_path) as conversation:
        with anyio.fail_after(10):
            await conversation.run("go")
    assert len(answers(conversation)) == 3


async def test_calls_that_conflict_run_in_the_order_of_the_calls(tmp_path: Path) -> None:
    order: list[str] = []

    @tool
    async def write(name: str) -> str:
        """Write the workspace: it declares nothing."""
        order.append(f"{name} begins")
        await anyio.lowlevel.checkpoint()
        order.append(f"{name} ends")
        return name

    llm = ScriptedLLM([calls(call("write", name="a"), call("write", name="b"), call("write", name="c")), say("done")])
    async with Conversation(Agent(llm=llm, tools=[write]), tmp_path) as conversation:
        await conversation.run("go")
    assert order == ["a begins", "a ends", "b begins", "b ends", "c begins", "c ends"]


def _file(action: Any, root: str) -> tuple[Resource, ...]:
    return (Resource.file(action.path, "write", root=root),)


async def test_calls_on_different_files_overlap_and_on_one_file_do_not(tmp_path: Path) -> None:
    inside: set[str] = set()
    most = 0
    gate = anyio.Event()

    @tool(resources=_file)
    async def edit(path: str) -> str:
        """Edit."""
        nonlocal most
        assert path not in inside
        inside.add(path)
        most = max(most, len(inside))
        if len(inside) == 2:
            gate.set()
        await gate.wait()
        inside.remove(path)
        return path

    llm = ScriptedLLM([calls(call("edit", path="a"), call("edit", path="a"), call("edit", path="b")), say("done")])
    async with Conversation(Agent(llm=llm, tools=[edit]), tmp_path) as conversation:
        with anyio.fail_after(10):
            await conversation.run("go")
    assert most == 2


async def test_the_model_sees_answers_in_the_order_of_the_calls_whatever_order_they_came_in(tmp_path: Path) -> None:
    second_done = anyio.Event()

    @tool(resources=())
    async def slow() -> str:
        """Slow."""
        await second_done.wait()
        return "slow"

    @tool(resources=())
    async def quick() -> str:
        """Quick."""
        return "quick"

    llm = ScriptedLLM([calls(call("slow"), call("quick")), say("done")])
    async with Conversation(Agent(llm=llm, tools=[slow, quick]), tmp_path) as conversation:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:

                async def watch() -> None:
                    async for event in conversation.events():
                        if isinstance(event, ObservationEvent):
                            assert event.tool_name == "quick"
                            await conversation.send("meanwhile")
                            second_done.set()
                            return

                tasks.start_soon(watch)
                await conversation.run("go")
    assert [answer.tool_name for answer in answers(conversation)] == ["quick", "slow"]
    shown = llm.requests[1].messages
    assert [block.name for block in shown[-2].content if isinstance(block, ToolResultBlock)] == ["slow", "quick"]
    assert shown[-1].text == "meanwhile"


async def test_no_more_calls_run_at_once_than_the_agent_allows(tmp_path: Path) -> None:
    inside = most = 0

    @tool(resources=())
    async def count() -> str:
        """Count."""
        nonlocal inside, most
        inside += 1
        most = max(most, inside)
        for _ in range(5):
            await anyio.lowlevel.checkpoint()
        inside -= 1
        return "ok"

    llm = ScriptedLLM([calls(*[call("count") for _ in range(7)]), say("done")])
    async with Conversation(Agent(llm=llm, tools=[count], max_parallel_calls=2), tmp_path) as conversation:
        await conversation.run("go")
    assert most == 2
    assert len(answers(conversation)) == 7


async def test_one_call_can_be_cancelled_and_its_siblings_go_on(tmp_path: Path) -> None:
    other = anyio.Event()

    @tool(resources=())
    async def hang() -> str:
        """Hang."""
        await anyio.sleep_forever()
        return "never"

    @tool(resources=())
    async def wait() -> str:
        """Wait."""
        await other.wait()
        return "waited"

    llm = ScriptedLLM([calls(call("hang"), call("wait")), say("done")])
    async with Conversation(Agent(llm=llm, tools=[hang, wait]), tmp_path) as conversation:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:

                async def cancel_one() -> None:
                    async for event in conversation.events():
                        if isinstance(event, ActionStarted):
                            assert await conversation.interrupt_call(str(event.cause))
                            break
                    async for event in conversation.events():
                        if isinstance(event, AgentErrorEvent):
                            other.set()
                            break

                tasks.start_soon(cancel_one)
                assert (await conversation.run("go")).text == "done"
    by_name = {answer.tool_name: answer for answer in answers(conversation)}
    assert isinstance(by_name["hang"], AgentErrorEvent)
    assert by_name["hang"].outcome == "interrupted"
    assert isinstance(by_name["wait"], ObservationEvent)


async def test_a_call_that_takes_too_long_is_interrupted_and_the_run_goes_on(tmp_path: Path) -> None:
    @tool(resources=())
    async def hang() -> str:
        """Hang."""
        await anyio.sleep_forever()
        return "never"

    llm = ScriptedLLM([call("hang"), say("done")])
    limits = Limits(call_seconds=0.01)
    async with Conversation(Agent(llm=llm, tools=[hang]), tmp_path, limits=limits) as conversation:
        with anyio.fail_after(10):
            result = await conversation.run("go")
    assert result.text == "done"
    (answer,) = answers(conversation)
    assert isinstance(answer, AgentErrorEvent)
    assert answer.code == "call_seconds"


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (ValueError("boom"), "ValueError"),
        (SystemExit(3), "ToolError"),
        (ExceptionGroup("many", [OSError("x")]), "OSError"),
    ],
)
async def test_whatever_a_tool_raises_is_its_answer(tmp_path: Path, error: BaseException, code: str) -> None:
    @tool
    async def broken() -> str:
        """Break."""
        raise error

    llm = ScriptedLLM([call("broken"), say("done")])
    async with Conversation(Agent(llm=llm, tools=[broken]), tmp_path) as conversation:
        result = await conversation.run("go")
    assert result.text == "done"
    (answer,) = answers(conversation)
    assert isinstance(answer, AgentErrorEvent)
    assert answer.outcome == "failed"
    assert answer.code == code


async def test_unknown_tools_and_bad_arguments_are_answered_with_what_there_is(tmp_path: Path) -> None:
    @tool
    async def weather(city: str) -> str:
        """Tell the weather."""
        return city

    llm = ScriptedLLM([calls(call("wether", city="Rome"), call("weather", town="Rome")), say("done")])
    async with Conversation(Agent(llm=llm, tools=[weather]), tmp_path) as conversation:
        await conversation.run("go")
    unknown, bad = answers(conversation)
    assert isinstance(unknown, AgentErrorEvent)
    assert isinstance(bad, AgentErrorEvent)
    assert unknown.code == "unknown_tool"
    assert "weather" in unknown.error
    assert bad.code == "bad_arguments"
    assert "town" in bad.error


class Tick(Action):
    """Count."""


async def test_a_tool_with_live_state_is_opened_once_and_closed_with_the_conversation(tmp_path: Path) -> None:
    happened: list[str] = []

    @asynccontextmanager
    async def counter(
        workspace: Workspace, conversation_id: str
    ) -> AsyncGenerator[Callable[[Tick, ToolContext], Awaitable[TextObservation]]]:
        happened.append("opened")
        count = 0

        async def execute(action: Tick, ctx: ToolContext) -> TextObservation:
            nonlocal count
            count += 1
            return TextObservation(text=str(count))

        # A task group across the yield: it must be entered and left in one task.
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(anyio.sleep_forever)
            yield execute
            tasks.cancel_scope.cancel()
        happened.append("closed")

    ticker = Tool(name="tick", description="Count.", action=Tick, open=counter, resources=())
    llm = ScriptedLLM([calls(call("tick"), call("tick")), call("tick"), say("done")])
    async with Conversation(Agent(llm=llm, tools=[ticker]), tmp_path) as conversation:
        await conversation.run("go")
        assert happened == ["opened"]
    assert happened == ["opened", "closed"]
    assert sorted(answer.text for answer in answers(conversation) if isinstance(answer, ObservationEvent)) == [
        "1",
        "2",
        "3",
    ]


async def test_a_tool_that_can_not_be_opened_is_an_answer_and_the_next_call_tries_again(tmp_path: Path) -> None:
    attempts = 0

    @asynccontextmanager
    async def flaky(
        workspace: Workspace, conversation_id: str
    ) -> AsyncGenerator[Callable[[Tick, ToolContext], Awaitable[TextObservation]]]:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise OSError("no such device")

        async def execute(action: Tick, ctx: ToolContext) -> TextObservation:
            return TextObservation(text="ok")

        yield execute

    ticker = Tool(name="tick", description="Count.", action=Tick, open=flaky)
    llm = ScriptedLLM([call("tick"), call("tick"), say("done")])
    async with Conversation(Agent(llm=llm, tools=[ticker]), tmp_path) as conversation:
        await conversation.run("go")
    first, second = answers(conversation)
    assert isinstance(first, AgentErrorEvent)
    assert "no such device" in first.error
    assert isinstance(second, ObservationEvent)


async def test_contexts_of_the_caller_reach_its_tools(tmp_path: Path) -> None:
    request_id: ContextVar[str] = ContextVar("request_id")
    seen: list[str] = []

    @tool
    async def look() -> str:
        """Look."""
        seen.append(request_id.get())
        return "ok"

    llm = ScriptedLLM([call("look"), say("one"), call("look"), say("two")])
    async with Conversation(Agent(llm=llm, tools=[look]), tmp_path) as conversation:
        results: list[RunResult] = []

        async def run(name: str) -> None:
            request_id.set(name)
            results.append(await conversation.run(name))

        for name in ("first", "second"):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run, name)
    assert seen == ["first", "second"]
