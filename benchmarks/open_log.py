"""What opening a log costs, against only parsing its events: there is no snapshot, all of it is read and folded."""

from __future__ import annotations

import gc
import tempfile
from pathlib import Path

import anyio
from _logs import write_log
from _report import Clock, Report, Settings, Spent, median, report

from agentcore import FileStore
from agentcore.events import parse_event
from agentcore.record import EventLog


def measure(settings: Settings) -> Report:
    """Measure logs of three sizes."""
    found = Report("What does opening a log cost, against only parsing its lines, and does it grow in proportion?")
    with tempfile.TemporaryDirectory(dir=settings.folder) as folder:
        anyio.run(measure_sizes, settings, found, FileStore(folder, durability="flush"), folder)
    return found


async def measure_sizes(settings: Settings, found: Report, store: FileStore, folder: str) -> None:
    """Open and parse each log in turn."""
    per_event: dict[int, float] = {}
    sizes = {358: 1} if settings.tiny else {358: 30, 10_000: 9, 100_000: 3}
    for events, rounds in sizes.items():
        await write_log(store, f"log-{events}", events)
        file = Path(folder, f"log-{events}", "events.jsonl")
        opened: list[Spent] = []
        parsed: list[Spent] = []
        await open_log(store, f"log-{events}", events)
        for _ in range(rounds):
            opened.append(await open_log(store, f"log-{events}", events))
            parsed.append(parse(file))
        ratios = [one.cpu / other.cpu for one, other in zip(opened, parsed, strict=True)]
        per_event[events] = median([each.cpu for each in opened]) / events
        found.hold(f"open_{events}_to_parse_cpu_ratio", median(ratios), 1.5)
        found.tell(f"open_{events}_wall_ms", median([each.wall for each in opened]) * 1e3)
        found.tell(f"open_{events}_cpu_ms", median([each.cpu for each in opened]) * 1e3)
        found.tell(f"parse_{events}_cpu_ms", median([each.cpu for each in parsed]) * 1e3)
        found.tell(f"log_of_{events}_megabytes", size_of(file) / 1e6)
    for events in list(sizes)[1:]:
        found.tell(f"open_{events}_per_event_to_358_ratio", per_event[events] / per_event[358])


async def open_log(store: FileStore, conversation_id: str, events: int) -> Spent:
    """Open the log as a conversation does that goes on with it."""
    gc.collect()
    clock = Clock()
    log = await EventLog.open(store, conversation_id)
    spent = clock.read()
    assert log.state.head == events
    await log.close()
    return spent


def size_of(path: Path) -> int:
    """Give the bytes of a file."""
    return path.stat().st_size


def parse(path: Path) -> Spent:
    """Read each line of the file as the event that it holds, and do nothing with it but keep it."""
    gc.collect()
    clock = Clock()
    with path.open("rb") as file:
        events = [parse_event(line) for line in file]
    spent = clock.read()
    del events
    return spent


if __name__ == "__main__":
    report(measure)
