"""Commands from many tasks at once: whatever comes together, the log stays whole and nobody waits for ever."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agentcore import AlwaysConfirm, Conversation, ConversationStatus, Limits, RunResult
from agentcore.context import build_messages
from agentcore.errors import ConversationClosed, ConversationError, NothingPending, RewindRefused
from agentcore.events import ActionApproved, ActionEvent, ConversationStateUpdateEvent, Event, HeadMoved, StatusChanged
from agentcore.record import ConversationState, read_log
from agentcore.testing import Request, ScriptedLLM, ScriptLine, call, calls, say
from talks import (
    BOUND,
    FINISHED,
    IDLE,
    RUNNING,
    WAITING,
    HookedStore,
    answers_of,
    at_once,
    events_of,
    ping,
    running,
    talk,
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

    await at_once(*(lambda function=function: one(function) for function in functions))
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


@pytest.mark.parametrize("attempt", range(10))  # on trio the order in which tasks begin is random
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


@pytest.mark.parametrize("seed", range(8))
async def test_who_approves_on_seeing_that_it_waits_gets_it_going(seed: int) -> None:
    store = uneven_store(random.Random(seed))
    async with talk([pings(), say("done")], ping, store=store, confirm=AlwaysConfirm()) as conversation:
        async with running(conversation):
            await _after(conversation, WAITING, conversation.approve)
        assert (await conversation.run()).text == "done"


@pytest.mark.parametrize("seed", range(8))
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


async def give_way(dice: random.Random) -> None:
    for _ in range(dice.randrange(6)):
        await checkpoint()


class Crowd:
    """Several people at one conversation, each doing whatever comes to mind."""

    def __init__(self, conversation: Conversation, dice: random.Random) -> None:
        self.conversation = conversation
        self.dice = dice

    async def person(self, acts: int) -> None:
        for _ in range(acts):
            await give_way(self.dice)
            with suppress(ConversationError):
                await self.deed()()

    def deed(self) -> Callable[[], Awaitable[object]]:
        c, dice = self.conversation, self.dice
        one = dice.choice(c.state.pending).id if c.state.pending else None
        usual: list[Callable[[], Awaitable[object]]] = [
            self.run,
            lambda: c.approve(one),
            lambda: c.reject("no", one),
            c.interrupt,
            c.pause,
            lambda: c.send("hello"),
        ]
        rare: list[Callable[[], Awaitable[object]]] = [
            self.cancelled_run,
            lambda: c.rewind(to=dice.randrange(c.state.head + 1)),
            c.fork,
            lambda: c.set_limits(Limits(steps=dice.randrange(1, 6))),
            self.stream,
            lambda: c.ask("how far?"),
        ]
        return dice.choice([*usual, *usual, *rare])

    async def run(self) -> None:
        await self.conversation.run("go on")

    async def cancelled_run(self) -> None:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self.run_quietly)
            await give_way(self.dice)
            tasks.cancel_scope.cancel()

    async def run_quietly(self) -> None:
        with suppress(ConversationError):
            await self.run()

    async def stream(self) -> None:
        async for _ in self.conversation.run_stream("hurry"):
            if self.dice.random() < 0.2:
                break


def check(state: ConversationState) -> None:
    """What holds whatever was done."""
    counts = answered(state)
    actions = [event.id for event in state.events if isinstance(event, ActionEvent)]
    assert not counts - Counter(actions), "an answer to nothing, or two to one action"
    left = {event.id for event in state.branch_events() if isinstance(event, ActionEvent)} - set(counts)
    assert left == set(state.open_actions)
    assert left == {action.id for action in state.pending} | {a for a in left if state.open_actions[a].approval}
    assert state.status is not RUNNING
    waits = state.status is WAITING
    assert not waits or state.pending, "it waits for nobody"


@pytest.mark.parametrize("seed", range(12))
async def test_whatever_a_crowd_does_the_log_is_whole_and_nobody_hangs(seed: int) -> None:
    dice = random.Random(seed)

    def reply(request: Request) -> ScriptLine:
        return dice.choice([say("done"), pings(1), pings(3), say("")])

    store = uneven_store(dice)
    seen: list[Event] = []
    with anyio.fail_after(30):
        async with talk(reply, ping, store=store, id="a", confirm=AlwaysConfirm()) as conversation:
            crowd = Crowd(conversation, dice)

            async def watch() -> None:
                seen.extend([event async for event in conversation.events()])

            async with anyio.create_task_group() as tasks:
                for _ in range(4):
                    tasks.start_soon(crowd.person, 12)
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(watch)
                await conversation.interrupt()
                check(conversation.state)
                await conversation.close()
                with pytest.raises(ConversationClosed):
                    await conversation.run()
        check(conversation.state)
        again = await read_log(store, "a")
        assert again.snapshot() == conversation.state.snapshot()
        assert list(build_messages(again)) == list(build_messages(conversation.state))
        assert seen == list(conversation.state.events)
