"""Tools that run in a client: with a context of their own, once, and with everything that they say on its way back."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from agentcore import AgentErrorEvent, Conversation, ObservationEvent, ToolContext
from agentcore.errors import ConnectionLost
from agentcore.events import ActionStarted
from agentcore.messages import ImageBlock, TextBlock
from agentcore.remote.answering import Answering
from agentcore.secrets import SecretRegistry
from agentcore.testing import Request, call, say
from agentcore.tools import Action, AnyTool, ContentObservation, Observation, TextObservation, Tool, tool
from agentcore.wire import AskFrame, ToolFailed, ToolProgress
from agentcore.workspace import Workspace
from agentcore_serve.asks import ClientAsks
from deploying import DEPLOY, deploying
from following import Network, client_of
from talks import error_of, events_of, hang, running, scripted, talk, until

TOKEN = "tok-93f1-ab-and-more"
SOURCE = {"TOKEN": lambda: TOKEN}
PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


@asynccontextmanager
async def remote(
    script: Any, *tools: AnyTool, client: dict[str, Any] | None = None, **options: Any
) -> AsyncGenerator[tuple[Conversation, Answering, Network, Any]]:
    """Open a conversation whose tools run in a client beside it."""
    asks = ClientAsks()
    there = [asks.tool_for(each.schema, annotations=each.annotations, resources=()) for each in tools]
    async with talk(script, *there, **options) as conversation:
        async with client_of(conversation, asks, tools, **(client or {})) as (answering, network, tasks):
            yield conversation, answering, network, tasks


async def test_a_tool_runs_with_what_the_program_has() -> None:
    deps = object()
    seen: list[Any] = []

    @tool
    async def use(name: str, ctx: ToolContext) -> dict[str, str]:
        """Use."""
        await ctx.workspace.write("made.txt", b"by a tool")
        seen.extend((ctx.deps, ctx.conversation_id, ctx.action_id, ctx.call_id, ctx.tool_name, ctx.state.head > 0))
        return {"name": name}

    async with remote([call("use", name="Rome"), say("done")], use, client={"deps": deps}) as (conversation, *_):
        assert (await conversation.run("go")).text == "done"
        (action,) = [event.cause for event in events_of(conversation, ActionStarted)]
        assert await conversation.workspace.read("made.txt") == b"by a tool"
        call_id = events_of(conversation, ObservationEvent)[0].call_id
        assert seen == [deps, conversation.id, action, call_id, "use", True]
        assert events_of(conversation, ObservationEvent)[0].text == '{"name":"Rome"}'


class Sized(Observation):
    size: int

    @property
    def is_error(self) -> bool:
        return self.size > 1


async def test_content_data_and_errors_come_back_as_they_were() -> None:
    @tool
    async def draw() -> ContentObservation:
        """Draw."""
        return ContentObservation(content=(TextBlock(text="this:"), ImageBlock(data=PIXEL, media_type="image/png")))

    @tool
    async def measure() -> Sized:
        """Measure."""
        return Sized(size=3)

    @tool
    async def fail() -> str:
        """Fail."""
        raise KeyError("no such city")

    script = [call("draw"), call("measure"), call("fail"), say("done")]
    async with remote(script, draw, measure, fail) as (conversation, *_):
        await conversation.run("go")
        drawn, measured = events_of(conversation, ObservationEvent)
        assert [block.type for block in drawn.content] == ["text", "image"]
        assert (measured.data, measured.is_error) == ({"size": 3}, True)
        error = error_of(conversation)
        assert (error.code, error.outcome) == ("KeyError", "failed")
        assert "KeyError: 'no such city'" in error.error
        assert "in fail)" in error.error


async def test_arguments_that_only_the_client_refuses_are_explained_to_the_model() -> None:
    @tool
    async def add(left: int) -> int:
        """Add."""
        return left + 1

    async with remote([], add) as (_, answering, network, _):
        answering.feed(AskFrame(id="a", kind="tool", name="add", arguments={"left": "three"}))
        answering.feed(AskFrame(id="b", kind="tool", name="subtract"))
        await until(lambda: len(network.posted) == 2)
        texts = sorted(each.error for each in network.posted if isinstance(each, ToolFailed))
        assert "`left`" in texts[0]
        assert "no such tool" in texts[1]


async def test_progress_comes_while_it_runs_and_its_end_with_the_answer() -> None:
    released = anyio.Event()

    @tool
    async def work(ctx: ToolContext) -> str:
        """Work."""
        await ctx.progress("half")
        await released.wait()
        await ctx.progress(" and all")
        return "done"

    async with remote([call("work"), say("done")], work) as (conversation, _, network, _):
        deltas = conversation.deltas()
        async with running(conversation):
            text = ""
            while text != "half":
                delta = await anext(deltas)
                text += delta.text if delta.type == "progress" else ""
            released.set()
            while text != "half and all":
                delta = await anext(deltas)
                text += delta.text if delta.type == "progress" else ""
        assert isinstance(network.posted[0], ToolProgress)


async def test_an_ask_that_comes_again_is_not_done_again() -> None:
    done: list[int] = []
    released = anyio.Event()

    @tool
    async def work() -> str:
        """Work."""
        done.append(1)
        await released.wait()
        return "worked"

    async with remote([call("work"), say("done")], work) as (conversation, answering, network, tasks):
        async with running(conversation) as begun:
            await until(lambda: done)
            await network.reconnect(answering, tasks)
            released.set()
        assert begun.result.text == "done"
    assert done == [1]
    assert events_of(conversation, ObservationEvent)[0].text == "worked"


async def test_a_result_that_could_not_be_sent_is_sent_when_it_is_asked_for_again() -> None:
    done: list[int] = []

    @tool
    async def work() -> str:
        """Work."""
        done.append(1)
        return "worked"

    async with remote([call("work"), say("done")], work) as (conversation, answering, network, tasks):
        failing = [ConnectionLost("http://server", "it was cut")]
        sound = network.post

        async def post(ask_id: str, result: Any) -> None:
            if failing:
                raise failing.pop()
            await sound(ask_id, result)

        answering._post = post  # pyright: ignore[reportPrivateUsage]
        async with running(conversation) as begun:
            await until(lambda: not failing)
            await anyio.wait_all_tasks_blocked()
            assert not network.posted
            await network.reconnect(answering, tasks)
        assert begun.result.text == "done"
    assert done == [1]


async def test_a_call_that_is_withdrawn_is_cancelled_and_sends_nothing() -> None:
    ended: list[str] = []
    begun = anyio.Event()

    @tool
    async def work() -> str:
        """Work."""
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("cancelled")
        return "never"

    async with remote([call("work"), say("again")], work) as (conversation, _, network, _):
        async with running(conversation):
            await begun.wait()
            await conversation.interrupt("enough")
        await until(lambda: ended)
        assert not network.posted
        assert events_of(conversation, AgentErrorEvent)[0].outcome == "interrupted"
        assert (await conversation.run()).text == "again"


async def test_a_call_whose_action_was_answered_without_it_is_cancelled() -> None:
    ended: list[str] = []
    begun = anyio.Event()

    @tool
    async def work() -> str:
        """Work."""
        begun.set()
        try:
            await anyio.sleep_forever()
        finally:
            ended.append("cancelled")
        return "never"

    async with remote([call("hang")], work) as (conversation, answering, network, _):
        await conversation.set_agent(scripted([call("hang")], hang))
        async with running(conversation):
            started = await until(conversation, ActionStarted)
            answering.feed(AskFrame(id="ask", kind="tool", name="work", action_id=started.cause))
            await begun.wait()
            await conversation.interrupt("as after a restart of the server")
        await until(lambda: ended)
        assert not network.posted


async def test_a_secret_that_a_tool_read_is_masked_wherever_it_is_told() -> None:
    @tool
    async def use(ctx: ToolContext) -> str:
        """Use a token."""
        return f"used {await ctx.secrets.get('TOKEN')}"

    answers: list[str] = []

    def last(request: Request) -> Any:
        answers.extend(request.answers)
        return say(f"I used {TOKEN}")

    asks = ClientAsks()
    there = asks.tool_for(use.schema, resources=())
    async with (
        talk([call("use"), last], there, secrets={"TOKEN": asks.secret("TOKEN")}) as conversation,
        client_of(conversation, asks, [use], secrets=SecretRegistry(SOURCE)) as (_, network, _),
    ):
        assert (await conversation.run("go")).text == "I used <secret:TOKEN>"
        assert TOKEN not in str(network.posted)
    assert answers == ["used <secret:TOKEN>"]
    assert TOKEN not in str(list(conversation.state.events))


async def test_what_a_tool_may_ask_of_its_conversation() -> None:
    said: list[str] = []

    @tool
    async def use(ctx: ToolContext) -> str:
        """Use."""
        said.append(await ctx.ask("why?"))
        path = await ctx.spool("whole.txt", "all of it")
        said.append((await ctx.workspace.read(path)).decode())
        for refused in (ctx.send("more"), ctx.question("which?"), ctx.open_spool("x", limit=1)):
            try:
                await refused
            except Exception as error:
                said.append(str(error).split(" is not there")[0])
        said.append(str(await ctx.model_accepts("image")))
        said.append(str((ctx.last_data, "finish" in ctx.shown_parts)))
        await ctx.interrupt()
        return "never"

    async with remote([call("use"), say("because")], use) as (conversation, *_):
        result = await conversation.run("go")
        assert result.status == "paused"
    expected = ["because", "all of it", "ctx.send", "ctx.question", "ctx.open_spool", "None", "(None, False)"]
    assert said == expected


class CountAction(Action):
    """Count."""


async def test_a_tool_that_holds_something_open_has_it_open_for_all_calls_and_closed_at_the_end() -> None:
    happened: list[str] = []

    @asynccontextmanager
    async def opening(workspace: Workspace, conversation_id: str) -> AsyncGenerator[Any]:
        del workspace, conversation_id
        happened.append("opened")

        async def count(action: CountAction, ctx: ToolContext) -> TextObservation:
            del action, ctx
            happened.append("called")
            await anyio.lowlevel.checkpoint()
            return TextObservation(text="counted")

        try:
            yield count
        finally:
            happened.append("closed")

    counting: AnyTool = Tool(name="count", description="Count.", action=CountAction, open=opening)
    async with remote([call("count"), call("count"), say("done")], counting) as (conversation, *_):
        assert (await conversation.run("go")).text == "done"
        assert happened == ["opened", "called", "called"]
    assert happened[-1] == "closed"


async def test_a_call_in_a_client_cannot_ask_and_be_resumed_and_says_what_to_do_instead() -> None:
    async with remote([DEPLOY, say("sorry")], deploying()) as (conversation, *_):
        assert (await conversation.run("go")).text == "sorry"
        error = error_of(conversation)
    assert (error.code, error.outcome) == ("ToolError", "failed")
    assert "ask_user" in error.error
