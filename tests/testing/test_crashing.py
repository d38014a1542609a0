"""Losing the power at every disk operation."""

from __future__ import annotations

from pathlib import Path
from random import Random

import anyio
import pytest

from agentcore import Message
from agentcore.errors import ConversationNotFound, StoreError
from agentcore.events import MessageEvent
from agentcore.record import EventLog, FileStore, read_log
from agentcore.testing import CrashAttempt, crash_at, crash_everywhere


async def write_two(store: FileStore, acknowledged: list[int]) -> None:
    log = await EventLog.create(store, "a")
    try:
        for _ in range(2):
            ((event,),) = await log.append([[MessageEvent(message=Message.user("x"))]])
            acknowledged.append(event.seq)
    finally:
        with anyio.move_on_after(5, shield=True):
            await log.close()


async def _work(store: FileStore) -> None:
    await write_two(store, [])


async def head_of(store: FileStore) -> int:
    try:
        return (await read_log(store, "a")).head
    except ConversationNotFound:
        return 0


async def test_the_power_is_lost_once_at_every_operation_and_once_at_the_end(tmp_path: Path) -> None:
    assert repr(CrashAttempt(3, str(tmp_path), "least", "sync")) == "CrashAttempt(n=3, found=None)"
    heads: list[tuple[int, int]] = []
    attempts: list[int] = []
    for attempt in crash_everywhere(tmp_path):
        acknowledged: list[int] = []
        found = await attempt(write_two, acknowledged)
        assert found is attempt.found
        assert found.happened == (found.error is not None)
        assert not found.happened or (found.operations == attempt.n and isinstance(found.error, StoreError))
        heads.append((len(acknowledged), await head_of(found.store)))
        attempts.append(found.operations)
    assert sorted(heads) == heads, "the later, the more is there"
    assert all(acknowledged == head for acknowledged, head in heads)
    assert heads[-1] == (2, 2)
    assert attempts[:-1] == list(range(1, len(heads)))


async def test_what_was_written_and_not_synced_may_be_there_or_not(tmp_path: Path) -> None:
    last_sync = (await crash_at(1_000, _work, tmp_path)).operations
    seen: set[int] = set()
    for seed in range(12):
        acknowledged: list[int] = []

        async def work(store: FileStore, acknowledged: list[int] = acknowledged) -> None:
            await write_two(store, acknowledged)

        found = await crash_at(last_sync, work, tmp_path / str(seed), kept=Random(seed))
        head = await head_of(found.store)
        assert head >= len(acknowledged)
        seen.add(head)
    assert len(seen) > 1


async def test_with_flush_nothing_is_promised_and_all_may_be_gone(tmp_path: Path) -> None:
    acknowledged: list[int] = []

    async def work(store: FileStore) -> None:
        await write_two(store, acknowledged)

    found = await crash_at(1_000, work, tmp_path, durability="flush")
    assert (found.happened, found.error, acknowledged) == (False, None, [1, 2])
    assert await head_of(found.store) == 0


async def test_an_error_before_the_power_is_lost_is_the_functions_own(tmp_path: Path) -> None:
    async def fails(store: FileStore) -> None:
        await store.list()
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        await crash_at(1, fails, tmp_path)


async def test_a_loop_that_makes_no_attempt_and_what_never_ends_are_errors(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match="Attempt 1 was not made"):
        for _ in crash_everywhere(tmp_path):
            pass
    with pytest.raises(RuntimeError, match="not done at operation 3"):
        for attempt in crash_everywhere(tmp_path, most=3):
            await attempt(write_two, [])
