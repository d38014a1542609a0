"""A log on disk that was cut off somewhere: what is left is read, reported, and continued."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from agentcore.errors import StoreError
from agentcore.events import ActionEvent, ActionStarted, Event, ObservationEvent, PauseEvent
from agentcore.messages import TextBlock
from agentcore.record import EventLog, FileStore, read_log
from logged import LARGE, said


def some_groups() -> list[list[Event]]:
    action = ActionEvent(reply_id="r1", tool_name="read", call_id="c1", arguments={"path": "ż.txt"})
    answer = ObservationEvent(cause=action.id, tool_name="read", call_id="c1", content=(TextBlock(text=LARGE),))
    return [
        [said("Begin.")],
        [action, ActionStarted(cause=action.id)],
        [answer],
        [PauseEvent(), said("one"), said("two")],
    ]


async def write_log(store: FileStore) -> tuple[bytes, list[Event]]:
    log = await EventLog.create(store, "whole")
    kept = await log.append(some_groups())
    await log.close()
    data = await anyio.Path(store.folder("whole"), "events.jsonl").read_bytes()
    return data, list(itertools.chain.from_iterable(kept))


async def check_cut(store: FileStore, data: bytes, events: list[Event], length: int) -> None:
    lines = data.count(b"\n", 0, length)
    kept = max(end for end in (0, 1, 3, 4, 7) if end <= lines)
    boundary = len(b"".join(data.splitlines(keepends=True)[:kept])) == length
    log = await EventLog.open(store, "whole")
    assert log.state.events == events[:kept]
    assert (log.repaired is None) == (boundary and kept > 0)  # one that holds nothing is never called whole
    (appended,) = await log.append([[said("Go on."), said("And on.")]])
    assert [event.seq for event in appended] == [kept + 1, kept + 2]
    await log.close()
    again = await read_log(store, "whole")
    assert again.events == [*events[:kept], *appended]
    assert again.snapshot() == log.state.snapshot()


def every_byte(data: bytes) -> set[int]:
    return {*range(len(data))}


def a_sample(data: bytes) -> set[int]:
    """Return every place around each line's end, and each seventh elsewhere."""
    ends = {end for end, byte in enumerate(data) if byte == ord("\n")}
    near = {end + off for end in ends for off in range(-12, 14)}
    return {*range(0, len(data), 7), *near} & every_byte(data)


@pytest.mark.parametrize("places", [a_sample, pytest.param(every_byte, marks=pytest.mark.slow)])
def test_cut_at_these_places_a_log_is_read_as_far_as_it_is_whole_and_goes_on(
    tmp_path: Path, places: Callable[[bytes], set[int]]
) -> None:
    async def everywhere() -> None:
        store = FileStore(tmp_path, durability="flush")
        data, events = await write_log(store)
        data = b"".join(data.splitlines(keepends=True)[:4])  # a group of one line, one of two, one with a blob
        path = os.path.join(store.folder("whole"), "events.jsonl")
        for length in sorted(places(data)):
            Path(path).write_bytes(data[:length])
            await check_cut(store, data, events, length)

    # Once: it is about bytes, not about event loops.
    anyio.run(everywhere)


async def test_what_was_cut_is_told_in_words(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    data, _ = await write_log(store)
    path = anyio.Path(store.folder("whole"), "events.jsonl")
    lines = data.splitlines(keepends=True)
    for left, told in [
        (data[:-5], "2 events of an unfinished group, and an unfinished line of"),
        (b"".join(lines[:5]), "1 event of an unfinished group"),
        (b"".join(lines[:4]) + b"{", "an unfinished line of 1 bytes"),
        (b"".join(lines[:3]) + lines[3][:-9] + b"xxxxxxx\n", "an unsound line at the end (the line does not end"),
    ]:
        await path.write_bytes(left)
        log = await EventLog.open(store, "whole")
        assert log.repaired is not None
        assert log.repaired.startswith(told)
        await log.close()
        again = await EventLog.open(store, "whole")
        assert again.repaired is None
        await again.close()


async def test_an_unsound_last_line_may_have_been_acknowledged_so_it_is_kept_beside(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    data, events = await write_log(store)
    folder = anyio.Path(store.folder("whole"))
    flipped = data[:-40] + bytes([data[-40] ^ 1]) + data[-39:]
    last_group = b"".join(flipped.splitlines(keepends=True)[4:])
    for number in (1, 2):
        await (folder / "events.jsonl").write_bytes(flipped)
        log = await EventLog.open(store, "whole")
        copy = folder / f"events.jsonl.cut-{number}"
        assert log.repaired is not None
        assert str(copy) in log.repaired
        assert await copy.read_bytes() == last_group
        assert log.state.events == events[:4]
        await log.close()


async def test_readers_leave_an_unfinished_end_alone(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    data, events = await write_log(store)
    path = anyio.Path(store.folder("whole"), "events.jsonl")
    await path.write_bytes(data[:-5])
    assert (await read_log(store, "whole")).events == events[:4]
    rest = len(data.splitlines(keepends=True)[-1]) - 5
    unfinished = f"2 events of an unfinished group, and an unfinished line of {rest} bytes"
    assert await store.verify("whole") == (4, unfinished)
    assert await path.read_bytes() == data[:-5]


async def test_a_log_whose_events_are_gone_is_an_error(tmp_path: Path) -> None:
    store = FileStore(tmp_path)
    await write_log(store)
    await anyio.Path(store.folder("whole"), "events.jsonl").unlink()
    for read in (EventLog.open(store, "whole"), read_log(store, "whole")):
        with pytest.raises(StoreError, match=r"events\.jsonl' is missing"):
            await read
