"""Running the calls of a reply: at once where their resources allow, each in a scope of its own."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from typing import Any

import anyio
import pytest

from agentcore import (
    Action,
    ActionStarted,
    AgentErrorEvent,
    Limits,
    Observation,
    ObservationEvent,
    Tool,
    ToolContext,
    Workspace,
)
from agentcore.errors import ToolError
from agentcore.messages import ToolResultBlock
from agentcore.testing import ScriptedLLM, call, calls, say
from agentcore.tools import Resource, TextObservation, tool
from talks import answers_of, error_of, events_of, hang, running, scripted, talk, until


async def test_calls_that_share_nothing_overlap() -> None:
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

    async with talk([calls(call("meet"), call("meet"), call("meet")), say("done")], meet) as conversation:
        await conversation.run("go")
    assert len(answers_of(conversation)) == 3


async def test_calls_that_conflict_run_in_the_order_of_the_calls() -> None:
    order: list[str] = []

    @tool
    async def write(name: str) -> str:
        """Write the workspace: it declares nothing."""
        order.append(f"{name} begins")
        await anyio.lowlevel.checkpoint()
        order.append(f"{name} ends")
        return name

    reply = calls(*(call("write", name=name) for name in "abc"))
    async with talk([reply, say("done")], write) as conversation:
        await conversation.run("go")
    assert order == ["a begins", "a ends", "b begins", "b ends", "c begins", "c ends"]


def _file(action: Any, root: str) -> tuple[Resource, ...]:
    return (Resource.file(action.path, "write", root=root),)


async def test_calls_on_different_files_overlap_and_on_one_file_do_not() -> None:
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

    reply = calls(*(call("edit", path=path) for path in "aab"))
    async with talk([reply, say("done")], edit) as conversation:
        await conversation.run("go")
    assert most == 2
    assert not events_of(conversation, AgentErrorEvent)


async def test_the_model_sees_answers_in_the_order_of_the_calls_whatever_order_they_came_in() -> None:
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
    async with talk(llm, slow, quick) as conversation, running(conversation):
        assert (await until(conversation, ObservationEvent)).tool_name == "quick"
        await conversation.send("meanwhile")
        second_done.set()
    assert [answer.tool_name for answer in events_of(conversation, ObservationEvent)] == ["quick", "slow"]
    shown = llm.requests[1].messages
    assert [block.name for block in shown[-2].content if isinstance(block, ToolResultBlock)] == ["slow", "quick"]
    assert shown[-1].text == "meanwhile"


async def test_no_more_calls_run_at_once_than_the_agent_allows() -> None:
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

    async with talk(scripted([calls(*[call("count")] * 7), say("done")], count, max_parallel_calls=2)) as conversation:
        await conversation.run("go")
    assert (most, len(answers_of(conversation))) == (2, 7)


async def test_one_call_can_be_cancelled_and_its_siblings_go_on() -> None:
    other = anyio.Event()

    @tool(resources=())
    async def wait() -> str:
        """Wait."""
        await other.wait()
        return "waited"

    async with talk([calls(call("hang"), call("wait")), say("done")], hang, wait) as conversation:
        async with running(conversation) as run:
            started = await until(conversation, ActionStarted)
            assert await conversation.interrupt_call(str(started.cause))
            await until(conversation, AgentErrorEvent)
            other.set()
        assert run.result.text == "done"
    assert (error_of(conversation).tool_name, error_of(conversation).outcome) == ("hang", "interrupted")
    assert [answer.tool_name for answer in events_of(conversation, ObservationEvent)] == ["wait"]


async def test_a_call_that_takes_too_long_is_interrupted_and_the_run_goes_on() -> None:
    async with talk([call("hang"), say("done")], hang, limits=Limits(call_seconds=0.01)) as conversation:
        assert (await conversation.run("go")).text == "done"
    assert error_of(conversation).code == "call_seconds"


class Untellable(Exception):
    """Whose class can't be asked for words."""

    def __str__(self) -> str:
        raise ValueError("no words")

    __repr__ = __str__


def nested(depth: int) -> Exception:
    error: Exception = ValueError("deep")
    for _ in range(depth):
        wrapped: list[Exception] = [error]
        error = ExceptionGroup("g", wrapped)
    return error


