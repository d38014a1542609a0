"""Toolsets in conversations: opened once, kept open, closed; calls are read against what the model was told."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest

from agentcore import (
    LLM,
    ActionEvent,
    Agent,
    MemoryStore,
    ObservationEvent,
    ToolContext,
    prefixed,
    renamed,
)
from agentcore.agent import record_agent, restore_agent
from agentcore.conversation import tool_session, tools
from agentcore.errors import NotRecorded
from agentcore.testing import ScriptedLLM, call, calls, say
from agentcore.tools import Action, TextObservation, Tool, think_tool
from live_toolset import Service, local, notices_of, prompts_of, raw, refusals_in
from talks import FINISHED, error_of, events_of, ran, running, scripted, talk


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tool_session, "_FIRST_DELAY", 0.0)


async def test_a_toolset_is_opened_once_for_all_its_calls_and_closed_with_the_conversation() -> None:
    service = Service("service", raw("b"), raw("a"))
    service.instructions = "Write short notes."
    script = [calls(call("a"), call("b")), call("local", n=1), call("a"), say("done")]
    async with talk(script, service, local) as conversation:
        assert (await conversation.run("go")).text == "done"
        assert (service.opened, service.closed) == (1, 0)
        assert prompts_of(conversation) == [["local", "finish", "think", "a", "b"]]
        assert conversation.state.prompt is not None
        assert "'service' come with these instructions:\nWrite short notes." in conversation.state.prompt.prompt
        assert service.contexts[0].workspace is conversation.workspace
        assert service.contexts[0].conversation_id == conversation.id
    assert (service.opened, service.closed) == (1, 1)
    assert ran == ["a", "b", "a"]
    assert not notices_of(conversation)


async def test_nothing_is_opened_until_there_is_a_step_to_take() -> None:
    service = Service()
    async with talk([], service) as conversation:
        await conversation.send("later")
    assert not service.contexts


async def test_toolsets_are_opened_at_the_same_time_and_closed_newest_first() -> None:
    left: list[str] = []

    class Noting(Service):
        @asynccontextmanager
        async def open(self, context: Any, /) -> AsyncGenerator[Any]:
            try:
                async with super().open(context) as opened:
                    yield opened
            finally:
                left.append(self.name)

    one, two = Noting("one"), Noting("two")
    one.gate = two.gate = anyio.Event()
    async with talk([say("done")], one, two) as conversation:
        async with running(conversation):
            await one.until_asked(1)
            await two.until_asked(1)
            one.gate.set()
    assert left == ["two", "one"]


async def test_the_list_is_read_at_a_message_of_the_user_and_not_at_each_step() -> None:
    service = Service("service", *(raw(f"tool_{n:04}") for n in range(1000)))
    script = [*[call("local", n=n) for n in range(5)], say("one"), call("tool_0999"), call("tool_9999"), say("two")]
    async with talk(scripted(script, service, local, defer_tools=False)) as conversation:
        await conversation.run("go")
        assert service.reads == 2, "when it was opened, and when the prompt was composed"
        service.tools = [*service.tools, raw("tool_late")]
        await conversation.run("more")
    assert [len(names) for names in prompts_of(conversation)] == [1003, 1004]
    assert ran == ["tool_0999"]
    error = error_of(conversation).error
    assert "Of the 1004 tools there are these come closest: tool_" in error
    assert len(error) < 1000


async def test_an_opening_that_hangs_is_waited_for_once_and_its_tools_come_later(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(tools, "_OPEN_SECONDS", 0.05)
    service = Service("slow", raw("a"))
    service.gate = anyio.Event()
    async with talk([say("one"), say("two"), say("three")], service) as conversation:
        assert (await conversation.run("go")).text == "one"
        ((code, detail),) = notices_of(conversation)
        assert code == "missing"
        assert detail.startswith("The toolset 'slow' is missing: it did not open within 0.05 s.")
        monkeypatch.setattr(tools, "_OPEN_SECONDS", 3600)
        assert (await conversation.run("more")).text == "two"
        service.gate.set()
        await service.until_opened(1)
        await anyio.wait_all_tasks_blocked()
        assert (await conversation.run("more")).text == "three"
    assert len(service.contexts) == 1
    assert [code for code, _ in notices_of(conversation)] == ["missing", "open"]
    assert prompts_of(conversation) == [["finish", "think"], ["finish", "think", "a"]]


async def test_an_opening_that_raises_ends_nothing_and_is_tried_again() -> None:
    service = Service("broken", raw("a"))
    service.failure = OSError("no such server")
    async with talk([say("one"), call("a"), say("two")], service) as conversation:
        assert (await conversation.run("go")).text == "one"
        assert notices_of(conversation) == [
            ("missing", "The toolset 'broken' is missing: no such server. The conversation goes on without its tools.")
        ]
        service.failure = None
        await service.until_opened(1)
        await anyio.wait_all_tasks_blocked()
        assert (await conversation.run("more")).text == "two"
    assert service.closed == 1
    assert not refusals_in(conversation)


async def test_attempts_come_after_growing_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    waited: list[float] = []
    real = anyio.move_on_after

    def soon(delay: float | None, shield: bool = False) -> anyio.CancelScope:
        if delay in {1, 2, 4, 8, 16, 32, 60}:
            waited.append(delay)
            delay = 0
        return real(delay, shield=shield)

    monkeypatch.setattr(tool_session, "_FIRST_DELAY", 1.0)
    monkeypatch.setattr(anyio, "move_on_after", soon)
    service = Service("broken")
    service.failure = OSError("no such server")
    async with talk([say("one")], service) as conversation:
        await conversation.run("go")
        await service.until_asked(10)
        monkeypatch.undo()
    assert waited[:9] == [1, 2, 4, 8, 16, 32, 60, 60, 60]


async def test_a_toolset_that_ended_is_opened_again_and_calls_meanwhile_fail_at_once() -> None:
    service = Service("service", raw("a"))
    async with talk([call("a"), say("one"), call("a"), say("two"), call("a"), say("three")], service) as conversation:
        await conversation.run("go")
        gate = service.gate = anyio.Event()
        service.end()
        await service.until_closed(1)
        await service.until_asked(2)
        assert (await conversation.run("more")).text == "two"
        error = error_of(conversation)
        assert (error.outcome, error.code) == ("not_run", "toolset_closed")
        assert "the toolset 'service' is closed (the connection broke)" in error.error
        gate.set()
        await service.until_opened(2)
        await anyio.wait_all_tasks_blocked()
        assert (await conversation.run("more")).text == "three"
    assert ran == ["a", "a"]
    assert service.closed == 2
    assert [code for code, _ in notices_of(conversation)] == ["closed", "open"]
    assert len(prompts_of(conversation)) == 1, "its tools stay, so that the provider's cache does"


@pytest.mark.parametrize("why", [RuntimeError("it broke"), ExceptionGroup("both", [OSError("it broke")])])
async def test_a_toolset_that_fails_while_it_is_open_is_opened_again(why: Exception) -> None:
    service = Service("service", raw("a"))
    async with talk([call("a"), say("one"), call("a"), say("two")], service) as conversation:
        await conversation.run("go")
        service.end(why)
        await service.until_opened(2)
        await anyio.wait_all_tasks_blocked()
        assert (await conversation.run("more")).text == "two"
    assert notices_of(conversation)[0] == ("closed", "The toolset 'service' is closed: it broke")
    assert not refusals_in(conversation)


async def test_what_a_toolset_tells_people_is_recorded_without_secrets_and_not_shown_to_the_model() -> None:
    class Telling(Service):
        @asynccontextmanager
        async def open(self, context: Any, /) -> AsyncGenerator[Any]:
            token = await context.secrets.get("TOKEN")
            for _ in range(500):
                context.notice(f"signed in with {token}")
            async with super().open(context) as opened:
                yield opened

    llm = ScriptedLLM([say("done")])
    async with talk(llm, Telling("telling"), secrets={"TOKEN": "hunter2hunter2"}) as conversation:
        await conversation.run("go")
    assert notices_of(conversation) == [("message", "signed in with <secret:TOKEN>")]
    assert "signed in" not in str(llm.requests[0].messages)


async def test_a_tool_of_a_toolset_may_have_something_to_open_of_its_own() -> None:
    class Nothing(Action):
        """Nothing to say."""

    opened: list[str] = []

    @asynccontextmanager
    async def shell(workspace: Any, conversation_id: str) -> AsyncGenerator[Any]:
        async def execute(action: Nothing, ctx: ToolContext) -> TextObservation:
            return TextObservation(text=ctx.tool_name)

        opened.append(conversation_id)
        yield execute

    inner = Tool(name="shell", description="A shell.", action=Nothing, open=shell)
    service = renamed(Service("service", inner), {"shell": "bash"})
    async with talk([call("bash"), call("bash"), say("done")], service) as conversation:
        await conversation.run("go")
    assert [event.text for event in events_of(conversation, ObservationEvent)] == ["bash", "bash"]
    assert len(opened) == 1


async def test_a_toolset_that_can_not_be_recorded_is_named_when_it_is_missed() -> None:
    class Secret(Service):
        def record(self) -> None:
            return None

    store = MemoryStore()
    async with talk([], Secret("mine"), store=store, id="c"):
        pass
    with pytest.raises(NotRecorded, match="the toolset 'mine'"):
        async with talk(None, store=store, id="c"):
            pass


def test_the_class_of_a_toolset_is_not_a_toolset() -> None:
    wrong: Any = Service
    with pytest.raises(TypeError, match=r"Service is the class of a toolset: pass a toolset, Service\(\.\.\.\)"):
        scripted([], wrong)


async def test_a_run_ends_as_it_would_where_all_toolsets_are_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tools, "_OPEN_SECONDS", 0.0)
    service = Service()
    service.gate = anyio.Event()
    async with talk([call("a"), call("finish", message="no")], service) as conversation:
        result = await conversation.run("go")
    assert result.status is FINISHED
    assert [event.tool_name for event in events_of(conversation, ActionEvent)] == ["a", "finish"]
    assert service.opened == 0


def test_an_agent_with_toolsets_is_made_again_from_its_record() -> None:
    toolset = prefixed(Service("service", raw("a")), "x_")
    recorded, missing = record_agent(Agent(llm=LLM(model="openai/gpt-4.1"), tools=[toolset, think_tool()]))
    assert not missing
    again = restore_agent(recorded)
    assert [tool.name for tool in again.own_tools] == ["think", "finish"]
    assert [toolset.record() for toolset in again.toolsets] == [toolset.record()]
    assert record_agent(again) == (recorded, missing)
