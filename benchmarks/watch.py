"""How fast events reach those who watch in the process: from the start of a log, and live, as each group is kept."""

from __future__ import annotations

import anyio
from _agents import QuickModel, agent_of
from _logs import write_log
from _report import Clock, Report, Settings, Spent, median, report

from agentcore import Conversation, MemoryStore


def measure(settings: Settings) -> Report:
    """Measure both ways for 0, 1, 10 and 100 watchers."""
    found = Report("How many events per second reach 1, 10 and 100 watchers in the process?")
    anyio.run(measure_replay, settings, found)
    anyio.run(measure_live, settings, found)
    return found


async def measure_replay(settings: Settings, found: Report) -> None:
    """Let watchers read a log from its start, all at once."""
    events = settings.pick(10_000, 100)
    store = MemoryStore()
    await write_log(store, "log", events)
    async with Conversation(agent_of(QuickModel(0)), id="log", store=store) as conversation:
        head = conversation.state.head

        async def read_all() -> None:
            async for event in conversation.events():
                if event.seq == head:
                    return

        for watchers in (1, 10, 100):
            clock = Clock()
            async with anyio.create_task_group() as tasks:
                for _ in range(watchers):
                    tasks.start_soon(read_all)
            spent = clock.read()
            found.tell(f"replay_to_{watchers}_events_per_second", head * watchers / spent.wall)
            found.tell(f"replay_to_{watchers}_cpu_us_per_event", spent.cpu / head / watchers * 1e6)


async def measure_live(settings: Settings, found: Report) -> None:
    """Let watchers follow messages that are sent one after the other; what nobody watching costs is the comparison."""
    messages = settings.pick(1000, 10)
    alone = 0.0
    for watchers in (0, 1, 10, 100):
        rounds = [await send_watched(messages, watchers) for _ in range(settings.pick(5, 1))]
        cpu, wall = median([each.cpu for each in rounds]), median([each.wall for each in rounds])
        if watchers:
            found.tell(f"live_to_{watchers}_events_per_second", messages * watchers / wall)
            found.tell(f"live_to_{watchers}_added_cpu_us_per_event", (cpu - alone) / messages / watchers * 1e6)
        else:
            alone = cpu
            found.tell("unwatched_message_cpu_us", alone / messages * 1e6)


async def send_watched(messages: int, watchers: int) -> Spent:
    """Send so many messages to so many watchers, and wait until each of them has seen the last one."""
    clock = Clock()
    began = clock.read()
    async with Conversation(agent_of(QuickModel(0))) as conversation:
        last = conversation.state.head + messages

        async def follow() -> None:
            async for event in conversation.events(after=conversation.state.head):
                if event.seq == last:
                    return

        async with anyio.create_task_group() as tasks:
            for _ in range(watchers):
                tasks.start_soon(follow)
            await anyio.wait_all_tasks_blocked()
            began = clock.read()
            for number in range(messages):
                await conversation.send(f"Message {number}")
        return began.until(clock.read())


if __name__ == "__main__":
    report(measure)
