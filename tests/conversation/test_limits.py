"""Limits: each ends the run in an error that has its name, and can be changed while the run goes on."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import anyio
import pytest

from agentcore import ActionEvent, Agent, AlwaysConfirm, Conversation, ConversationStatus, Limits, MemoryStore, Usage
from agentcore.testing import ScriptedLLM, call, hang, say
from agentcore.tools import tool


@tool(resources=())
async def ping(n: int) -> str:
    """Ping."""
    return f"pong {n}"


@tool(resources=())
async def sleeper() -> str:
    """Sleep for ever."""
    await anyio.sleep_forever()
    return "never"


USED = Usage(requests=1, input_tokens=90, output_tokens=10, known_cost=Decimal("0.10"))
FREE = Usage(requests=1, input_tokens=90, output_tokens=10, unpriced_requests=1)


async def test_steps_are_counted_per_run(tmp_path: Path) -> None:
    llm = ScriptedLLM([call("ping", n=n) for n in range(4)])
    async with Conversation(Agent(llm=llm, tools=[ping]), tmp_path, limits=Limits(steps=2)) as conversation:
        for expected in (2, 4):
            result = await conversation.run("go" if expected == 2 else None)
            assert result.status is ConversationStatus.ERROR
            assert result.error is not None
            assert result.error.code == "steps"
            assert len(llm.requests) == expected
            assert not conversation.state.open_actions


async def test_a_run_that_finishes_with_its_last_step_is_finished(tmp_path: Path) -> None:
    llm = ScriptedLLM([call("ping", n=1), say("done")])
    async with Conversation(Agent(llm=llm, tools=[ping]), tmp_path, limits=Limits(steps=2)) as conversation:
        assert (await conversation.run("go")).status is ConversationStatus.FINISHED


@pytest.mark.parametrize(
    ("limits", "used", "code"),
    [
        (Limits(tokens=150), USED, "tokens"),
        (Limits(cost=Decimal("0.15")), USED, "cost"),
        (Limits(cost=Decimal("0.15")), FREE, "cost_unknown"),
    ],
)
async def test_budgets_count_over_all_runs(tmp_path: Path, limits: Limits, used: Usage, code: str) -> None:
    llm = ScriptedLLM([say("one", usage=used), say("two", usage=used)])
    async with Conversation(Agent(llm=llm), tmp_path, limits=limits) as conversation:
        await conversation.run("go")
        await conversation.run("more")
        result = await conversation.run("even more")
        assert result.error is not None
        assert result.error.code == code
        await conversation.set_limits(Limits())
        assert conversation.state.limits == Limits()


async def test_a_step_that_takes_too_long_ends_the_run(tmp_path: Path) -> None:
    limits = Limits(step_seconds=0.01)
    async with Conversation(Agent(llm=ScriptedLLM([hang])), tmp_path, limits=limits) as conversation:
        with anyio.fail_after(10):
            result = await conversation.run("go")
    assert result.error is not None
    assert result.error.code == "step_seconds"


@pytest.mark.parametrize("code", ["run_seconds", "conversation_seconds"])
async def test_a_call_that_runs_at_the_deadline_is_answered_first(tmp_path: Path, code: str) -> None:
    limits = Limits.model_validate({code: 0.05})
    agent = Agent(llm=ScriptedLLM([call("sleeper")]), tools=[sleeper])
    async with Conversation(agent, tmp_path, limits=limits) as conversation:
        with anyio.fail_after(10):
            result = await conversation.run("go")
    assert result.error is not None
    assert result.error.code == code
    assert [event.kind for event in conversation.state.events][-2:] == ["agent_error", "conversation_error"]
    assert not conversation.state.open_actions


async def test_a_deadline_set_while_the_run_goes_on_holds(tmp_path: Path) -> None:
    agent = Agent(llm=ScriptedLLM([call("sleeper")]), tools=[sleeper])
    async with Conversation(agent, tmp_path) as conversation:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:

                async def shorten() -> None:
                    async for event in conversation.events():
                        if isinstance(event, ActionEvent):
                            await conversation.set_limits(Limits(run_seconds=0.01))
                            return

                tasks.start_soon(shorten)
                await conversation.run("go")
        assert conversation.state.status_code == "run_seconds"


async def test_waiting_for_a_callback_is_not_wall_time(tmp_path: Path) -> None:
    async def confirm(action: ActionEvent) -> bool:
        turn_deadline = anyio.current_effective_deadline()
        assert turn_deadline == float("inf")
        return True

    agent = Agent(llm=ScriptedLLM([call("ping", n=1), say("done")]), tools=[ping])
    async with Conversation(agent, tmp_path, confirm=confirm, limits=Limits(run_seconds=60)) as conversation:
        assert (await conversation.run("go")).text == "done"


async def test_limits_are_recorded_and_hold_after_opening_again(tmp_path: Path) -> None:
    store = MemoryStore()
    agent = Agent(llm=ScriptedLLM([call("ping", n=1)]), tools=[ping])
    async with Conversation(agent, tmp_path, store=store, id="a", limits=Limits(steps=1)) as conversation:
        await conversation.send("go")
    async with Conversation(agent, tmp_path, store=store, id="a", confirm=AlwaysConfirm()) as conversation:
        assert conversation.state.limits.steps == 1
