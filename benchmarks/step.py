"""What one step costs besides the model: in memory, with a file store, and after thousands of steps.

A step is a request, a reply that calls one tool, and the tool's answer: four events in two writes. Its CPU is what all
threads of the process use between one request and the next.
"""

from __future__ import annotations

import gc
import json
import os
import statistics
import tempfile
import time
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

import anyio
from _agents import QuickModel, agent_of
from _report import Clock, Report, Settings, Spent, median, report
from anyio.to_thread import run_sync

from agentcore import Conversation, FileStore, Limits, MemoryStore, Message, Store

WARM = 20
"""Steps that are not counted: caches fill, schemas are built."""


def measure(settings: Settings) -> Report:
    """Measure all of it."""
    found = Report("What does a step cost besides the model: in memory, on disk, and after 5,000 steps?")
    anyio.run(measure_stores, settings, found)
    anyio.run(measure_history, settings, found)
    return found


async def measure_stores(settings: Settings, found: Report) -> None:
    """Compare a step on disk with one in memory, and with a loop that writes the same bytes and does nothing else.

    After each step on disk the loop writes what a step writes: as often, from a thread, synced. Taking turns so closely,
    both meet the disk in the same mood. The step in memory that the store's share is taken from waits for the loop as
    well: what runs after a wait finds the processor's caches cold.
    """
    steps = settings.pick(300, 4)
    memory: list[Spent] = []
    beside: list[Spent] = []
    synced: list[Spent] = []
    flushed: list[Spent] = []
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        bare = BareLoop(os.path.join(folder, "bare"), await written_by_a_step(f"{folder}/sample"))
        for number in range(settings.pick(4, 1)):
            memory += await take_steps(MemoryStore(), steps)
            beside += await take_steps(MemoryStore(), steps, between=bare.write)
            synced += await take_steps(FileStore(f"{folder}/{number}"), steps, between=bare.write)
            flushed += await take_steps(FileStore(f"{folder}/{number}", durability="flush"), steps)
        bare.close()
    found.hold("memory_step_cpu_ms", cpu(memory) * 1e3, 1.0)
    for name, clock in ("cpu", cpu), ("wall", wall):
        loop = clock(bare.rounds)
        found.hold(f"synced_step_to_bare_{name}_ratio", clock(synced) / loop, 1.5)
        found.hold(f"synced_store_share_to_bare_{name}_ratio", (clock(synced) - clock(beside)) / loop, 1.5)
        found.tell(f"synced_step_to_memory_step_and_bare_{name}_ratio", clock(synced) / (clock(beside) + loop))
        found.tell(f"synced_step_{name}_ms", clock(synced) * 1e3)
        found.tell(f"flushed_step_{name}_ms", clock(flushed) * 1e3)
        found.tell(f"memory_step_beside_bare_{name}_ms", clock(beside) * 1e3)
        found.tell(f"bare_{name}_ms", loop * 1e3)
    found.tell("memory_step_wall_ms", wall(memory) * 1e3)


def cpu(steps: Sequence[Spent]) -> float:
    """Give the CPU of the average step: what is done now and then (collecting garbage) is a part of each."""
    return statistics.fmean(step.cpu for step in steps)


def wall(steps: Sequence[Spent]) -> float:
    """Give the time of the middle step: a disk that others use too has outliers that say nothing."""
    return median([step.wall for step in steps])


async def take_steps(store: Store, steps: int, *, between: Callable[[], Awaitable[None]] | None = None) -> list[Spent]:
    """Give what each of so many steps costs, in a new conversation."""
    taken: list[Spent] = []
    clock = Clock()
    began = clock.read()

    async def note(_: Sequence[Message]) -> None:
        nonlocal began
        taken.append(began.until(clock.read()))
        if between is not None:
            await between()
        began = clock.read()

    await converse(QuickModel(WARM + steps, on_request=note), store)
    return taken[WARM + 1 :]


class BareLoop:
    """Writes the same to a file again and again, each time from a thread and with a sync."""

    def __init__(self, path: str, writes: Sequence[bytes]) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._writes = writes
        self._limiter = anyio.CapacityLimiter(8)
        self.rounds: list[Spent] = []

    async def write(self) -> None:
        """Go round once."""
        clock = Clock()
        for data in self._writes:
            await run_sync(self._write, data, abandon_on_cancel=True, limiter=self._limiter)
        self.rounds.append(clock.read())

    def _write(self, data: bytes) -> None:
        os.write(self._file, data)
        os.fdatasync(self._file)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


