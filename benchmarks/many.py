"""Many conversations at once in one process, on a model that takes 50 ms to answer.

Each number of conversations is measured in a process of its own, and memory apart from time: counting allocations costs
time, and memory that was used before is not given back.
"""

from __future__ import annotations

import gc
import json
import os
import subprocess
import sys
import tempfile
import threading
import tracemalloc
from collections.abc import Callable, Sequence

import anyio
import psutil
from _agents import QuickModel, agent_of
from _report import Clock, Report, Settings, report

from agentcore import Conversation, FileStore, Host, MemoryStore, Message, Store

LATENCY = 0.05
STEPS = 10
TASK = "Find where the price is rounded."


def measure(settings: Settings) -> Report:
    """Measure each number of conversations."""
    found = Report("What do 1, 10, 100 and 1,000 conversations at once take: time, CPU, threads, memory?")
    for store in ("memory", "files"):
        for number in (1, 10, 100, 1000) if not settings.tiny else (2,):
            run = elsewhere("time", store, number, settings)
            name = f"{number}_in_{store}"
            found.tell(f"{name}_wall_s", run["wall"])
            found.tell(f"{name}_wall_to_waiting_ratio", run["wall"] / (LATENCY * (STEPS + 1)))
            found.tell(f"{name}_cpu_ms_per_step", run["cpu"] / number / (STEPS + 1) * 1e3)
            found.tell(f"{name}_threads", int(run["threads"]))
        for weigh in WEIGHED:
            weighed = elsewhere(weigh, store, settings.pick(1000, 2), settings)
            found.tell(f"idle_in_{store}_{weigh}_kb", weighed["idle"] / 1e3)
            found.tell(f"live_in_{store}_{weigh}_kb", weighed["live"] / 1e3)
    return found


def elsewhere(what: str, store: str, number: int, settings: Settings) -> dict[str, float]:
    """Measure in a fresh process."""
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        command = [sys.executable, os.path.abspath(__file__), "--here", what, store, str(number), folder]
        ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(ended.stdout)


async def here(what: str, store_name: str, number: int, folder: str) -> dict[str, float]:
    """Measure in this process, which was made for it."""
    store = MemoryStore() if store_name == "memory" else FileStore(folder)
    async with Conversation(agent_of(QuickModel(1))) as conversation:
        await conversation.run("Warm up: schemas are built once.")
    return await time_them(store, number) if what == "time" else await weigh_them(store, number, WEIGHED[what])


async def time_them(store: Store, number: int) -> dict[str, float]:
    """Open so many conversations, run all of them at once, and close them."""
    threads = 0

    async def look(_: Sequence[Message]) -> None:
        nonlocal threads
        threads = max(threads, threading.active_count())

    agents = [agent_of(QuickModel(STEPS, latency=LATENCY, on_request=look)) for _ in range(number)]
    clock = Clock()
    async with Host() as host:
        conversations = [await host.open(agent, store=store) for agent in agents]
        async with anyio.create_task_group() as tasks:
            for conversation in conversations:
                tasks.start_soon(conversation.run, TASK)
    spent = clock.read()
    assert all(conversation.state.status == "finished" for conversation in conversations)
    return {"wall": spent.wall, "cpu": spent.cpu, "threads": threads}


async def weigh_them(store: Store, number: int, weigh: Callable[[], float]) -> dict[str, float]:
    """Give the memory of a conversation that was opened, and of one that waits for its model after half of its steps."""
    gate = Gate(number)
    live = 0.0
    agents = [agent_of(gate.model()) for _ in range(number)]
    async with Host() as host:
        before = weigh()
        conversations = [await host.open(agent, store=store) for agent in agents]
        idle = (weigh() - before) / number
        async with anyio.create_task_group() as tasks:
            for conversation in conversations:
                tasks.start_soon(conversation.run, TASK)
            await gate.full.wait()
            live = (weigh() - before) / number
            gate.open.set()
    return {"idle": idle, "live": live}


class Gate:
    """Holds conversations at a request until all of them are there."""

    def __init__(self, number: int) -> None:
        self.full = anyio.Event()
        self.open = anyio.Event()
        self._missing = number

    def model(self) -> QuickModel:
        """Make a model that stops at the gate."""
        asked = 0

        async def stop(_: Sequence[Message]) -> None:
            nonlocal asked
            asked += 1
            if asked == STEPS // 2 + 1:
                self._missing -= 1
                if not self._missing:
                    self.full.set()
                await self.open.wait()

        return QuickModel(STEPS, on_request=stop)


def resident() -> float:
    """Give the bytes of this process that are in memory."""
    gc.collect()
    return psutil.Process().memory_info().rss


def allocated() -> float:
    """Give the bytes that Python has allocated since it was first asked."""
    gc.collect()
    if not tracemalloc.is_tracing():
        tracemalloc.start()
    return tracemalloc.get_traced_memory()[0]


WEIGHED = {"rss": resident, "tracemalloc": allocated}

if __name__ == "__main__":
    if sys.argv[1:2] == ["--here"]:
        print(json.dumps(anyio.run(here, sys.argv[2], sys.argv[3], int(sys.argv[4]), sys.argv[5])))
    else:
        report(measure)
