"""What tools hold open when agents are switched: what both have stays open, the rest is opened and closed."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from agentcore import Action, AgentErrorEvent, Observation, Tool, ToolContext
from agentcore.conversation import tools
from agentcore.testing import call, calls, say
from agentcore.tools import ToolSpec
from live_toolset import Service, notices_of, prompts_of, raw
from talks import events_of, ran, scripted, talk


async def test_toolsets_are_opened_and_closed_and_those_that_both_have_stay_open() -> None:
    shared, gone, come = Service("shared", raw("a")), Service("gone", raw("b")), Service("come", raw("c"))
    async with talk([calls(call("a"), call("b")), say("one")], shared, gone) as conversation:
        await conversation.run("go")
        await conversation.set_agent(scripted([calls(call("a"), call("c"), call("b")), say("two")], shared, come))
        await gone.until_closed(1)
        assert come.opened == 0, "a step opens it"
        assert (await conversation.run("more")).text == "two"
        assert [(each.opened, each.closed) for each in (shared, gone, come)] == [(1, 0), (1, 1), (1, 0)]
        assert prompts_of(conversation) == [["finish", "think", "a", "b"], ["finish", "think", "a", "c"]]
        assert [event.code for event in events_of(conversation, AgentErrorEvent)] == ["unknown_tool"]
        assert not notices_of(conversation)
    assert [(each.opened, each.closed) for each in (shared, gone, come)] == [(1, 1), (1, 1), (1, 1)]
    assert ran == ["a", "b", "a", "c"]


async def test_a_toolset_that_does_not_open_is_waited_for_and_then_the_step_goes_on_and_says_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tools, "_OPEN_SECONDS", 0.05)
    slow = Service("slow", raw("a"))
    slow.gate = anyio.Event()
    async with talk([say("one")]) as conversation:
        await conversation.run("go")
        await conversation.set_agent(scripted([say("two")], slow))
        assert (await conversation.run("more")).text == "two"
        assert [code for code, _ in notices_of(conversation)] == ["missing"]
        await conversation.set_agent(scripted([say("three")]))  # the opening under way is given up
        assert (await conversation.run("more")).text == "three"
    assert (slow.opened, len(slow.contexts)) == (0, 1)


class Nothing(Action):
    """Nothing to say."""


class Served:
    """Makes tools that are opened, each with its own log of that."""

    def __init__(self) -> None:
        self.happened: list[str] = []
        self.closed = anyio.Event()

    def tool(self, spec: str | None = None) -> Tool[Nothing, Observation]:
        @asynccontextmanager
        async def server(workspace: Any, conversation_id: str) -> AsyncGenerator[Any]:
            self.happened.append("opened")
            yield self.answer
            self.happened.append("closed")
            self.closed.set()

        recorded = None if spec is None else ToolSpec(name=spec)
        return Tool(
            name="served", description="A tool with a server.", action=Nothing, open=server, resources=(), spec=recorded
        )

    async def answer(self, action: Nothing, ctx: ToolContext) -> Observation:
        self.happened.append("called")
        return Observation()


@pytest.mark.parametrize(
    ("specs", "happened"),
    [
        (("served", "served"), ["opened", "called", "called", "closed"]),
        ((None, None), ["opened", "called", "closed", "opened", "called", "closed"]),
    ],
    ids=["the same by its record", "another one"],
)
async def test_a_tool_that_is_open_stays_open_where_the_new_agent_has_the_same_one(
    specs: tuple[str | None, str | None], happened: list[str]
) -> None:
    served = Served()
    async with talk([call("served"), say("one")], served.tool(specs[0])) as conversation:
        await conversation.run("go")
        await conversation.set_agent(scripted([call("served"), say("two")], served.tool(specs[1])))
        if specs[0] is None:
            await served.closed.wait()
        assert (await conversation.run("more")).text == "two"
    assert served.happened == happened
