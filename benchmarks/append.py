"""What keeping one event costs, against writing its bytes to a file and syncing it.

Alone, one append after the other; with 64 in flight in one conversation, where one write and one sync keep all that waits;
and with one in flight in each of 64 logs.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from functools import partial

import anyio
from _agents import ANSWER, QuickModel, agent_of
from _report import Clock, Report, Settings, Spent, median, report
from anyio.to_thread import run_sync

from agentcore import Conversation, FileStore, MessageEvent
from agentcore.messages import Message
from agentcore.record import FORMAT_VERSION, Durability, EventLog, Record, StoredLog

IN_FLIGHT = 64


def measure(settings: Settings) -> Report:
    """Measure all of it."""
    found = Report("What does it cost to keep an event, against a write and a sync of the same bytes?")
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        for durability in ("sync", "flush"):
            raw = RawFile(f"{folder}/raw-{durability}", durability)
            store = FileStore(f"{folder}/{durability}", durability=durability)
            anyio.run(measure_alone, settings, found, store, raw)
            anyio.run(measure_in_flight, settings, found, store, raw)
            raw.close()
    return found


class RawFile:
    """A file that is written to without anything around it."""

    def __init__(self, path: str, durability: Durability) -> None:
        self.durability = durability
        self._file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        self._limiter = anyio.CapacityLimiter(8)

    def write(self, data: bytes) -> None:
        """Write and, where that is asked for, sync."""
        os.write(self._file, data)
        if self.durability == "sync":
            os.fdatasync(self._file)

    async def write_here(self, data: bytes) -> None:
        """Write where the event loop runs, which then stands still: less than this it can't cost."""
        self.write(data)

    async def write_in_thread(self, data: bytes) -> None:
        """Write in a thread, so that the event loop goes on."""
        await run_sync(self.write, data, abandon_on_cancel=True, limiter=self._limiter)

    def close(self) -> None:
        """Close the file."""
        os.close(self._file)


def message_of(number: int) -> MessageEvent:
    """Make an event of about a kilobyte."""
    return MessageEvent(source="user", message=Message.user(ANSWER), seq=number)


def line_of(number: int) -> bytes:
    """Give bytes that are as long as its line in a log."""
    return message_of(number).model_dump_json().encode() + b',"group":0000,"crc":"00000000"'


async def measure_alone(settings: Settings, found: Report, store: FileStore, raw: RawFile) -> None:
    """Compare single appends, in turn: raw here, raw from a thread, a record to the store, an event to the log."""
    stored = await store.create("records", format_version=FORMAT_VERSION)
    log = await EventLog.create(store, "events")
    spent: dict[str, list[Spent]] = {}
    for number in range(1, settings.pick(600, 3) + 1):
        event = message_of(number)
        record = Record(number, number, event.model_dump_json().encode())
        ways: dict[str, Callable[[], Awaitable[object]]] = {
            "raw": partial(raw.write_here, line_of(number)),
            "raw_in_thread": partial(raw.write_in_thread, line_of(number)),
            "append": partial(stored.append, [record]),
            "event_append": partial(log.append, [[event]]),
        }
        for name, way in ways.items():
            clock = Clock()
            await way()
            spent.setdefault(name, []).append(clock.read())
    await stored.close()
    await log.close()
    wall = {name: median([each.wall for each in each_one]) for name, each_one in spent.items()}
    kind = raw.durability
    if kind == "sync":
        found.hold("sync_append_to_raw_ratio", wall["append"] / wall["raw"], 2.0)
    else:
        found.tell("flush_append_to_raw_ratio", wall["append"] / wall["raw"])
    found.tell(f"{kind}_append_to_raw_in_thread_ratio", wall["append"] / wall["raw_in_thread"])
    found.tell(f"{kind}_event_append_to_raw_ratio", wall["event_append"] / wall["raw"])
    for name, each_one in spent.items():
        found.tell(f"{kind}_{name}_wall_ms", wall[name] * 1e3)
        found.tell(f"{kind}_{name}_cpu_ms", median([each.cpu for each in each_one]) * 1e3)


async def measure_in_flight(settings: Settings, found: Report, store: FileStore, raw: RawFile) -> None:
    """Compare appends of which 64 are in flight with raw ones, one after the other, in turn."""
    repeats = settings.pick(10, 1)
    spent: dict[str, list[Spent]] = {}
    logs = [await store.create(f"log-{number}", format_version=FORMAT_VERSION) for number in range(IN_FLIGHT)]
    heads = [0] * IN_FLIGHT
    async with Conversation(agent_of(QuickModel(0)), store=store) as conversation:

        async def send() -> None:
            for _ in range(repeats):
                await conversation.send(ANSWER)

        async def append(log: StoredLog, place: int) -> None:
            for _ in range(repeats):
                heads[place] += 1
                body = message_of(heads[place]).model_dump_json().encode()
                await log.append([Record(heads[place], heads[place], body)])

        for _ in range(settings.pick(8, 1)):
            clock = Clock()
            for _ in range(IN_FLIGHT):
                raw.write(line_of(1))
            spent.setdefault("raw", []).append(Spent(0, 0).until(clock.read(), parts=IN_FLIGHT))
            spent.setdefault("one_log", []).append(await at_once([send] * IN_FLIGHT, repeats))
            writers = [partial(append, log, place) for place, log in enumerate(logs)]
            spent.setdefault("64_logs", []).append(await at_once(writers, repeats))
    for log in logs:
        await log.close()
    ratios = {
        name: median([one.wall / other.wall for one, other in zip(spent[name], spent["raw"], strict=True)])
        for name in ("one_log", "64_logs")
    }
    kind = raw.durability
    if kind == "sync":
        found.hold("sync_64_in_flight_append_to_raw_ratio", ratios["one_log"], 1.2)
    else:
        found.tell("flush_64_in_flight_append_to_raw_ratio", ratios["one_log"])
    found.tell(f"{kind}_64_logs_append_to_raw_ratio", ratios["64_logs"])
    found.tell(f"{kind}_64_in_flight_append_wall_ms", median([each.wall for each in spent["one_log"]]) * 1e3)
    found.tell(f"{kind}_64_in_flight_append_cpu_ms", median([each.cpu for each in spent["one_log"]]) * 1e3)


async def at_once(writers: Sequence[Callable[[], Coroutine[None, None, None]]], repeats: int) -> Spent:
    """Run them all at once; give what one of their appends costs."""
    clock = Clock()
    async with anyio.create_task_group() as tasks:
        for write in writers:
            tasks.start_soon(write)
    return Spent(0, 0).until(clock.read(), parts=len(writers) * repeats)


if __name__ == "__main__":
    report(measure)
