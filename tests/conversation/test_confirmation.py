"""Actions that wait for a person."""

from __future__ import annotations

import pytest

from agentcore import (
    ActionApproved,
    AlwaysConfirm,
    ConfirmRisky,
    FileStore,
    MemoryStore,
    NeverConfirm,
    ObservationEvent,
    SecurityRisk,
    UserRejectObservation,
)
from agentcore.errors import NothingPending, ToolArgumentsError
from agentcore.testing import ScriptedLLM, call, calls, say
from talks import IDLE, WAITING, change, events_of, look, ran, scripted, talk, until

ONE = call("change", name="a")
TWO = calls(ONE, call("change", name="b"))


async def test_an_action_waits_and_runs_once_when_approved() -> None:
    async with talk([ONE, say("done")], change, confirm=AlwaysConfirm()) as conversation:
        result = await conversation.run("go")
        assert (result.status, [action.tool_name for action in result.pending]) == (WAITING, ["change"])
        assert (await conversation.run()).status is WAITING
        assert (await conversation.run("NO, do not do that!")).status is WAITING, "a message approves nothing"
        assert not ran
        await conversation.approve(by="Ada")
        final = await conversation.run()
        assert (final.text, final.steps, ran) == ("done", 2, ["a"])
    (approval,) = events_of(conversation, ActionApproved)
    assert (approval.by, approval.cause) == ("Ada", result.pending[0].id)


async def test_approving_goes_on_by_itself() -> None:
    async with talk([ONE, say("done")], change, confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        await conversation.approve()
        await until(conversation, ObservationEvent)
    assert ran == ["a"]


async def test_a_rejected_action_is_answered_with_the_reason_and_the_model_reads_it() -> None:
    llm = ScriptedLLM([ONE, say("understood")])
    async with talk(llm, change, confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        await conversation.reject("too dangerous", by="Bob")
        assert conversation.state.status is IDLE
        assert (await conversation.run()).text == "understood"
    assert not ran
    (answer,) = events_of(conversation, UserRejectObservation)
    assert (answer.reason, answer.by) == ("too dangerous", "Bob")
    assert "too dangerous" in str(llm.requests[1].messages[-1])


async def test_one_that_must_wait_makes_its_whole_reply_wait() -> None:
    reply = calls(call("look", name="a"), call("change", name="b"))
    async with talk([reply], change, look, confirm=ConfirmRisky(confirm_unknown=True)) as conversation:
        result = await conversation.run("go")
        assert [action.tool_name for action in result.pending] == ["look", "change"]
        assert not ran


async def test_some_are_approved_and_the_rest_waits() -> None:
    async with talk([TWO, say("done")], change, confirm=AlwaysConfirm()) as conversation:
        first, second = (await conversation.run("go")).pending
        await conversation.approve(first.id)
        result = await conversation.run()
        assert (result.status, result.pending, ran) == (WAITING, (second,), ["a"])
        await conversation.reject("no", second.id)
        assert (await conversation.run()).text == "done"


async def test_changed_arguments_are_run_recorded_and_shown_to_the_model() -> None:
    llm = ScriptedLLM([call("change", name="everything"), say("done")])
    async with talk(llm, change, confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        with pytest.raises(ToolArgumentsError):
            await conversation.approve(arguments={"nme": "one"})
        await conversation.approve(arguments={"name": "one"})
        await conversation.run()
    assert ran == ["one"]
    assert [approval.arguments for approval in events_of(conversation, ActionApproved)] == [{"name": "one"}]
    assert "changed the arguments" in str(llm.requests[1].messages[-1])


async def test_deciding_on_what_does_not_wait_or_on_too_much_is_an_error_that_says_what_waits() -> None:
    async with talk([TWO], change, confirm=AlwaysConfirm()) as conversation:
        first, _ = (await conversation.run("go")).pending
        with pytest.raises(NothingPending, match=first.id):
            await conversation.reject("no", "ev_nothing")
        with pytest.raises(ValueError, match="one action"):
            await conversation.approve(arguments={"name": "x"})
        assert len(conversation.state.pending) == 2


async def test_read_only_actions_pass_a_risk_policy() -> None:
    policy = ConfirmRisky(threshold=SecurityRisk.MEDIUM)
    async with talk([call("look", name="a"), say("done")], look, confirm=policy) as conversation:
        assert (await conversation.run("go")).text == "done"
    assert ran == ["looked at a"]


@pytest.mark.parametrize("stored", [False, True])
async def test_a_wait_and_its_policy_survive_closing_and_opening_again(stored: bool) -> None:
    store = FileStore("logs") if stored else MemoryStore()
    agent = scripted([ONE, say("done")], change)
    async with talk(agent, store=store, id="w", confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
    async with talk(agent, store=store, id="w") as conversation:
        assert conversation.state.status is WAITING
        assert len((await conversation.run()).pending) == 1
        await conversation.approve()
        assert (await conversation.run()).text == "done"
        assert conversation.state.policy == {"name": "always_confirm"}
    assert ran == ["a"]


async def test_the_policy_can_be_changed() -> None:
    async with talk([ONE, call("change", name="b"), say("done")], change, confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        await conversation.set_policy(NeverConfirm())
        await conversation.approve()
        assert (await conversation.run()).text == "done"
    assert ran == ["a", "b"]
