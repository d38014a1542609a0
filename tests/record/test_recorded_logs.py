"""Logs that released versions wrote are read for good, and always the same. `logs/write.py` made them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any, cast

import pytest

from agentcore.events import KNOWN_KINDS, Event, UnknownEvent
from agentcore.record import ConversationState, EventLog, FileStore, read_log

LOGS = Path(__file__).parent / "logs"
RECORDED = sorted(path.parent for path in LOGS.glob("v*/*/meta.json"))


def expected_of(log: Path) -> dict[str, Any]:
    """What the version that wrote the log said of it; large strings are written by their beginning."""
    expected: dict[str, Any] = json.loads((log.parent / "expected.json").read_text(encoding="utf-8"))
    return expected


def same(said: Any, now: Any) -> bool:
    """Say whether all that was said is so now; there may be more, as fields that are newer have their defaults."""
    if isinstance(said, dict):
        members = cast("dict[str, Any]", said)
        return isinstance(now, dict) and all(name in now and same(value, now[name]) for name, value in members.items())
    if isinstance(said, list):
        items = cast("list[Any]", said)
        return len(items) == len(now) and all(map(same, items, now))
    return said == now or (said == "<LARGE>" and str(now).startswith("A long output. " * 4000))


def whole(state: ConversationState) -> dict[str, Any]:
    return {
        "events": [json.loads(event.model_dump_json()) for event in state.events],
        "settled": [seq for seq in range(state.head + 1) if state.is_settled(seq)],
        "shown": [event.seq for event in state.shown],
        "open": sorted(state.open_actions),
        "workspace": None if state.workspace is None else state.workspace.spec,
        "status": str(state.status),
        "status_code": state.status_code,
        "usage": json.loads(state.usage.model_dump_json()),
        "limits": json.loads(state.limits.model_dump_json()),
        "policy": state.policy,
        "secret_names": list(state.secret_names),
        "title": state.title,
        "tags": dict(state.tags),
        "run_steps": state.run.steps,
        "worked_seconds": state.worked_seconds,
    }


def test_there_is_a_log_of_every_format() -> None:
    assert {log.parent.name for log in RECORDED} == {"v1"}


@pytest.mark.parametrize("log", RECORDED, ids=lambda log: f"{log.parent.name}/{log.name}")
async def test_a_recorded_log_reads_as_it_did_when_it_was_written(log: Path) -> None:
    state = await read_log(FileStore(log.parent), log.name)
    said = expected_of(log)
    now = whole(state)
    for name, value in said.items():
        assert same(value, now[name]), name
    assert await FileStore(log.parent).verify(log.name) == (state.head, None)


@pytest.mark.parametrize("log", RECORDED, ids=lambda log: f"{log.parent.name}/{log.name}")
async def test_a_recorded_log_goes_into_a_new_one_unchanged(log: Path, tmp_path: Path) -> None:
    before = await read_log(FileStore(log.parent), log.name)
    copy = await EventLog.create(FileStore(tmp_path), "copy")
    groups: list[list[Event]] = [[event] for event in before.events]
    await copy.append(groups)
    await copy.close()
    assert (await read_log(FileStore(tmp_path), "copy")).events == before.events


async def test_a_log_of_this_format_goes_on(tmp_path: Path) -> None:
    shutil.copytree(LOGS / "v1" / "every-kind", tmp_path / "every-kind")
    log = await EventLog.open(FileStore(tmp_path), "every-kind")
    head = log.state.head
    await log.append([[log.state.events[0]]])
    await log.close()
    assert (await read_log(FileStore(tmp_path), "every-kind")).head == head + 1


async def test_every_kind_of_event_is_in_a_recorded_log() -> None:
    """A new kind comes with a recorded log of its own, beside those that are there."""
    kinds: set[str] = set()
    for log in RECORDED:
        state = await read_log(FileStore(log.parent), log.name)
        kinds |= {event.kind for event in state.events if not isinstance(event, UnknownEvent)}
    assert kinds == KNOWN_KINDS
