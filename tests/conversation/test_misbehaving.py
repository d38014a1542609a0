"""Tools, models, callbacks and stores that do what they should not: the log stays whole and the errors say what to do."""

from __future__ import annotations

import asyncio  # noqa: TID251  what users raise by accident
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agentcore import (
    Action,
    Agent,
    AgentErrorEvent,
    Conversation,
    ConversationStatus,
    MemoryStore,
    Observation,
    Tool,
    ToolContext,
)
from agentcore.errors import (
    ConversationClosed,
    ReentrantCall,
    RunError,
    StoreError,
    ToolError,
)
from agentcore.events import Condensation
from agentcore.record import ShownEvent, read_log
from agentcore.testing import Gate, Request, ScriptedLLM, ScriptLine, call, calls, say
from agentcore.tools import tool


class Boom(BaseException):
    """Not an Exception: the end of a test, of a process, of a greenlet."""


class Nothing(Action):
    """Nothing to say."""


async def answer(action: Nothing, ctx: ToolContext) -> Observation:
    return Observation()


def errors(conversation: Conversation) -> list[AgentErrorEvent]:
    return [event for event in conversation.state.events if isinstance(event, AgentErrorEvent)]


async def test_what_is_no_exception_leaves_as_itself_and_the_log_is_whole(tmp_path: Path) -> None:
    @tool
    async def bad() -> str:
        """Explode."""
        raise Boom("over")

    store = MemoryStore()
    conversation = Conversation(Agent(llm=ScriptedLLM([call("bad")]), tools=[bad]), tmp_path, store=store)
    with pytest.raises(Boom, match="over"), anyio.fail_after(10):
        async with conversation:
            await conversation.run("go")
    state = await read_log(store, conversation.id)
    assert state.status is ConversationStatus.ERROR
    assert state.status_code == "Boom"
    assert not state.open_actions


async def test_a_tool_that_cancels_itself_is_answered_and_the_others_go_on(
    tmp_path: Path, anyio_backend_name: str
) -> None:
    if anyio_backend_name != "asyncio":
        pytest.skip("only asyncio's cancellation can be raised by anybody")

    @tool(resources=())
    async def bad() -> str:
        """Await a future that was cancelled."""
        raise asyncio.CancelledError

    @tool(resources=())
    async def good() -> str:
        """Take a while."""
        for _ in range(10):
            await checkpoint()
        return "ok"

    agent = Agent(llm=ScriptedLLM([calls(call("bad"), call("good")), say("done")]), tools=[bad, good])
    async with Conversation(agent, tmp_path) as conversation:
        assert (await conversation.run("go")).text == "done"
        (error,) = errors(conversation)
        assert "it was not cancelled" in error.error


async def test_a_model_that_cancels_itself_fails_its_run_and_the_next_one_works(
    tmp_path: Path, anyio_backend_name: str
) -> None:
    if anyio_backend_name != "asyncio":
        pytest.skip("only asyncio's cancellation can be raised by anybody")

    async def bad(request: Request) -> ScriptLine:
        raise asyncio.CancelledError

    async with Conversation(Agent(llm=ScriptedLLM([bad, say("done")])), tmp_path) as conversation:
        with anyio.fail_after(10):
            with pytest.raises(RunError, match="awaited a task or a future"):
                await conversation.run("go")
            assert (await conversation.run()).text == "done"


async def test_an_error_of_another_conversations_store_is_the_tools_answer(tmp_path: Path) -> None:
    store = MemoryStore()
    inner = Agent(llm=ScriptedLLM([]))

    @tool
    async def delegate() -> str:
        """Open a conversation that is open elsewhere."""
        async with Conversation(inner, tmp_path, store=store, id="inner"):
            return "never"

    agent = Agent(llm=ScriptedLLM([call("delegate"), say("done")]), tools=[delegate])
    async with Conversation(inner, tmp_path, store=store, id="inner"), Conversation(agent, tmp_path) as conversation:
        assert (await conversation.run("go")).text == "done"
        assert errors(conversation)[0].code == "ConversationLocked"


@pytest.mark.parametrize("error", [StoreError("not ours"), ConversationClosed("another")])
async def test_a_model_that_raises_another_conversations_error_fails_its_run_alone(
    tmp_path: Path, error: Exception
) -> None:
    async with Conversation(Agent(llm=ScriptedLLM([error, say("done")])), tmp_path) as conversation:
        with pytest.raises(RunError) as caught:
            await conversation.run("go")
        assert caught.value.__cause__ is error
        assert conversation.state.status is ConversationStatus.ERROR
        assert (await conversation.run()).text == "done"


async def test_an_error_in_a_task_of_the_tool_is_told_as_itself(tmp_path: Path) -> None:
    @tool
    async def busy() -> str:
        """Start a task of its own."""

        async def fail() -> None:
            raise ToolError("Use metres.")

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(fail)
        return "never"

    agent = Agent(llm=ScriptedLLM([call("busy"), say("done")]), tools=[busy])
    async with Conversation(agent, tmp_path) as conversation:
        await conversation.run("go")
        assert [event.error for event in errors(conversation)] == ["Use metres."]


async def test_an_executor_that_gives_nothing_is_told_so(tmp_path: Path) -> None:
    async def forgetful(action: Nothing, ctx: ToolContext) -> Any:
        return None

    forgets = Tool(name="forgets", description="Forgets.", action=Nothing, execute=forgetful)
    async with Conversation(
        Agent(llm=ScriptedLLM([call("forgets"), say("done")]), tools=[forgets]), tmp_path
    ) as conversation:
        await conversation.run("go")
        assert "NoneType instead of an Observation" in errors(conversation)[0].error