async def written_by_a_step(folder: str) -> list[bytes]:
    """Give what a step writes, in as many pieces."""
    await converse(QuickModel(10), FileStore(folder))
    return last_step(folder)


def last_step(folder: str) -> list[bytes]:
    """Find in the one log of a folder what its last step wrote: the action with its usage, and the answer."""
    (log,) = Path(folder).glob("*/events.jsonl")
    groups: dict[int, bytes] = {}
    for line in log.read_bytes().splitlines(keepends=True):
        event = json.loads(line)
        if event["kind"] == "action":
            groups = {}
        groups[event["group"]] = groups.get(event["group"], b"") + line
    return list(groups.values())[:2]


async def converse(model: QuickModel, store: Store) -> None:
    """Run a conversation to its end."""
    async with Conversation(agent_of(model), store=store, limits=Limits(steps=None)) as conversation:
        await conversation.run("Find where the price is rounded.")


async def measure_history(settings: Settings, found: Report) -> None:
    """Compare the steps around the 5,000th of one conversation with those around the 100th of another one.

    The two take turns, step by step. What the collector of garbage does comes now and then, for both: it is told apart.
    """
    early, late, width = settings.pick(100, 4), settings.pick(5000, 10), settings.pick(100, 2)
    collector = Collector()
    at_early: list[float] = []
    at_late: list[float] = []
    collected: list[float] = []
    for _ in range(settings.pick(3, 1)):
        turn = anyio.Lock()
        old, young = Turns(collector, turn, late, width), Turns(collector, turn, early, width)
        old.other, young.other = young, old
        before = collector.cpu
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(converse, QuickModel(old.last, on_request=old.take), MemoryStore())
            await old.ready.wait()
            collected.append((collector.cpu - before) / late)
            tasks.start_soon(converse, QuickModel(young.last, on_request=young.take), MemoryStore())
        at_early.append(statistics.fmean(young.steps))
        at_late.append(statistics.fmean(old.steps))
    collector.close()
    ratios = [one / other for one, other in zip(at_late, at_early, strict=True)]
    found.hold("step_5000_to_step_100_cpu_ratio", median(ratios), 1.2)
    found.tell("step_100_cpu_ms", median(at_early) * 1e3)
    found.tell("step_5000_cpu_ms", median(at_late) * 1e3)
    found.tell("collector_cpu_ms_per_step_up_to_5000", median(collected) * 1e3)
    for step in (early, late):
        found.tell(f"encoding_request_of_step_{step}_cpu_ms", (await encode_request_of(step)).cpu * 1e3)


class Collector:
    """Counts the CPU of Python's garbage collector."""

    def __init__(self) -> None:
        self.cpu = 0.0
        self._began = 0.0
        gc.callbacks.append(self._note)

    def _note(self, phase: str, _: dict[str, int]) -> None:
        if phase == "start":
            self._began = time.process_time()
        else:
            self.cpu += time.process_time() - self._began

    def close(self) -> None:
        """Stop counting."""
        gc.callbacks.remove(self._note)


class Turns:
    """One of two conversations that take the steps around a certain one in turn."""

    other: Turns

    def __init__(self, collector: Collector, turn: anyio.Lock, around: int, width: int) -> None:
        self.ready = anyio.Event()
        self.done = anyio.Event()
        self.steps: list[float] = []
        """The CPU of each step that was counted, without the collector's."""
        self.last = around + width // 2
        self._first = self.last - width
        self._collector = collector
        self._turn = turn
        self._asked = 0
        self._began = 0.0

    async def take(self, _: Sequence[Message]) -> None:
        """End a step, let the other take one, begin the next."""
        self._asked += 1
        if not self._first <= self._asked <= self.last:
            return
        if self._asked == self._first:
            self.ready.set()
            await self.other.ready.wait()
        else:
            self.steps.append(self._now() - self._began)
            self._turn.release()
        if self._asked < self.last:
            await self._turn.acquire()
            self._began = self._now()
        else:
            self.done.set()
            await self.other.done.wait()

    def _now(self) -> float:
        return time.process_time() - self._collector.cpu


async def encode_request_of(step: int) -> Spent:
    """Give what it costs to write all messages of a step's request as JSON, once."""
    requests: list[Sequence[Message]] = []

    async def note(messages: Sequence[Message]) -> None:
        requests[:] = [messages]

    await converse(QuickModel(step - 1, on_request=note), MemoryStore())
    clock = Clock()
    for message in requests[0]:
        message.model_dump_json()
    return clock.read()


if __name__ == "__main__":
    report(measure)
