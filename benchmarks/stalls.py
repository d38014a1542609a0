"""How long the event loop stands still under each command of a conversation with a long history."""

from __future__ import annotations

import gc
import tempfile
import time
from collections.abc import Awaitable, Callable

import anyio
from _agents import QuickModel, agent_of
from _logs import write_log
from _report import Report, Settings, median, report
from anyio.lowlevel import checkpoint

from agentcore import AlwaysConfirm, Conversation, FileStore, Limits, NeverConfirm

BAR_MS = 20.0


def measure(settings: Settings) -> Report:
    """Measure all of it."""
    found = Report("How long does the loop stand still under each command, with 10,000 events in the log?")
    anyio.run(measure_commands, settings, found)
    return found


async def measure_commands(settings: Settings, found: Report) -> None:
    """Give each command some tries; the middle one of the longest stalls counts, the collector of garbage aside."""
    tries = settings.pick(7, 1)
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        store = FileStore(folder)
        await write_log(store, "long", settings.pick(10_000, 50))
        async with Conversation(agent_of(QuickModel(0)), store=store, id="long") as conversation:
            await conversation.run("Warm up.")
            settled = [seq for seq in range(conversation.state.head) if conversation.state.is_settled(seq)]
            number = 0

            async def rewind() -> None:
                nonlocal number
                number += 1
                await conversation.rewind(to=settled[-number])

            async def fork() -> None:
                await conversation.fork()

            async def approve_nothing() -> None:
                try:
                    await conversation.approve()
                except Exception:
                    await checkpoint()

            commands: dict[str, Callable[[], Awaitable[object]]] = {
                "nothing": checkpoint,
                "send": lambda: conversation.send("And then?"),
                "pause": conversation.pause,
                "interrupt": conversation.interrupt,
                "approve": approve_nothing,
                "set_limits": lambda: conversation.set_limits(Limits(steps=number + 5)),
                "set_policy": lambda: conversation.set_policy(AlwaysConfirm() if number % 2 else NeverConfirm()),
                "set_title": lambda: conversation.set_title("Prices"),
                "set_tags": lambda: conversation.set_tags({"n": str(number)}),
                "add_secrets": lambda: conversation.add_secrets({f"TOKEN_{number}": f"a value of {number} letters"}),
                "ask": lambda: conversation.ask("Where were we?"),
                "fork": fork,
                "rewind": rewind,
            }
            for name, command in commands.items():
                stalls: list[float] = []
                for _ in range(tries):
                    number += name != "rewind"
                    stalls.append(await longest_stall(command))
                found.hold(f"stall_under_{name}_ms", median(stalls) * 1e3, BAR_MS)


async def longest_stall(command: Callable[[], Awaitable[object]]) -> float:
    """Give the longest time between two turns of the loop while the command is carried out, in seconds."""
    gc.collect()
    gc.disable()
    longest = 0.0
    try:
        async with anyio.create_task_group() as tasks:

            async def tick() -> None:
                nonlocal longest
                before = time.perf_counter()
                while True:
                    await checkpoint()
                    now = time.perf_counter()
                    longest = max(longest, now - before)
                    before = now

            tasks.start_soon(tick)
            await checkpoint()
            await command()
            await checkpoint()
            tasks.cancel_scope.cancel()
    finally:
        gc.enable()
    return longest


if __name__ == "__main__":
    report(measure)