def with_notes() -> Exception:
    error = ValueError("noted")
    error.__notes__ = 5  # pyright: ignore[reportAttributeAccessIssue] - what the test is about
    return error


@pytest.mark.parametrize(
    ("error", "code", "words"),
    [
        pytest.param(ValueError("boom"), "ValueError", "boom", id="error"),
        pytest.param(SystemExit(3), "ToolError", "3", id="exit"),
        pytest.param(ExceptionGroup("g", [ToolError("Use metres.")]), "ToolError", "Use metres.", id="group"),
        pytest.param(Untellable(), "Untellable", "telling of it raised ValueError", id="untellable"),
        pytest.param(ExceptionGroup("g", [Untellable(), ValueError("x")]), "Untellable", "x", id="untellable-group"),
        pytest.param(ExceptionGroup("g", [with_notes(), Untellable()]), "ValueError", "noted", id="notes-in-group"),
        pytest.param(with_notes(), "ValueError", "noted", id="notes"),
        pytest.param(nested(3000), "ValueError", "deep", id="deep"),
        pytest.param(BaseExceptionGroup("g", [SystemExit(1), ValueError("x")]), "SystemExit", "x", id="exit-and-error"),
        pytest.param(BaseExceptionGroup("g", [SystemExit(3)]), "SystemExit", "3", id="exit-group"),
    ],
)
async def test_whatever_a_tool_raises_is_its_answer(
    error: BaseException, code: str, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    @tool
    async def broken() -> str:
        """Break."""
        raise error

    caplog.set_level("DEBUG", "agentcore")
    async with talk([call("broken"), say("done")], broken) as conversation:
        assert (await conversation.run("go")).text == "done"
    answer = error_of(conversation)
    assert (answer.outcome, answer.code) == ("failed", code)
    assert words in answer.error


async def test_unknown_tools_and_bad_arguments_are_answered_with_what_there_is() -> None:
    @tool
    async def weather(city: str) -> str:
        """Tell the weather."""
        return city

    reply = calls(call("wether", city="Rome"), call("weather", town="Rome"))
    async with talk([reply, say("done")], weather) as conversation:
        await conversation.run("go")
    unknown, bad = events_of(conversation, AgentErrorEvent)
    assert (unknown.code, bad.code) == ("unknown_tool", "bad_arguments")
    assert "weather" in unknown.error
    assert "town" in bad.error


class Tick(Action):
    """Count."""


async def test_a_tool_with_live_state_is_opened_once_and_closed_with_the_conversation() -> None:
    happened: list[str] = []

    @asynccontextmanager
    async def counter(workspace: Workspace, conversation_id: str) -> AsyncGenerator[Any]:
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
    async with talk([calls(call("tick"), call("tick")), call("tick"), say("done")], ticker) as conversation:
        await conversation.run("go")
        assert happened == ["opened"]
    assert happened == ["opened", "closed"]
    assert sorted(answer.text for answer in events_of(conversation, ObservationEvent)) == ["1", "2", "3"]


async def test_a_tool_that_can_not_be_opened_is_an_answer_and_the_next_call_tries_again() -> None:
    attempts = 0

    async def execute(action: Tick, ctx: ToolContext) -> Observation:
        return Observation()

    @asynccontextmanager
    async def flaky(workspace: Workspace, conversation_id: str) -> AsyncGenerator[Any]:
        nonlocal attempts
        attempts += 1
        if attempts == 1:
            raise OSError("no such device")
        yield execute

    ticker = Tool(name="tick", description="Count.", action=Tick, open=flaky)
    async with talk([call("tick"), call("tick"), say("done")], ticker) as conversation:
        await conversation.run("go")
    assert [answer.kind for answer in answers_of(conversation)] == ["agent_error", "observation"]
    assert "no such device" in error_of(conversation).error


async def test_contexts_of_the_caller_reach_its_tools() -> None:
    request_id: ContextVar[str] = ContextVar("request_id")
    seen: list[str] = []

    @tool
    async def look() -> str:
        """Look."""
        seen.append(request_id.get())
        return "ok"

    async with talk([call("look"), say("one"), call("look"), say("two")], look) as conversation:

        async def run(name: str) -> None:
            request_id.set(name)
            await conversation.run(name)

        for name in ("first", "second"):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run, name)
    assert seen == ["first", "second"]
