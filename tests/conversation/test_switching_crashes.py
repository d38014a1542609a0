"""A crash while an agent is switched: the old one is recorded or the new one, and what was acknowledged is."""

from __future__ import annotations

import random
from pathlib import Path

import anyio
import pytest

from agentcore import Agent, AgentConfigured, Conversation, FileStore, SystemPromptEvent
from agentcore.agent import record_agent
from agentcore.record import ConversationState, read_log
from agentcore.testing import ScriptedLLM, crash_everywhere, say
from agentcore.tools import tool
from programs import start_python
from talks import FINISHED, change, events_of, look, ran, scripted, talk

PROGRAM = Path(__file__).with_name("switching_program.py")


@tool(resources=())
async def work() -> str:
    """Stand in for the program's own."""
    return "worked"


def configured(state: ConversationState) -> int:
    """Return the number of the agent that the log has."""
    assert state.agent is not None
    number = state.agent.agent["max_parallel_calls"]
    assert state.agent.agent["instructions"] == f"You are {number}.", "half of one agent, and half of another"
    assert isinstance(number, int)
    return number


@pytest.mark.slow
@pytest.mark.parametrize("attempts", [1, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_after_a_kill_the_agent_is_the_last_one_that_was_acknowledged_or_the_next(
    surroundings: dict[str, str], tmp_path: Path, attempts: int
) -> None:
    chance = random.Random(12)
    for attempt in range(attempts):
        folder = tmp_path / str(attempt)
        await anyio.Path(folder).mkdir()
        acknowledged = 1
        async with start_python(PROGRAM, folder, env=surroundings, cwd=folder) as program:
            for _ in range(chance.randint(1, 40)):
                acknowledged = int(await program.line())
            for line in await program.kill():
                acknowledged = int(line)
        store = FileStore(folder / "logs")
        state = await read_log(store, "victim")
        assert configured(state) in (acknowledged, acknowledged + 1)
        commands = [event.command for event in events_of(state, AgentConfigured)]
        assert len(set(commands)) == len(commands) == configured(state), "one event for each, and none left out"
        agent = Agent(llm=ScriptedLLM([say("went on")]), tools=[work], max_parallel_calls=configured(state))
        async with Conversation(agent, folder, store=store, id="victim") as conversation:
            assert (await conversation.run("go on")).text == "went on"
            assert not conversation.state.open_actions


@pytest.mark.slow
async def test_where_the_power_is_lost_the_agent_is_the_old_one_or_the_new_one(tmp_path: Path) -> None:
    old, new = scripted([say("one"), say("two")], change), scripted([say("three")], look)
    outcomes: set[tuple[int, bool]] = set()

    async def switch(store: FileStore, acknowledged: list[str]) -> None:
        llm = ScriptedLLM([say("one"), say("two")])
        async with talk(scripted(llm, change), store=store, id="a") as conversation:
            acknowledged.append("old")
            await conversation.run("go")
            await conversation.set_agent(scripted([say("three")], look))
            acknowledged.append("new")
            await conversation.run("more")
            acknowledged.append("run")

    for attempt in crash_everywhere(tmp_path):
        acknowledged: list[str] = []
        found = await attempt(switch, acknowledged)
        if "old" not in acknowledged:
            continue
        state = await read_log(found.store, "a")
        assert state.agent is not None
        recorded = (state.agent.agent, state.agent.missing)
        is_new = recorded == record_agent(new)
        assert is_new or recorded == record_agent(old)
        assert is_new or "new" not in acknowledged, "an acknowledged agent is lost"
        if "run" in acknowledged:
            assert events_of(state, SystemPromptEvent)[-1].tools[0].name == "look"
        async with talk(scripted([say("went on")], look if is_new else change), store=found.store, id="a") as again:
            assert (await again.run("again")).status is FINISHED
        outcomes.add((len(acknowledged), is_new))
    assert outcomes >= {(1, False), (2, True), (3, True)}
    assert not ran
