"""Tools, models, callbacks and stores that do what they should not: the log stays whole and the errors say what to do."""

from __future__ import annotations

import asyncio  # noqa: TID251  what users raise by accident
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from typing import Any

import pytest
from anyio.lowlevel import checkpoint

from agentcore import Action, Agent, MemoryStore, Tool, ToolContext
from agentcore.condense import Outline
from agentcore.errors import ConversationClosed, ReentrantCall, RunError, StoreError
from agentcore.events import Condensation, ContextNotice
from agentcore.record import read_log
from agentcore.testing import Gate, Request, ScriptLine, call, calls, say
from agentcore.tools import tool
from talks import ERROR, error_of, running, scripted, talk


class Boom(BaseException):
    """Not an Exception: the end of a test, of a process, of a greenlet."""


class Nothing(Action):
    """Nothing to say."""


async def test_what_is_no_exception_leaves_as_itself_and_the_log_is_whole() -> None:
    @tool
    async def bad() -> str:
        """Explode."""
        raise Boom("over")

    store = MemoryStore()
    with pytest.raises(Boom, match="over"):
        async with talk([call("bad")], bad, store=store, id="a") as conversation:
            await conversation.run("go")
    state = await read_log(store, "a")
    assert (state.status, state.status_code) == (ERROR, "Boom")
    assert not state.open_actions


@pytest.mark.parametrize("anyio_backend", ["asyncio"])  # anybody can raise its cancellation
async def test_a_tool_that_cancels_itself_is_answered_and_the_others_go_on() -> None:
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

    async with talk([calls(call("bad"), call("good")), say("done")], bad, good) as conversation:
        assert (await conversation.run("go")).text == "done"
        assert "it was not cancelled" in error_of(conversation).error


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_model_that_cancels_itself_fails_its_run_and_the_next_one_works() -> None:
    async def bad(request: Request) -> ScriptLine:
        raise asyncio.CancelledError

    async with talk([bad, say("done")]) as conversation:
        with pytest.raises(RunError, match="awaited a task or a future"):
            await conversation.run("go")
        assert (await conversation.run()).text == "done"


async def test_an_error_of_another_conversations_store_is_the_tools_answer() -> None:
    store = MemoryStore()
    inner = scripted([])

    @tool
    async def delegate() -> str:
        """Open a conversation that is open elsewhere."""
        async with talk(inner, store=store, id="inner"):
            return "never"

    async with talk(inner, store=store, id="inner"), talk([call("delegate"), say("done")], delegate) as conversation:
        assert (await conversation.run("go")).text == "done"
        assert error_of(conversation).code == "ConversationLocked"


@pytest.mark.parametrize("error", [StoreError("not ours"), ConversationClosed("another")])
async def test_a_model_that_raises_another_conversations_error_fails_its_run_alone(error: Exception) -> None:
    async with talk([error, say("done")]) as conversation:
        with pytest.raises(RunError) as caught:
            await conversation.run("go")
        assert caught.value.error is error
        assert conversation.state.status is ERROR
        assert (await conversation.run()).text == "done"


async def test_an_executor_that_gives_nothing_is_told_so() -> None:
    async def forgetful(action: Nothing, ctx: ToolContext) -> Any:
        return None

    forgets = Tool(name="forgets", description="Forgets.", action=Nothing, execute=forgetful)
    async with talk([call("forgets"), say("done")], forgets) as conversation:
        await conversation.run("go")
        assert "NoneType instead of an Observation" in error_of(conversation).error


async def test_a_context_that_outlived_its_call_does_not_stop_a_later_turn() -> None:
    kept: list[ToolContext] = []

    @tool
    async def leak(ctx: ToolContext) -> str:
        """Leak."""
        kept.append(ctx)
        return ""

    gate = Gate()
    async with talk([call("leak"), say("one"), gate.hold(say("two"))], leak) as conversation:
        await conversation.run("go")

        async with running(conversation, "more") as run:
            await gate.arrived()
            await kept[0].interrupt()
            gate.open()
        assert run.result.text == "two"
    with pytest.raises(ConversationClosed):
        await kept[0].send("too late")


async def test_a_stream_of_a_run_is_not_followed_from_inside_it() -> None:
    @tool
    async def follow() -> str:
        """Wait for oneself."""
        async for _ in stream:
            pass
        return "never"

    async with talk([call("follow"), say("done")], follow) as conversation:
        stream = conversation.run_stream("go")
        async for _ in stream:
            pass
        assert stream.result.text == "done"
        assert error_of(conversation).code == ReentrantCall.__name__


async def test_a_condenser_that_always_wants_what_is_not_allowed_does_not_keep_the_agent_from_working() -> None:
    class Eager:
        async def condense(self, outline: Outline) -> Condensation | None:
            return Condensation(forgotten=outline.items[-1].ids, summary="It began.")

        def record(self) -> None:
            """It is of this file."""

    async with talk(scripted([say("done")], condenser=Eager())) as conversation:
        assert (await conversation.run("go")).text == "done"
        (notice,) = [n for e in conversation.state.events if isinstance(n := getattr(e, "update", None), ContextNotice)]
        assert "newest message of the user" in notice.detail


async def test_a_fork_of_an_empty_branch_knows_the_agent_and_the_secrets() -> None:
    store = MemoryStore()
    agent = scripted([say("done")])
    async with talk(agent, store=store, secrets={"KEY": "a value"}) as conversation:
        await conversation.run("go")
        await conversation.rewind(to=0)
        fork = await read_log(store, await conversation.fork())
    assert fork.agent is not None
    assert fork.secret_names == ("KEY",)


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
async def test_a_model_that_gives_what_is_no_delta_or_no_reply_is_named(given: Sequence[object], kind: str) -> None:
    model: Any = BadModel(*given)
    async with talk(Agent(llm=model)) as conversation:
        with pytest.raises(RunError, match=f"The model 'mine/bad' is at fault: its stream gave {kind} instead of"):
            await conversation.run("go")
