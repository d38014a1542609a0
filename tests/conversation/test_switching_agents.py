"""Switching agents: another one works from the next step on, and all that depends on the agent follows it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcore import (
    ActionEvent,
    Agent,
    AgentConfigured,
    AgentContext,
    AlwaysConfirm,
    FileStore,
    MemoryStore,
    MessageEvent,
    ObservationEvent,
    SystemPromptEvent,
    ToolContext,
    UsageEvent,
)
from agentcore.agent import record_agent
from agentcore.commands import SetAgent
from agentcore.conversation.journal import Attachment
from agentcore.errors import ConversationClosed, ConversationError, ToolNotFound
from agentcore.llm import LLM
from agentcore.stuck import StuckThresholds
from agentcore.testing import Gate, ScriptedLLM, call, calls, say, serve_provider
from agentcore.tools import tool
from live_toolset import Service, prompts_of, refusals_in
from talks import (
    FINISHED,
    STUCK,
    WAITING,
    change,
    core_of,
    events_of,
    hang,
    hosting,
    look,
    ping,
    ran,
    running,
    scripted,
    talk,
)


def named(name: str, *lines: Any) -> ScriptedLLM:
    return ScriptedLLM(lines, name=name)


def models_of(conversation: Any) -> list[str]:
    """Return the model of each reply."""
    return [event.model for event in events_of(conversation, UsageEvent)]


async def test_the_next_run_has_the_model_the_tools_and_the_instructions_of_the_new_agent() -> None:
    old = Agent(llm=named("old", call("look", name="a"), say("one")), tools=[look], instructions="Be old.")
    llm = named("new", call("ping"), say("two"))
    new = Agent(llm=llm, tools=[look, ping], instructions="Be new.")
    async with talk(old) as conversation:
        await conversation.run("go")
        await conversation.set_agent(new)
        assert (await conversation.run("more")).text == "two"
        assert models_of(conversation) == ["old", "old", "new", "new"]
        assert prompts_of(conversation) == [["look", "finish", "think"], ["look", "ping", "finish", "think"]]
        before, after = (event.prompt for event in events_of(conversation, SystemPromptEvent))
        assert ("Be old." in before, "Be new." in before) == (True, False)
        assert ("Be old." in after, "Be new." in after) == (False, True)
        first, second = events_of(conversation, AgentConfigured)
        assert (first.command, second.source) == (None, "user")
        assert second.command is not None
        receipt = conversation.state.receipt(second.command)
        assert receipt is not None
        assert receipt.seq == second.seq
    roles = [message.role for message in llm.requests[0].messages]
    assert roles == ["system", "user", "assistant", "tool", "assistant", "user"]


async def test_the_same_agent_again_writes_nothing() -> None:
    agent = scripted([say("done")], look, instructions="The word is swordfish9.")
    async with talk(agent, secrets={"WORD": "swordfish9"}) as conversation:
        await conversation.set_agent(agent)
        head = conversation.state.head
        await conversation.set_agent(agent)
        await conversation.set_agent(replace(agent))
        assert conversation.state.head == head
        assert (await conversation.run("go")).status is FINISHED


async def test_one_with_the_same_record_writes_nothing_and_works_all_the_same() -> None:
    async with talk(scripted([say("one")])) as conversation:
        head = conversation.state.head
        await conversation.set_agent(scripted([say("two")]))
        assert conversation.state.head == head
        assert (await conversation.run("go")).text == "two"


async def test_what_is_not_an_agent_is_refused() -> None:
    async with talk([]) as conversation:
        head = conversation.state.head
        for wrong in (None, ScriptedLLM([])):
            with pytest.raises(TypeError, match="`agent` must be an Agent"):
                await conversation.set_agent(wrong)  # type: ignore[arg-type]
        assert conversation.state.head == head


async def test_a_step_under_way_ends_with_the_old_agent_and_so_do_its_calls() -> None:
    gate = Gate()
    old = Agent(llm=named("old", gate.hold(calls(call("ping"), call("change", name="a")))), tools=[ping, change])
    new = Agent(llm=named("new", say("done")), tools=[Service("other")], max_parallel_calls=1)
    async with talk(old) as conversation:
        async with running(conversation) as run:
            await gate.arrived()
            await conversation.set_agent(new)
            gate.open()
        assert run.result.text == "done"
        assert models_of(conversation) == ["old", "new"]
        configured = events_of(conversation, AgentConfigured)[-1]
        assert configured.seq < events_of(conversation, ActionEvent)[0].seq
        assert len(events_of(conversation, ObservationEvent)) == 2
    assert ran == ["a"]


async def test_an_agent_is_set_from_inside_a_tool_and_of_two_the_last_one_counts() -> None:
    last = Agent(llm=named("last", say("done")), tools=[Service("other")])

    @tool
    async def promote(ctx: ToolContext) -> str:
        """Have somebody else go on."""
        await conversation.set_agent(Agent(llm=named("between"), tools=[Service("another")]))
        await conversation.set_agent(last)
        return "they will"

    async with talk(Agent(llm=named("first", call("promote")), tools=[promote])) as conversation:
        assert (await conversation.run("go")).text == "done"
        assert models_of(conversation) == ["first", "last"]
        (observation,) = events_of(conversation, ObservationEvent)
        assert observation.text == "they will"


async def test_a_tool_that_was_used_must_not_vanish() -> None:
    async with talk([call("change", name="a"), say("one")], change, look) as conversation:
        await conversation.run("go")
        head = conversation.state.head
        with pytest.raises(ToolNotFound, match=r"'change' .*Add it to the agent's tools"):
            await conversation.set_agent(scripted([], look))
        assert conversation.state.head == head
        await conversation.set_agent(scripted([say("two")], change))  # `look` was never used
        assert (await conversation.run("more")).text == "two"
        await conversation.set_agent(scripted([say("three")], Service("service")))
        assert (await conversation.run("more")).text == "three", "a toolset may bring it"


async def test_an_agent_that_was_set_before_a_tool_was_used_goes_on_after_a_crash(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "logs")
    gate = Gate()
    async with serve_provider([say("went on")]) as provider:
        new = Agent(llm=LLM(model="mine", base_url=provider.base_url, num_retries=0))
        async with talk(
            [gate.hold(calls(call("change", name="a"), call("hang")))], change, hang, store=store, id="a"
        ) as c:
            async with running(c):
                await gate.arrived()
                await c.set_agent(new)
                gate.open()
                await anyio.wait_all_tasks_blocked()
                await c.interrupt()
        async with talk(None, store=store, id="a") as resumed:
            assert (await resumed.run("more")).text == "went on"


async def test_a_conversation_that_is_opened_without_an_agent_goes_on_with_the_one_that_was_set(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "logs")
    async with serve_provider([say("one"), say("two"), say("three")]) as provider:
        llm = LLM(model="small", base_url=provider.base_url, num_retries=0)
        async with talk(Agent(llm=llm, instructions="Be brief."), store=store, id="a") as conversation:
            await conversation.run("go")
            await conversation.set_agent(
                Agent(llm=llm.model_copy(update={"model": "openai/large"}), instructions="Be long.")
            )
        async with talk(None, store=store, id="a") as resumed:
            head = resumed.state.head
            await resumed.run("more")
            assert len(events_of(resumed, AgentConfigured)) == 2
            assert resumed.state.head > head
        sent = [request.json() for request in provider.requests]
    assert [body["model"] for body in sent] == ["small", "large"]
    assert "Be long." in sent[1]["messages"][0]["content"]


@pytest.mark.parametrize(
    ("given", "code"),
    [
        ((change,), None),
        ((replace(change, description="Another tool."),), "tool_changed"),
        ((Service("empty"),), "tool_gone"),
    ],
    ids=["same", "changed", "gone"],
)
async def test_what_waits_goes_on_with_the_tool_of_the_new_agent_if_it_is_the_same(
    given: tuple[Any, ...], code: str | None
) -> None:
    async with talk([call("change", name="a")], change, confirm=AlwaysConfirm()) as conversation:
        assert (await conversation.run("go")).status is WAITING
        await conversation.set_agent(scripted([say("done")], *given))
        await conversation.approve()
        assert (await conversation.run()).text == "done"
        assert ran == (["a"] if code is None else [])
        assert refusals_in(conversation) == ([] if code is None else [("not_run", code)])


async def test_a_rewind_to_before_the_switch_keeps_the_new_agent() -> None:
    async with talk(Agent(llm=named("old", say("one")), instructions="Be old.")) as conversation:
        await conversation.run("go")
        before = conversation.state.head
        await conversation.set_agent(Agent(llm=named("new", say("two"), say("three")), instructions="Be new."))
        await conversation.run("more")
        await conversation.rewind(to=before)
        assert (await conversation.run("again")).text == "three"
        assert models_of(conversation) == ["old", "new", "new"]
        assert conversation.state.prompt is not None
        assert "Be new." in conversation.state.prompt.prompt
        assert conversation.state.agent is events_of(conversation, AgentConfigured)[-1]


async def test_the_new_agent_is_stuck_by_its_own_thresholds() -> None:
    pings = [call("ping")] * 3
    async with talk(scripted([*pings, say("one")], ping, stuck=None)) as conversation:
        assert (await conversation.run("go")).status is FINISHED
        await conversation.set_agent(scripted(pings, ping, stuck=StuckThresholds(repeated_action=3)))
        assert (await conversation.run("more")).status is STUCK


async def test_the_new_agent_is_not_stuck_by_what_the_old_one_repeated() -> None:
    gate = Gate()
    strict = StuckThresholds(repeated_action=3)
    old = scripted([call("ping"), call("ping"), gate.hold(call("ping"))], ping, stuck=strict)
    async with talk(old) as conversation:
        async with running(conversation) as run:
            await gate.arrived()
            await conversation.set_agent(scripted([call("ping"), say("done")], ping, look, stuck=strict))
            gate.open()
        assert run.result.text == "done"


async def test_the_output_is_that_of_the_agent_that_finished() -> None:
    old = Agent(llm=named("old", call("finish", message="one", result=[1, 2])), output=list[int])
    new = Agent(llm=named("new", say("words"), call("finish", message="two", result="b")), output=str)
    async with talk(old) as conversation:
        assert (await conversation.run("go")).output == [1, 2]
        await conversation.set_agent(new)
        assert (await conversation.run()).output == [1, 2], "the newest run is still that one"
        assert (await conversation.run("more")).output == "b"
        assert [event.code for event in events_of(conversation, MessageEvent) if event.code] == ["output_missing"]


async def test_as_many_calls_run_at_once_as_the_new_agent_allows() -> None:
    at_once: list[int] = []
    now = 0

    @tool(resources=())
    async def count() -> str:
        """Count who runs."""
        nonlocal now
        now += 1
        at_once.append(now)
        await anyio.wait_all_tasks_blocked()
        now -= 1
        return "counted"

    async with talk([calls(*[call("count")] * 3), say("one")], count) as conversation:
        await conversation.run("go")
        assert max(at_once) == 3
        at_once.clear()
        await conversation.set_agent(scripted([calls(*[call("count")] * 3), say("two")], count, max_parallel_calls=1))
        await conversation.run("more")
        assert at_once == [1, 1, 1]


async def test_a_known_command_brings_the_live_agent_again_after_a_restart() -> None:
    store = MemoryStore()
    new = Agent(llm=named("new", say("two")), tools=[look])
    recorded, missing = record_agent(new)
    command = SetAgent(id="cmd_known", agent=recorded, missing=missing, by="ada")
    async with talk([say("one")], store=store, id="a") as conversation:
        core = core_of(conversation)
        first = await core.journal.receipt_of(core.journal.hand_over(command, Attachment(agent=new)))
    # What stands in has the same record: that has no script.
    async with talk(Agent(llm=named("new", say("stand-in")), tools=[look]), store=store, id="a") as conversation:
        head = conversation.state.head
        core = core_of(conversation)
        again = await core.journal.receipt_of(core.journal.hand_over(command, Attachment(agent=new)))
        assert (again, conversation.state.head) == (first, head)
        assert events_of(conversation, AgentConfigured)[-1].by == "ada"
        assert (await conversation.run("go")).text == "two"


async def test_an_old_command_that_comes_late_again_does_not_bring_its_agent_back() -> None:
    first, second = Agent(llm=named("first"), tools=[look]), Agent(llm=named("second", say("right")), tools=[ping])
    recorded, missing = record_agent(first)
    command = SetAgent(agent=recorded, missing=missing)
    async with talk([say("one")]) as conversation:
        core = core_of(conversation)
        for _ in range(2):
            await core.journal.receipt_of(core.journal.hand_over(command, Attachment(agent=first)))
            await conversation.set_agent(second)
        await core.journal.receipt_of(core.journal.hand_over(command, Attachment(agent=first)))
        assert len(events_of(conversation, AgentConfigured)) == 3
        assert (await conversation.run("go")).text == "right"


async def test_a_host_knows_a_conversation_by_the_agent_that_was_set() -> None:
    store = MemoryStore()
    old, new = scripted([]), scripted([], look)
    async with hosting() as host:
        conversation = await host.open(old, store=store, id="a")
        await conversation.set_agent(new)
        assert (await host.open(new, store=store, id="a")).id == "a"
        with pytest.raises(ConversationError, match="open here with another agent"):
            await host.open(old, store=store, id="a")


async def test_a_fork_works_with_the_agent_that_was_set() -> None:
    store = MemoryStore()
    async with talk(scripted([say("one")]), store=store, id="a") as conversation:
        await conversation.run("go")
        before = conversation.state.head
        await conversation.set_agent(scripted([], look))
        forked = await conversation.fork(before)
        configured = conversation.state.agent
    async with talk(scripted([], look), store=store, id=forked) as conversation:
        assert configured is not None
        assert conversation.state.agent is not None
        assert conversation.state.agent.agent == configured.agent


async def test_a_closed_conversation_takes_no_agent() -> None:
    async with talk([]) as conversation:
        pass
    with pytest.raises(ConversationClosed):
        await conversation.set_agent(scripted([]))


async def test_the_context_is_that_of_the_new_agent() -> None:
    old = Agent(llm=named("old", say("one")), context=AgentContext(add={"house": "The old house."}))
    async with talk(old) as conversation:
        await conversation.run("go")
        await conversation.set_agent(
            Agent(llm=named("new", say("two")), context=AgentContext(add={"house": "The new house."}))
        )
        await conversation.run("more")
        before, after = (event.prompt for event in events_of(conversation, SystemPromptEvent))
    assert ("old house" in before, "new house" in before) == (True, False)
    assert ("old house" in after, "new house" in after) == (False, True)
