"""Checks: what is asked before an action starts, and what comes of the answers."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any, Literal

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agentcore import (
    ActionAssessed,
    ActionEvent,
    Agent,
    AlwaysConfirm,
    Assessment,
    ConfirmRisky,
    Conversation,
    FileStore,
    NeverConfirm,
    ObservationEvent,
    SecurityRisk,
)
from agentcore.events import UnknownEvent
from agentcore.security import CheckContext, RatedAction
from agentcore.testing import ScriptedLLM, call, calls, say
from agentcore.tools import tool
from talks import FINISHED, PAUSED, WAITING, change, error_of, events_of, look, ran, running, scripted, talk

LOW, HIGH = SecurityRisk.LOW, SecurityRisk.HIGH
Opinion = Assessment | None


@tool(risk=HIGH)
async def explode() -> str:
    """Explode."""
    ran.append("bang")
    return "bang"


@dataclass
class Rule:
    """A check that answers as it is told."""

    answer: Callable[[ActionEvent, CheckContext], Opinion | Awaitable[Opinion]]
    name: str = "rule"
    timeout: float = 30

    def assess(self, action: ActionEvent, context: CheckContext) -> Opinion | Awaitable[Opinion]:
        return self.answer(action, context)


@dataclass
class Analysis(Rule):
    name: str = "analysis"

    @property
    def is_analyzer(self) -> Literal[True]:
        return True


def later(answer: Callable[[ActionEvent, CheckContext], Opinion]) -> Callable[..., Awaitable[Opinion]]:
    async def assess(action: ActionEvent, context: CheckContext) -> Opinion:
        await checkpoint()
        return answer(action, context)

    return assess


def agent_with(*replies: Any) -> Agent:
    return scripted(list(replies), change, look, explode)


def assessed(conversation: Conversation) -> list[ActionAssessed]:
    return events_of(conversation, ActionAssessed)


async def test_where_nobody_has_an_opinion_nothing_is_recorded() -> None:
    agent = agent_with(calls(call("look", name="a"), call("change", name="b")), say("done"))
    nothing = Rule(lambda action, context: None)
    async with talk(agent, confirm=[NeverConfirm(), nothing]) as conversation:
        assert (await conversation.run("go")).text == "done"
        assert assessed(conversation) == []


async def test_the_risk_that_a_tool_declares_is_recorded_as_its_part() -> None:
    async with talk(agent_with(call("explode"), say("done"))) as conversation:
        await conversation.run("go")
        (event,) = assessed(conversation)
    assert (event.verdict, event.risk) == ("allow", HIGH)
    assert event.parts == (Assessment(risk=HIGH, by="tool"),)
    newer = event.model_dump(mode="json") | {"kind": "action_assessed_2"}
    assert UnknownEvent.model_validate(newer).critical, "who does not know assessments must not continue the log"
    assert ran == ["bang"]


async def test_the_verdict_the_risk_and_the_reasons_of_an_action_that_waits_are_there_for_people() -> None:
    async with talk(agent_with(call("explode")), confirm=ConfirmRisky()) as conversation:
        (action,) = (await conversation.run("go")).pending
        waiting = conversation.state.open_actions[action.id]
        assert waiting.assessment is not None
        assert (waiting.waits, waiting.risk) == (True, HIGH)
        assert [(part.by, part.verdict, part.reason) for part in waiting.assessment.parts] == [
            ("tool", None, ""),
            ("confirm_risky", "ask", "Its risk is high."),
        ]


async def test_what_the_checks_said_at_once_is_written_with_the_reply() -> None:
    store = FileStore("logs")
    agent = agent_with(call("change", name="a"), say("done"))
    async with talk(agent, store=store, id="c", confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
    lines = [json.loads(line) for line in (Path("logs") / "c" / "events.jsonl").read_text().splitlines()]
    (action,) = [line for line in lines if line["kind"] == "action"]
    (assessment,) = [line for line in lines if line["kind"] == "action_assessed"]
    assert action["group"] == assessment["group"]


@pytest.mark.parametrize("late", [False, True])
async def test_a_denied_action_is_answered_and_the_others_run(late: bool) -> None:
    def deny(action: ActionEvent, context: CheckContext) -> Opinion:
        if action.arguments["name"] != "b":
            return None
        return Assessment(verdict="deny", reason="b is not yours", by="house rules")

    agent = agent_with(calls(call("change", name="a"), call("change", name="b")), say("done"))
    async with talk(agent, confirm=Rule(later(deny) if late else deny)) as conversation:
        assert (await conversation.run("go")).text == "done"
        error = error_of(conversation)
    assert ran == ["a"]
    assert (error.outcome, error.code) == ("not_run", "denied")
    assert isinstance(agent.llm, ScriptedLLM)
    assert "not allowed (house rules: b is not yours)" in str(agent.llm.requests[1].messages[-1])


async def test_one_that_asks_makes_the_rest_of_its_reply_wait_finish_too_but_not_what_is_denied() -> None:
    def judge(action: ActionEvent, context: CheckContext) -> Opinion:
        verdicts: dict[Any, Literal["ask", "deny"]] = {"b": "ask", "c": "deny"}
        verdict = verdicts.get(action.arguments["name"])
        return None if verdict is None else Assessment(verdict=verdict, reason="so")

    reply = calls(*(call("change", name=name) for name in "abc"), call("finish", message="done"))
    async with talk(agent_with(reply), confirm=Rule(judge)) as conversation:
        result = await conversation.run("go")
        assert result.status is WAITING
        assert [action.arguments.get("name") for action in result.pending] == ["a", "b", None]
        assert [event.verdict for event in assessed(conversation)] == ["ask", "ask", "deny", "ask"]
        assert assessed(conversation)[0].parts[-1].by == "reply"
        assert not ran
        await conversation.approve()
        assert (await conversation.run()).text == "done"
    assert ran == ["a", "b"]


def refuse(action: ActionEvent, context: CheckContext) -> Opinion:
    raise AssertionError(action.tool_name)


@pytest.mark.parametrize("confirm", [Rule(refuse), AlwaysConfirm()], ids=["check", "policy"])
async def test_finish_and_think_are_not_asked_about(confirm: Any) -> None:
    async with talk([calls(call("think", thought="hm"), call("finish", message="done"))], confirm=confirm) as talked:
        assert (await talked.run("go")).text == "done"


async def test_analyzers_are_asked_first_and_the_rest_reads_the_highest_risk() -> None:
    seen: list[tuple[str, SecurityRisk]] = []

    def low(action: ActionEvent, context: CheckContext) -> Opinion:
        seen.append(("low", context.risk))
        return Assessment(risk=LOW)

    def note(action: ActionEvent, context: CheckContext) -> Opinion:
        seen.append(("rule", context.risk))
        assert (context.tool.read_only, context.workspace_root) == (False, str(Path.cwd()))
        assert context.state is conversation.state
        return None

    high = Analysis(later(lambda action, context: Assessment(risk=HIGH)))
    checks = [Rule(note), ConfirmRisky(), Analysis(low), high]
    async with talk(agent_with(call("change", name="a")), confirm=checks) as conversation:
        assert (await conversation.run("go")).status is WAITING
        assert assessed(conversation)[0].risk is HIGH
    assert seen == [("low", SecurityRisk.UNKNOWN), ("rule", HIGH)]


def fail(action: ActionEvent, context: CheckContext) -> Opinion:
    raise RuntimeError("no idea")


async def never(action: ActionEvent, context: CheckContext) -> Opinion:
    await anyio.sleep_forever()
    return None


BROKEN: dict[str, Callable[[ActionEvent, CheckContext], Any]] = {
    "raises": fail,
    "raises later": later(fail),
    "is late": never,
    "answers True": lambda action, context: True,
    "misspells a field": lambda action, context: Assessment.model_validate({"risk": "low", "verdit": "deny"}),
    "says nothing": lambda action, context: Assessment(reason="I would rather not"),
}


@pytest.mark.parametrize("broken", BROKEN)
@pytest.mark.parametrize(("kind", "risk"), [(Rule, None), (Analysis, HIGH)])
async def test_a_check_that_fails_asks_and_a_failing_analyzer_says_high(
    broken: str, kind: type[Rule], risk: SecurityRisk | None
) -> None:
    check = kind(BROKEN[broken], timeout=0.01 if broken == "is late" else 30)
    async with talk(agent_with(call("change", name="a")), confirm=check) as conversation:
        assert (await conversation.run("go")).status is WAITING
        (event,) = assessed(conversation)
        assert (event.verdict, event.risk, event.parts[0].by) == ("ask", risk, check.name)
        assert event.parts[0].reason.startswith("The check failed: ")
    assert not ran


async def test_a_check_without_a_name_or_a_time_limit_is_refused_at_once() -> None:
    class Bare:
        async def assess(self, action: ActionEvent, context: CheckContext) -> Opinion:
            return None

    bare: Any = Bare()
    with pytest.raises(TypeError, match="The check Bare has no name and no timeout"):
        Conversation(agent_with(), confirm=bare)


async def test_what_a_check_says_later_is_written_before_anything_starts() -> None:
    asked, go = anyio.Event(), anyio.Event()

    async def assess(action: ActionEvent, context: CheckContext) -> Opinion:
        asked.set()
        await go.wait()
        return Assessment(verdict="allow", reason="fine")

    agent = agent_with(calls(call("change", name="a"), call("change", name="b")), say("done"))
    async with talk(agent, confirm=Rule(assess)) as conversation:
        async with running(conversation) as run:
            await asked.wait()
            kinds = [event.kind for event in conversation.state.events[-3:]]
            assert kinds == ["action", "action", "usage"]  # kept, and nothing waits or has started
            assert (conversation.state.pending, ran) == ((), [])
            go.set()
        assert run.result.text == "done"
        order = [event.kind for event in conversation.state.events if event.kind.startswith("action_")]
        assert order == ["action_assessed", "action_assessed", "action_started", "action_started"]
    assert ran == ["a", "b"]


async def test_an_interrupt_while_checks_think_answers_the_actions_and_starts_none() -> None:
    asked = anyio.Event()

    async def assess(action: ActionEvent, context: CheckContext) -> Opinion:
        asked.set()
        await anyio.sleep_forever()
        return None

    async with talk(agent_with(call("change", name="a")), confirm=Rule(assess)) as conversation:
        async with running(conversation):
            await asked.wait()
            await conversation.interrupt()
        assert not conversation.state.open_actions
        error = error_of(conversation)
        assert (error.outcome, conversation.state.status) == ("interrupted", PAUSED)
        assert not await conversation.interrupt_call(error.cause or "")
        assert assessed(conversation) == []
    assert not ran


async def test_arguments_that_a_check_changes_are_run_recorded_and_told_to_the_model() -> None:
    def rename(action: ActionEvent, context: CheckContext) -> Opinion:
        return Assessment(arguments={"name": "one"}, reason="one is enough", by="house rules")

    seen: list[Any] = []

    def note(action: ActionEvent, context: CheckContext) -> Opinion:
        seen.append(action.arguments["name"])
        return None

    agent = agent_with(call("change", name="everything"), say("done"))
    async with talk(agent, confirm=[Rule(rename), Rule(note)]) as conversation:
        assert (await conversation.run("go")).text == "done"
        (event,) = assessed(conversation)
        (answer,) = events_of(conversation, ObservationEvent)
    assert ran == ["one"]
    assert seen == ["everything", "one"]
    assert (event.verdict, event.arguments) == ("allow", {"name": "one"})
    assert answer.text.startswith("A check changed the arguments before it ran, to: {'name': 'one'}")


@pytest.mark.parametrize("arguments", [{"nme": "one"}, {"name": 1, "more": 2}])
async def test_changed_arguments_that_do_not_fit_ask_about_the_ones_that_the_model_gave(
    arguments: dict[str, Any],
) -> None:
    rule = Rule(lambda action, context: Assessment(arguments=arguments))
    async with talk(agent_with(call("change", name="a")), confirm=rule) as conversation:
        (action,) = (await conversation.run("go")).pending
        assert conversation.state.open_actions[action.id].arguments == {"name": "a"}


async def test_checks_that_change_each_other_s_arguments_ask() -> None:
    def longer(action: ActionEvent, context: CheckContext) -> Opinion:
        return Assessment(arguments={"name": f"{action.arguments['name']}!"})

    async with talk(agent_with(call("change", name="a")), confirm=Rule(longer)) as conversation:
        assert (await conversation.run("go")).status is WAITING
        assert "do not agree" in assessed(conversation)[0].parts[-1].reason


@pytest.mark.parametrize("base", [object, NeverConfirm])
async def test_a_policy_may_be_async_and_anything_but_false_asks(base: type[Any]) -> None:
    answer: Any = None

    class Mine(base):
        def needs_confirmation(self, action: RatedAction) -> bool:
            return answer

    class Later(base):
        async def needs_confirmation(self, action: RatedAction) -> bool:
            await checkpoint()
            return answer

    policies: list[Any] = [Mine(), Later()]
    for answer, policy in product([True, False, None, 0], policies):
        async with talk(agent_with(call("change", name="a"), say("done")), confirm=policy) as conversation:
            assert (await conversation.run("go")).status is (FINISHED if answer is False else WAITING)
            if answer is None:
                assert "Does it end without a return?" in assessed(conversation)[0].parts[0].reason


async def test_a_policy_and_a_callback_still_read_the_risk_from_the_action() -> None:
    seen: list[SecurityRisk] = []

    class Mine:
        def needs_confirmation(self, action: RatedAction) -> bool:
            seen.append(action.risk)
            return action.risk is HIGH

    async def confirm(action: RatedAction) -> bool:
        seen.append(action.risk)
        return True

    async with talk(agent_with(call("explode")), confirm=Mine()) as conversation:
        assert (await conversation.run("go")).status is WAITING
    async with talk(agent_with(call("explode"), say("done")), confirm=confirm) as conversation:
        assert (await conversation.run("go")).text == "done"
    assert seen == [HIGH, HIGH]


async def test_a_secret_in_changed_arguments_is_masked_in_the_log_and_comes_back_after_a_restart() -> None:
    def log_in(action: ActionEvent, context: CheckContext) -> Opinion:
        return Assessment(verdict="ask", arguments={"name": "user:hunter2!"}, reason="hunter2! is needed")

    store, agent = FileStore("logs"), agent_with(call("change", name="x"), say("done"))
    secrets = {"PASSWORD": "hunter2!"}
    async with talk(agent, store=store, id="c", confirm=Rule(log_in), secrets=secrets) as conversation:
        assert (await conversation.run("go")).status is WAITING
        assert assessed(conversation)[0].arguments == {"name": "user:<secret:PASSWORD>"}
    assert "hunter2" not in (Path("logs") / "c" / "events.jsonl").read_text()
    async with talk(agent, store=store, id="c", secrets=secrets) as conversation:
        await conversation.approve()
        assert (await conversation.run()).text == "done"
    assert ran == ["user:hunter2!"]
