"""Commands from many tasks at once: whatever comes together, the log stays whole and nobody waits for ever."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agentcore import Agent, AlwaysConfirm, Conversation, ConversationStatus, RunResult
from agentcore.agent import record_agent
from agentcore.errors import ConversationClosed, ConversationError, NothingPending, RewindRefused
from agentcore.events import ActionApproved, ConversationStateUpdateEvent, HeadMoved, StatusChanged
from agentcore.record import ConversationState, read_log
from agentcore.testing import Gate, ScriptedLLM, ScriptLine, call, calls, say
from live_toolset import Service
from rounds import some_quick
from talks import (
    BOUND,
    FINISHED,
    IDLE,
    WAITING,
    HookedStore,
    answers_of,
    at_once,
    core_of,
    events_of,
    ping,
    running,
    talk,
    until,
)


def pings(count: int = 2) -> ScriptLine:
    return calls(*[call("ping")] * count)


def answered(source: Conversation | ConversationState) -> Counter[str]:
    return Counter(event.cause or "" for event in answers_of(source))


async def refused_of(*functions: Callable[[], Awaitable[object]]) -> list[Exception]:
    """Call them together and return the errors of the refused ones."""
    refused: list[Exception] = []

    async def one(function: Callable[[], Awaitable[object]]) -> None:
        try:
            await function()
        except ConversationError as error:
            refused.append(error)

    await at_once(*(partial(one, function) for function in functions))
    return refused


async def test_decisions_on_two_actions_at_once_all_count_and_one_that_is_named_twice_is_answered_once() -> None:
    async with talk([pings(), say("done"), pings()], ping, confirm=AlwaysConfirm()) as conversation:
        first, second = (await conversation.run("go")).pending
        assert not await refused_of(
            lambda: conversation.reject("no", first.id), lambda: conversation.reject("no", second.id)
        )
        assert conversation.state.status is IDLE
        assert (await conversation.run()).text == "done"
        third, fourth = (await conversation.run("more")).pending
        await conversation.reject("no", [third.id, third.id])
        assert answered(conversation) == dict.fromkeys((first.id, second.id, third.id), 1)
        assert conversation.state.pending == (fourth,)


async def test_of_an_approval_and_a_rejection_at_once_one_counts_and_the_other_is_refused() -> None:
    async with talk([pings(), say("done")], ping, confirm=AlwaysConfirm()) as conversation:
        pending = (await conversation.run("go")).pending
        (refused,) = await refused_of(conversation.approve, lambda: conversation.reject("no"))
        assert isinstance(refused, NothingPending)
        with anyio.fail_after(BOUND):
            await conversation.run()
        assert answered(conversation) == Counter(action.id for action in pending)


async def test_of_two_approvals_at_once_one_is_recorded() -> None:
    async with talk([pings(1), say("done")], ping, confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        (refused,) = await refused_of(lambda: conversation.approve(by="a"), lambda: conversation.approve(by="b"))
        assert isinstance(refused, NothingPending)
        assert len(events_of(conversation, ActionApproved)) == 1


@pytest.mark.parametrize("attempt", some_quick(range(10), 5))  # on trio the order in which tasks begin is random
async def test_of_an_approval_and_a_rewind_at_once_one_counts_and_the_other_is_refused(attempt: int) -> None:
    llm = ScriptedLLM([pings(1), say("done")])
    async with talk(llm, ping, confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        before = conversation.state.head
        (refused,) = await refused_of(lambda: conversation.rewind(to=0), conversation.approve)
        await conversation.interrupt()
        approved = bool(events_of(conversation, ActionApproved))
        moved = any(isinstance(event, HeadMoved) for event in conversation.state.events[before:])
        if isinstance(refused, NothingPending):
            assert (approved, moved, len(llm.requests)) == (False, True, 1)
            assert conversation.state.status is IDLE
        else:
            assert isinstance(refused, RewindRefused)
            assert (approved, moved) == (True, False)


async def _after(conversation: Conversation, status: ConversationStatus, act: Callable[[], Awaitable[object]]) -> None:
    """Act as soon as the log says that the turn ended so: before the turn's own task can go on."""
    async for event in conversation.events():
        update = event.update if isinstance(event, ConversationStateUpdateEvent) else None
        if isinstance(update, StatusChanged) and update.status is status:
            await act()
            return


