"""Limits: each ends the run in an error that has its name, and can be changed while the run goes on."""

from __future__ import annotations

from decimal import Decimal

import anyio
import pytest

from agentcore import (
    ActionEvent,
    AgentErrorEvent,
    AlwaysConfirm,
    Conversation,
    Limits,
    MemoryStore,
    RunResult,
    ToolContext,
    Usage,
    tool,
)
from agentcore.errors import LimitReached
from agentcore.testing import Request, ScriptedLLM, ScriptedReply, call, calls, say
from agentcore.testing import hang as hanging
from talks import ERROR, FINISHED, change, events_of, hang, kinds_of, ping, running, scripted, talk, until

USED = Usage(requests=1, input_tokens=90, output_tokens=10, known_cost=Decimal("0.10"))
FREE = Usage(requests=1, input_tokens=90, output_tokens=10, unpriced_requests=1)


def code_of(result: RunResult) -> str:
    assert result.status is ERROR
    assert result.error is not None
    return result.error.code


async def test_steps_are_counted_per_run_and_one_that_finishes_with_its_last_step_is_finished() -> None:
    llm = ScriptedLLM([*[call("change", name=str(n)) for n in range(5)], say("done")])
    async with talk(llm, change, limits=Limits(steps=2)) as conversation:
        for expected in (2, 4):
            assert code_of(await conversation.run("go" if expected == 2 else None)) == "steps"
            assert len(llm.requests) == expected
            assert not conversation.state.open_actions
        assert (await conversation.run()).status is FINISHED


@pytest.mark.parametrize(
    ("limits", "used", "code"),
    [
        (Limits(tokens=150), USED, "tokens"),
        (Limits(cost=Decimal("0.15")), USED, "cost"),
        (Limits(cost=Decimal("0.15")), FREE, "cost_unknown"),
    ],
)
async def test_budgets_count_over_all_runs(limits: Limits, used: Usage, code: str) -> None:
    async with talk([say("one", usage=used), say("two", usage=used)], limits=limits) as conversation:
        await conversation.run("go")
        await conversation.run("more")
        assert code_of(await conversation.run("even more")) == code
        await conversation.set_limits(Limits())
        assert conversation.state.limits == Limits()


async def test_a_step_that_takes_too_long_ends_the_run() -> None:
    async with talk([hanging], limits=Limits(step_seconds=0.01)) as conversation:
        assert code_of(await conversation.run("go")) == "step_seconds"


@pytest.mark.parametrize("code", ["run_seconds", "conversation_seconds"])
async def test_a_call_that_runs_at_the_deadline_is_answered_first(code: str) -> None:
    async with talk([call("hang")], hang, limits=Limits.model_validate({code: 0.05})) as conversation:
        assert code_of(await conversation.run("go")) == code
    assert kinds_of(conversation)[-2:] == ["agent_error", "conversation_error"]
    assert not conversation.state.open_actions


async def test_a_deadline_set_while_the_run_goes_on_holds() -> None:
    async with talk([call("hang")], hang) as conversation:
        async with running(conversation) as run:
            await until(conversation, ActionEvent)
            await conversation.set_limits(Limits(run_seconds=0.01))
        assert code_of(run.result) == "run_seconds"


async def test_waiting_for_a_callback_is_not_wall_time() -> None:
    async def confirm(action: ActionEvent) -> bool:
        assert anyio.current_effective_deadline() == float("inf")
        return True

    agent = scripted([call("ping"), say("done")], ping)
    async with Conversation(agent, confirm=confirm, limits=Limits(run_seconds=60)) as conversation:
        assert (await conversation.run("go")).text == "done"


async def test_limits_are_recorded_and_hold_after_opening_again() -> None:
    store = MemoryStore()
    async with talk([], store=store, id="a", limits=Limits(steps=1)) as conversation:
        await conversation.send("go")
    async with talk([], store=store, id="a", confirm=AlwaysConfirm()) as conversation:
        assert conversation.state.limits.steps == 1


@pytest.mark.parametrize(
    ("limits", "used", "code"),
    [
        (Limits(tokens=300), USED, "tokens"),
        (Limits(cost=Decimal("0.25")), USED, "cost"),
        (Limits(cost=Decimal("0.25")), FREE, "cost_unknown"),
    ],
)
async def test_side_questions_count_and_are_refused_when_a_budget_is_used_up(
    limits: Limits, used: Usage, code: str
) -> None:
    @tool
    async def asker(ctx: ToolContext) -> str:
        """Ask twenty times."""
        for _ in range(20):
            await ctx.ask("more?")
        return "done"

    asked: list[str] = []

    def answer(request: Request) -> ScriptedReply:
        asked.append(request.last.text)
        return say("aside", usage=used) if "side question" in request.last.text else calls(call("asker"), usage=used)

    async with talk(ScriptedLLM(answer), asker, limits=limits) as conversation:
        assert code_of(await conversation.run("go")) == code
        requests = len(asked)
        assert requests == (1 if used is FREE else 3)
        (refused,) = events_of(conversation, AgentErrorEvent)
        assert (refused.code, refused.error.endswith("The model was not asked.")) == ("LimitReached", True)
        with pytest.raises(LimitReached, match="limit") as caught:
            await conversation.ask("more?")
        assert (caught.value.code, len(asked)) == (code, requests)
        await conversation.set_limits(Limits())
        assert await conversation.ask("more?") == "aside"


async def test_a_limit_of_steps_leaves_side_questions_alone() -> None:
    async with talk([call("change", name="a"), say("aside")], change, limits=Limits(steps=1)) as conversation:
        assert code_of(await conversation.run("go")) == "steps"
        assert await conversation.ask("what was it?") == "aside"
