"""Commands from many tasks at once: whatever comes together, the log stays whole and nobody waits for ever."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

import anyio
import pytest
from anyio.lowlevel import checkpoint

from agentcore import (
    Agent,
    AlwaysConfirm,
    Conversation,
    ConversationStatus,
    Limits,
    MemoryStore,
    NeverConfirm,
    RunResult,
)
from agentcore.context import build_messages
from agentcore.errors import ConversationClosed, ConversationError, NothingPending, RewindRefused
from agentcore.events import ActionApproved, ActionEvent, ConversationStateUpdateEvent, Event, HeadMoved, StatusChanged
from agentcore.record import ConversationState, Record, StoredLog, read_log
from agentcore.testing import Gate, Request, ScriptedLLM, ScriptLine, call, calls, say
from agentcore.tools import tool

ANSWERS = ("observation", "user_reject", "agent_error")


@tool(resources=())
async def ping() -> str:
    """Ping."""
    await checkpoint()
    return "pong"


def pings(count: int = 2) -> ScriptLine:
    return calls(*[call("ping")] * count)


def answered(state: ConversationState) -> Counter[str]:
    return Counter(event.cause or "" for event in state.events if event.kind in ANSWERS)


async def all_at_once(*functions: Callable[[], Awaitable[object]]) -> list[Exception]:
    """Call them together and give the errors of the refused ones."""
    refused: list[Exception] = []

    async def one(function: Callable[[], Awaitable[object]]) -> None:
        try:
            await function()
        except ConversationError as error:
            refused.append(error)

    with anyio.fail_after(10):
        async with anyio.create_task_group() as tasks:
            for function in functions:
                tasks.start_soon(one, function)
    return refused


async def test_two_rejections_at_once_leave_the_conversation_idle(tmp_path: Path) -> None:
    agent = Agent(llm=ScriptedLLM([pings(), say("done")]), tools=[ping])
    async with Conversation(agent, tmp_path, confirm=AlwaysConfirm()) as conversation:
        first, second = (await conversation.run("go")).pending
        refused = await all_at_once(
            lambda: conversation.reject("no", first.id), lambda: conversation.reject("no", second.id)
        )
        assert not refused
        assert conversation.state.status is ConversationStatus.IDLE
        assert (await conversation.run()).text == "done"


async def test_of_an_approval_and_a_rejection_at_once_one_counts_and_the_other_is_told(tmp_path: Path) -> None:
    agent = Agent(llm=ScriptedLLM([pings(), say("done")]), tools=[ping])
    async with Conversation(agent, tmp_path, confirm=AlwaysConfirm()) as conversation:
        pending = (await conversation.run("go")).pending
        (refused,) = await all_at_once(conversation.approve, lambda: conversation.reject("no"))
        assert isinstance(refused, NothingPending)
        with anyio.fail_after(10):
            await conversation.run()
        assert answered(conversation.state) == Counter(action.id for action in pending)


async def test_of_two_approvals_at_once_one_is_recorded(tmp_path: Path) -> None:
    agent = Agent(llm=ScriptedLLM([pings(1), say("done")]), tools=[ping])
    async with Conversation(agent, tmp_path, confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        (refused,) = await all_at_once(lambda: conversation.approve(by="a"), lambda: conversation.approve(by="b"))
        assert isinstance(refused, NothingPending)
        assert sum(isinstance(event, ActionApproved) for event in conversation.state.events) == 1


@pytest.mark.parametrize("attempt", range(20))  # on trio the order in which tasks begin is random
async def test_of_an_approval_and_a_rewind_at_once_one_counts_and_the_other_is_refused(
    tmp_path: Path, attempt: int
) -> None:
    llm = ScriptedLLM([pings(1), say("done")])
    async with Conversation(Agent(llm=llm, tools=[ping]), tmp_path, confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
        before = conversation.state.head
        (refused,) = await all_at_once(lambda: conversation.rewind(to=0), conversation.approve)
        await conversation.interrupt()
        approved = any(isinstance(event, ActionApproved) for event in conversation.state.events)
        moved = any(isinstance(event, HeadMoved) for event in conversation.state.events[before:])
        if isinstance(refused, NothingPending):
            assert (approved, moved, len(llm.requests)) == (False, True, 1)
            assert conversation.state.status is ConversationStatus.IDLE
        else:
            assert isinstance(refused, RewindRefused)
            assert (approved, moved) == (True, False)


async def test_an_action_that_is_named_twice_is_answered_once(tmp_path: Path) -> None:
    agent = Agent(llm=ScriptedLLM([pings()]), tools=[ping])
    async with Conversation(agent, tmp_path, confirm=AlwaysConfirm()) as conversation:
        first, second = (await conversation.run("go")).pending
        await conversation.reject("no", [first.id, first.id])
        assert answered(conversation.state) == {first.id: 1}
        assert conversation.state.pending == (second,)


async def _after(conversation: Conversation, status: ConversationStatus, act: Callable[[], Awaitable[object]]) -> None:
    """Act as soon as the log says that the turn ended so: before the turn's own task can go on."""
    async for event in conversation.events():
        update = event.update if isinstance(event, ConversationStateUpdateEvent) else None
        if isinstance(update, StatusChanged) and update.status is status:
            await act()
            return