async def test_a_context_that_outlived_its_call_does_not_stop_a_later_turn(tmp_path: Path) -> None:
    kept: list[ToolContext] = []

    @tool
    async def leak(ctx: ToolContext) -> str:
        """Leak."""
        kept.append(ctx)
        return ""

    gate = Gate()
    agent = Agent(llm=ScriptedLLM([call("leak"), say("one"), gate.hold(say("two"))]), tools=[leak])
    async with Conversation(agent, tmp_path) as conversation:
        await conversation.run("go")

        async def late() -> None:
            await gate.arrived()
            await kept[0].interrupt()
            gate.open()

        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(late)
                assert (await conversation.run("more")).text == "two"
    with pytest.raises(ConversationClosed):
        await kept[0].send("too late")


async def test_a_stream_of_a_run_is_not_followed_from_inside_it(tmp_path: Path) -> None:
    @tool
    async def follow() -> str:
        """Wait for oneself."""
        async for _ in stream:
            pass
        return "never"

    agent = Agent(llm=ScriptedLLM([call("follow"), say("done")]), tools=[follow])
    async with Conversation(agent, tmp_path) as conversation:
        stream = conversation.run_stream("go")
        with anyio.fail_after(10):
            async for _ in stream:
                pass
        assert stream.result.text == "done"
        assert errors(conversation)[0].code == ReentrantCall.__name__


async def test_a_condenser_that_always_condenses_does_not_keep_the_agent_from_working(tmp_path: Path) -> None:
    class Eager:
        async def condense(self, shown: Sequence[ShownEvent], *, requested: bool) -> Condensation | None:
            return Condensation(forgotten=(shown[-1].id,), summary="It began.")

    with anyio.fail_after(10):
        async with Conversation(Agent(llm=ScriptedLLM([say("done")]), condenser=Eager()), tmp_path) as conversation:
            assert (await conversation.run("go")).text == "done"


async def test_a_fork_of_an_empty_branch_knows_the_agent_and_the_secrets(tmp_path: Path) -> None:
    store = MemoryStore()
    agent = Agent(llm=ScriptedLLM([say("done")]))
    async with Conversation(agent, tmp_path, store=store, secrets={"KEY": "a value"}) as conversation:
        await conversation.run("go")
        await conversation.rewind(to=0)
        fork = await read_log(store, await conversation.fork())
    assert fork.agent is not None
    assert fork.secret_names == ("KEY",)


async def test_what_is_no_agent_no_model_no_tool_or_no_message_is_told_at_once(tmp_path: Path) -> None:
    wrong: Any = "anthropic/claude"
    with pytest.raises(TypeError, match=r"LLM\(model='anthropic/claude'\)"):
        Agent(llm=wrong)
    plain: Any = answer
    with pytest.raises(TypeError, match="answer is neither a tool nor a toolset: decorate"):
        Agent(llm=ScriptedLLM([]), tools=[plain])
    with pytest.raises(TypeError, match=r"Agent\(llm"):
        async with Conversation(wrong, tmp_path):
            pass
    nothing: Any = None
    async with Conversation(Agent(llm=ScriptedLLM([])), tmp_path) as conversation:
        with pytest.raises(TypeError, match="not NoneType"):
            await conversation.send(nothing)
        assert conversation.state.status is ConversationStatus.IDLE


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
    ("error", "code", "told"),
    [
        (Untellable(), "Untellable", "telling of it raised ValueError"),
        (ExceptionGroup("g", [Untellable(), ValueError("other")]), "Untellable", "other"),
        (ExceptionGroup("g", [with_notes(), Untellable()]), "ValueError", "noted"),
        (with_notes(), "ValueError", "noted"),
        (nested(3000), "ValueError", "deep"),
        (BaseExceptionGroup("g", [SystemExit(1), ValueError("other")]), "SystemExit", "other"),
        (BaseExceptionGroup("g", [SystemExit(3)]), "SystemExit", "3"),
    ],
    ids=["untellable", "untellable-group", "notes-in-group", "notes", "deep", "exit-and-error", "exit"],
)
async def test_whatever_a_tool_raises_is_its_answer(
    tmp_path: Path, error: BaseException, code: str, told: str, caplog: pytest.LogCaptureFixture
) -> None:
    @tool
    async def bad() -> str:
        """Raise it."""
        raise error

    caplog.set_level("DEBUG", "agentcore")
    async with Conversation(Agent(llm=ScriptedLLM([call("bad"), say("done")]), tools=[bad]), tmp_path) as conversation:
        assert (await conversation.run("go")).text == "done"
        (answered,) = errors(conversation)
        assert answered.code == code
        assert told in answered.error


class Stream:
    """Gives what it is told to."""

    def __init__(self, given: Sequence[object], reply: object) -> None:
        self._given = list(given)
        self.reply = reply

    def __aiter__(self) -> Stream:
        return self

    async def __anext__(self) -> object:
        if not self._given:
            raise StopAsyncIteration
        return self._given.pop(0)


class BadModel:
    """A model of somebody's own, with faults."""

    name = "mine/bad"

    def __init__(self, *given: object) -> None:
        self._given = given

    async def complete(self, *args: object, **kwargs: object) -> object:
        return None

    @asynccontextmanager
    async def stream(self, *args: object, **kwargs: object) -> AsyncGenerator[Stream]:
        yield Stream(self._given, "words")


@pytest.mark.parametrize(("given", "kind"), [((5,), "int"), (("text",), "str"), ((), "str")])
async def test_a_model_that_gives_what_is_no_delta_or_no_reply_is_named(
    tmp_path: Path, given: Sequence[object], kind: str
) -> None:
    model: Any = BadModel(*given)
    async with Conversation(Agent(llm=model), tmp_path) as conversation:
        with pytest.raises(RunError, match=f"The model 'mine/bad' is at fault: its stream gave {kind} instead of"):
            await conversation.run("go")
