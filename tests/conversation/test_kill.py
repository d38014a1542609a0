"""kill -9 in the middle of everything: what was acknowledged is there, and nothing happens twice."""

from __future__ import annotations

import random
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import settings

from agentcore import (
    ActionEvent,
    Agent,
    AgentErrorEvent,
    AlwaysConfirm,
    Conversation,
    FileStore,
    ObservationEvent,
    UserRejectObservation,
)
from agentcore.record import read_log
from agentcore.testing import ScriptedLLM, say
from agentcore.tools import tool
from programs import start_python

PROGRAM = Path(__file__).with_name("killed_agent.py")


@tool(name="effect")
async def never_again(n: int) -> str:
    """Have an effect: it must not be asked for after the kill."""
    raise AssertionError("an action was run again by opening its conversation")


Seen = dict[int, str]
"""The ids of a conversation's events that were seen, by number."""


async def kill_one(env: dict[str, str], folders: list[Path], lines: int) -> list[Seen]:
    """Run the program, kill it after it printed so many lines, and return what it had printed of each conversation."""
    seen: list[Seen] = [{} for _ in folders]
    waiting: set[str] = set()

    def note(line: str) -> None:
        number, seq, *event_id = line.split()
        if event_id:
            seen[int(number)][int(seq)] = event_id[0]
        else:
            waiting.add(number)

    async with start_python(PROGRAM, *folders, env=env, cwd=folders[0]) as program:
        for _ in range(lines):
            note(await program.line())
            if len(waiting) == len(folders):
                break
        for line in await program.kill():
            note(line)
    return seen


async def check(folder: Path, seen: Seen) -> None:
    store = FileStore(folder / "logs")
    before = await read_log(store, "victim")
    for seq, event_id in seen.items():
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


async def rounds(env: dict[str, str], tmp_path: Path, count: int, seed: int) -> None:
    """Kill four conversations that share a process, again and again."""
    chance = random.Random(seed)
    for number in range(count):
        folders = [tmp_path / f"{number}-{each}" for each in range(4)]
        for folder in folders:
            folder.mkdir()
        for folder, seen in zip(folders, await kill_one(env, folders, chance.randint(1, 600)), strict=True):
            if seen or (folder / "logs" / "victim").exists():
                await check(folder, seen)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_nothing_that_was_acknowledged_is_lost_and_nothing_happens_twice(
    surroundings: dict[str, str], tmp_path: Path
) -> None:
    await rounds(surroundings, tmp_path, 2, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_many_kills(surroundings: dict[str, str], tmp_path: Path) -> None:
    # Two hundred in the session for long runs; fewer where it is bounded.
    count = 50 if settings.get_current_profile_name() == "faults" else 8
    seed = random.randrange(1_000_000)
    print(f"{4 * count} kills, seed {seed}")
    await rounds(surroundings, tmp_path, count, seed)