@pytest.mark.parametrize("seed", range(8))
async def test_who_approves_on_seeing_that_it_waits_gets_it_going(tmp_path: Path, seed: int) -> None:
    agent = Agent(llm=ScriptedLLM([pings(), say("done")]), tools=[ping])
    store = UnevenStore(random.Random(seed))
    async with Conversation(agent, tmp_path, store=store, confirm=AlwaysConfirm()) as conversation:
        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(
                    _after, conversation, ConversationStatus.WAITING_FOR_CONFIRMATION, conversation.approve
                )
                await conversation.run("go")
            assert (await conversation.run()).text == "done"


@pytest.mark.parametrize("seed", range(8))
async def test_who_runs_again_on_seeing_that_it_finished_gets_a_run(tmp_path: Path, seed: int) -> None:
    agent = Agent(llm=ScriptedLLM([say("one"), say("two")]))
    results: list[RunResult] = []
    async with Conversation(agent, tmp_path, store=UnevenStore(random.Random(seed))) as conversation:

        async def run_again() -> None:
            results.append(await conversation.run("and again"))

        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(_after, conversation, ConversationStatus.FINISHED, run_again)
                assert (await conversation.run("go")).text == "one"
    assert [result.text for result in results] == ["two"]


async def test_a_new_policy_while_a_callback_is_asked_does_not_fail_the_run(tmp_path: Path) -> None:
    async def confirm(event: ActionEvent) -> bool:
        await conversation.set_policy(NeverConfirm())
        return True

    agent = Agent(llm=ScriptedLLM([pings(), say("done")]), tools=[ping])
    async with Conversation(agent, tmp_path, confirm=confirm) as conversation:
        assert (await conversation.run("go")).text == "done"


async def test_a_pause_while_the_model_is_asked_comes_before_the_callback(tmp_path: Path) -> None:
    asked: list[str] = []

    async def confirm(event: ActionEvent) -> bool:
        asked.append(event.id)
        return True

    gate = Gate()
    agent = Agent(llm=ScriptedLLM([gate.hold(pings(1)), say("done")]), tools=[ping])
    results: list[RunResult] = []
    async with Conversation(agent, tmp_path, confirm=confirm) as conversation:

        async def run() -> None:
            results.append(await conversation.run("go"))

        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(run)
                await gate.arrived()
                await conversation.pause()
                gate.open()
        assert (results[0].status, asked) == (ConversationStatus.PAUSED, [])
        assert (await conversation.run()).text == "done"
        assert len(asked) == 1


async def test_a_decision_made_elsewhere_withdraws_the_question_to_the_callback(tmp_path: Path) -> None:
    asked = anyio.Event()

    async def confirm(event: ActionEvent) -> bool:
        asked.set()
        await anyio.sleep_forever()
        return False

    agent = Agent(llm=ScriptedLLM([pings(1), say("done")]), tools=[ping])
    async with Conversation(agent, tmp_path, confirm=confirm) as conversation:

        async def approve() -> None:
            await asked.wait()
            await conversation.approve(by="somebody else")

        with anyio.fail_after(10):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(approve)
                assert (await conversation.run("go")).text == "done"