@pytest.mark.parametrize("seed", some_quick(range(8), 4))
async def test_who_approves_on_seeing_that_it_waits_gets_it_going(seed: int) -> None:
    store = uneven_store(random.Random(seed))
    async with talk([pings(), say("done")], ping, store=store, confirm=AlwaysConfirm()) as conversation:
        async with running(conversation):
            await _after(conversation, WAITING, conversation.approve)
        assert (await conversation.run()).text == "done"


@pytest.mark.parametrize("seed", some_quick(range(8), 4))
async def test_who_runs_again_on_seeing_that_it_finished_gets_a_run(seed: int) -> None:
    results: list[RunResult] = []
    async with talk([say("one"), say("two")], store=uneven_store(random.Random(seed))) as conversation:

        async def run_again() -> None:
            results.append(await conversation.run("and again"))

        async with running(conversation) as run:
            await _after(conversation, FINISHED, run_again)
        assert [result.text for result in (run.result, *results)] == ["one", "two"]


def uneven_store(dice: random.Random) -> HookedStore:
    """Make a store that takes its time over each append, as long as its dice say."""
    return HookedStore(lambda _: give_way(dice), lambda _: give_way(dice))


Deed = Callable[[Conversation], Awaitable[object]]

BESIDE: dict[str, Deed] = {
    "run": lambda conversation: conversation.run("more"),
    "pause": lambda conversation: conversation.pause(),
    "interrupt": lambda conversation: conversation.interrupt(),
    "approve": lambda conversation: conversation.approve(),
    "reject": lambda conversation: conversation.reject("no"),
    "rewind": lambda conversation: conversation.rewind(0),
    "close": lambda conversation: conversation.close(),
    "another": lambda conversation: conversation.set_agent(successor("another")),
}


def successor(name: str) -> Agent:
    llm = ScriptedLLM(lambda _: say(f"{name} says so"), name=name)
    return Agent(llm=llm, tools=[ping, Service(name)], stuck=None)


@pytest.mark.parametrize("at_rest", [True, False], ids=["waiting", "working"])
@pytest.mark.parametrize("beside", some_quick(BESIDE, 3))
async def test_of_an_agent_that_is_set_beside_anything_else_both_count_or_one_is_refused(
    beside: str, at_rest: bool
) -> None:
    for seed in range(4):
        gate = Gate()
        lines = [pings(), say("old says so")] if at_rest else [gate.hold(pings())]
        store = uneven_store(random.Random(seed))
        old = Agent(llm=ScriptedLLM(lines, name="old"), tools=[ping, Service("old")], stuck=None)
        async with talk(old, store=store, id="a", confirm=AlwaysConfirm() if at_rest else None) as conversation:
            refused: list[Exception] = []

            async def act() -> None:
                await BESIDE[beside](conversation)

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(conversation.run, "go")
                if at_rest:
                    await until(lambda: conversation.state.status is WAITING)
                else:
                    await gate.arrived()
                gate.open()
                refused = await refused_of(act, lambda: conversation.set_agent(successor("new")))
            await until(lambda: not conversation.state.is_working)
            core = core_of(conversation)
            assert not [
                error for error in refused if not isinstance(error, ConversationClosed | NothingPending | RewindRefused)
            ]
            assert core.next_agent is None
            assert core.state.agent is not None
            assert record_agent(core.agent) == (core.state.agent.agent, core.state.agent.missing)
            names = {"close": {"old", "new"}, "another": {"another", "new"}}.get(beside, {"new"})
            assert core.agent.llm.name in names
        state = await read_log(store, "a")
        assert not state.is_working
        assert not set(answered(state).values()) - {1}


async def give_way(dice: random.Random) -> None:
    for _ in range(dice.randrange(6)):
        await checkpoint()
