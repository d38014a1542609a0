"""kill -9 in the middle of everything: what was acknowledged is there, and nothing happens twice."""

from __future__ import annotations

import os
import random
import signal
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path

import anyio
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream
from hypothesis import settings

from agentcore import (
    ActionEvent,
    Agent,
    AgentErrorEvent,
    AlwaysConfirm,
    Conversation,
    ConversationStatus,
    FileStore,
    ObservationEvent,
    UserRejectObservation,
)
from agentcore.record import read_log
from agentcore.testing import ScriptedLLM, say
from agentcore.tools import tool
from warm_python import Forked, Output, WarmPython

PROGRAM = Path(__file__).with_name("killed_agent.py")


@tool(name="effect")
async def never_again(n: int) -> str:
    """Have an effect: it must not be asked for after the kill."""
    raise AssertionError("an action was run again by opening its conversation")


Start = Callable[[Path, str], AbstractAsyncContextManager[tuple[Forked, Output]]]
"""Starts the program with its folder and the kind of its tool; it ends with the block at the latest."""


@pytest.fixture
def start(warm: WarmPython, surroundings: dict[str, str]) -> Start:
    """Give what starts the program soon: it is started often."""
    return lambda folder, kind: warm.telling([str(PROGRAM), str(folder), kind], env=surroundings, cwd=folder)


async def kill_one(start: Start, folder: Path, lines: int, kind: str) -> dict[int, str]:
    """Run the program, kill it after it said so many lines, and give what it had said for certain."""
    said: dict[int, str] = {}
    async with start(folder, kind) as (process, output):
        stream = BufferedByteReceiveStream(output)
        with anyio.fail_after(60):
            for _ in range(lines):
                seq, event_id = (await stream.receive_until(b"\n", 200)).split()
                said[int(seq)] = event_id.decode()
                if await _is_waiting(folder, said):
                    break
            os.kill(process.pid, signal.SIGKILL)
            with suppress(anyio.EndOfStream, anyio.IncompleteRead):
                while True:
                    seq, event_id = (await stream.receive_until(b"\n", 200)).split()
                    said[int(seq)] = event_id.decode()
            await process.wait()
    return said


async def _is_waiting(folder: Path, said: dict[int, str]) -> bool:
    # The program stops for good at its seventh wait: nothing more would be said.
    if len(said) % 40:
        return False
    state = await read_log(FileStore(folder / "logs"), "victim")
    return state.status is ConversationStatus.WAITING_FOR_CONFIRMATION and state.head == len(said)


async def check(folder: Path, said: dict[int, str]) -> None:
    store = FileStore(folder / "logs")
    before = await read_log(store, "victim")
    for seq, event_id in said.items():
        assert before.events[seq - 1].id == event_id, "an acknowledged event is lost"
    waiting = {event.id for event in before.pending}
    agent = Agent(llm=ScriptedLLM([say("went on")]), tools=[never_again])
    async with Conversation(agent, folder, store=store, id="victim", confirm=AlwaysConfirm()) as conversation:
        state = conversation.state
        assert {event.id for event in state.pending} == waiting, "a waiting approval is lost"
        approved = {action.event.id for action in before.open_actions.values() if action.runs_next}
        assert set(state.open_actions) == waiting | approved, "a yes is lost"
        answers = [
            event
            for event in state.events
            if isinstance(event, ObservationEvent | UserRejectObservation | AgentErrorEvent)
        ]
        counts = Counter(answer.cause for answer in answers)
        assert set(counts.values()) <= {1}, "an action has two answers"
        actions = {event.id for event in state.events if isinstance(event, ActionEvent)}
        assert set(counts) | waiting | approved == actions, "an action has no answer"
        written = folder / "effects.txt"
        effects = Counter[str | None](written.read_text().split() if written.exists() else [])
        assert set(effects.values()) <= {1}, "a side effect came twice"
        completed = {answer.cause for answer in answers if isinstance(answer, ObservationEvent)}
        unknown = {a.cause for a in answers if isinstance(a, AgentErrorEvent) and a.outcome == "unknown"}
        assert completed <= set(effects) <= completed | unknown, "an effect without a trace"
        if waiting:
            assert (await conversation.run()).pending
            await conversation.reject("not after a crash")
        assert (await conversation.run("go on")).text == "went on"
        assert not state.open_actions


async def rounds(start: Start, tmp_path: Path, count: int, seed: int) -> None:
    chance = random.Random(seed)
    for number in range(count):
        folder = tmp_path / str(number)
        folder.mkdir()
        kind = "toolset" if number % 2 else "tool"
        await check(folder, await kill_one(start, folder, chance.randint(1, 150), kind))


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_nothing_that_was_acknowledged_is_lost_and_nothing_happens_twice(start: Start, tmp_path: Path) -> None:
    await rounds(start, tmp_path, 4, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_many_kills(start: Start, tmp_path: Path) -> None:
    # Two hundred in the session for long runs; fewer where it is bounded.
    count = 200 if settings.get_current_profile_name() == "faults" else 30
    seed = random.randrange(1_000_000)
    print(f"{count} kills, seed {seed}")
    await rounds(start, tmp_path, count, seed)