async def test_a_callback_is_asked_about_what_waited_through_a_restart(tmp_path: Path) -> None:
    async def confirm(event: ActionEvent) -> bool:
        return True

    store = MemoryStore()
    agent = Agent(llm=ScriptedLLM([pings(), say("done")]), tools=[ping])
    async with Conversation(agent, tmp_path, store=store, id="a", confirm=AlwaysConfirm()) as conversation:
        await conversation.run("go")
    async with Conversation(agent, tmp_path, store=store, id="a", confirm=confirm) as conversation:
        assert (await conversation.run()).text == "done"


class UnevenStore(MemoryStore):
    """Takes its time over each append, as long as its dice say."""

    def __init__(self, dice: random.Random) -> None:
        super().__init__()
        self.dice = dice

    async def create(self, conversation_id: str, *, format_version: int) -> Any:
        return UnevenLog(await super().create(conversation_id, format_version=format_version), self.dice)


class UnevenLog:
    def __init__(self, log: StoredLog, dice: random.Random) -> None:
        self._log = log
        self._dice = dice

    def __getattr__(self, name: str) -> Any:
        return getattr(self._log, name)

    async def append(self, records: Sequence[Record]) -> None:
        await give_way(self._dice)
        await self._log.append(records)
        await give_way(self._dice)


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
            usual = (self.run, self.approve, self.reject, self.interrupt, self.pause, self.send)
            rare = (self.cancelled_run, self.rewind, self.fork, self.limits, self.stream, self.ask)
            act = self.dice.choice((*usual, *usual, *rare))
            with suppress(ConversationError):
                await act()

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

    async def approve(self) -> None:
        pending = self.conversation.state.pending
        await self.conversation.approve(self.dice.choice(pending).id if pending else None)

    async def reject(self) -> None:
        pending = self.conversation.state.pending
        await self.conversation.reject("no", self.dice.choice(pending).id if pending else None)

    async def interrupt(self) -> None:
        await self.conversation.interrupt()

    async def pause(self) -> None:
        await self.conversation.pause()

    async def send(self) -> None:
        await self.conversation.send("hello")

    async def rewind(self) -> None:
        await self.conversation.rewind(to=self.dice.randrange(self.conversation.state.head + 1))

    async def fork(self) -> None:
        await self.conversation.fork()

    async def limits(self) -> None:
        await self.conversation.set_limits(Limits(steps=self.dice.randrange(1, 6)))

    async def stream(self) -> None:
        async for _ in self.conversation.run_stream("hurry"):
            if self.dice.random() < 0.2:
                break

    async def ask(self) -> None:
        await self.conversation.ask("how far?")


def check(state: ConversationState) -> None:
    """What holds whatever was done."""
    counts = answered(state)
    actions = [event.id for event in state.events if isinstance(event, ActionEvent)]
    assert not counts - Counter(actions), "an answer to nothing, or two to one action"
    left = {event.id for event in state.branch_events() if isinstance(event, ActionEvent)} - set(counts)
    assert left == set(state.open_actions)
    assert left == {action.id for action in state.pending} | {a for a in left if state.open_actions[a].approval}
    assert state.status is not ConversationStatus.RUNNING
    waits = state.status is ConversationStatus.WAITING_FOR_CONFIRMATION
    assert not waits or state.pending, "it waits for nobody"


@pytest.mark.parametrize("seed", range(12))
async def test_whatever_a_crowd_does_the_log_is_whole_and_nobody_hangs(tmp_path: Path, seed: int) -> None:
    dice = random.Random(seed)

    def reply(request: Request) -> ScriptLine:
        return dice.choice([say("done"), pings(1), pings(3), say("")])

    store = UnevenStore(dice)
    agent = Agent(llm=ScriptedLLM(reply), tools=[ping])
    seen: list[Event] = []
    with anyio.fail_after(30):
        async with Conversation(agent, tmp_path, store=store, id="a", confirm=AlwaysConfirm()) as conversation:
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
