"""The contract of stores finds what it is there to find."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from agentcore.errors import StoreError
from agentcore.record import LogInfo, MemoryStore, Record, StoredLog
from agentcore.testing import StoreContract


class WrongLog:
    """A log that passes everything on, but for what a test replaces."""

    def __init__(self, log: StoredLog, **wrong: Callable[..., Any]) -> None:
        self._log = log
        self._wrong = wrong

    def __getattr__(self, name: str) -> Any:
        if name in self._wrong:
            return partial(self._wrong[name], self._log)
        return getattr(self._log, name)


class WrongStore(MemoryStore):
    """A store whose logs do something wrong."""

    def __init__(self, **wrong: Callable[..., Any]) -> None:
        super().__init__()
        self._wrong = wrong

    async def create(self, conversation_id: str, *, format_version: int) -> Any:
        return WrongLog(await super().create(conversation_id, format_version=format_version), **self._wrong)

    async def open(self, conversation_id: str, *, write: bool = True) -> Any:
        return WrongLog(await super().open(conversation_id, write=write), **self._wrong)


async def loses_the_last(log: StoredLog, records: Sequence[Record]) -> None:
    await log.append(records[:-1] if len(records) > 100 else records)


async def appends_one_by_one(log: StoredLog, records: Sequence[Record]) -> None:
    for record in records:
        await log.append([Record(record.seq, record.seq, record.body)])


async def takes_what_does_not_follow(log: StoredLog, records: Sequence[Record]) -> None:
    try:
        await log.append(records)
    except (StoreError, ValueError):
        return


async def waits_after_it_is_kept(log: StoredLog, records: Sequence[Record]) -> None:
    await log.append(records[:1])
    await anyio.lowlevel.checkpoint()
    await log.append(records[1:])


async def forgets_to_close(log: StoredLog) -> None:
    await anyio.lowlevel.checkpoint()


async def closes_when_it_is_its_turn(log: StoredLog) -> None:
    await anyio.lowlevel.checkpoint()
    await log.close()


async def strips(log: StoredLog, after: int = 0) -> Sequence[Record]:
    return [
        Record(seq, group, body.decode("utf-8", "replace").strip().encode()[:1000])
        for seq, group, body in await log.read(after)
    ]


async def reads_all(log: StoredLog, after: int = 0) -> Sequence[Record]:
    return await log.read()


async def gives_any_digest(log: StoredLog, data: bytes) -> str:
    return (await log.write_blob(data))[::-1]


async def gives_nothing_for_a_blob(log: StoredLog, digest: str) -> bytes:
    try:
        return await log.read_blob(digest)
    except StoreError:
        return b""


class Unsorted(MemoryStore):
    async def list(self, *, after: str | None = None, limit: int | None = None) -> Sequence[LogInfo]:
        return list(reversed(await super().list(after=after, limit=limit)))


class PagesByNumber(MemoryStore):
    """Its pages move when a log is made."""

    def __init__(self) -> None:
        super().__init__()
        self._told = 0

    async def list(self, *, after: str | None = None, limit: int | None = None) -> Sequence[LogInfo]:
        first = self._told if after is not None else 0
        page = (await super().list())[first:][:limit]
        self._told = first + len(page)
        return page


class LocksToLook(MemoryStore):
    async def holder(self, conversation_id: str) -> str | None:
        holder = await super().holder(conversation_id)
        if holder is None:
            log = await self.open(conversation_id)
            await anyio.lowlevel.checkpoint()
            await log.close()
        return holder


class KnowsNoHolder(MemoryStore):
    async def holder(self, conversation_id: str) -> str | None:
        await super().holder(conversation_id)
        return None


class FollowsFromTheEnd(MemoryStore):
    async def tail(self, conversation_id: str) -> Any:
        tail = await super().tail(conversation_id)
        await tail.read()
        return tail


class CountsReaders(MemoryStore):
    async def open(self, conversation_id: str, *, write: bool = True) -> Any:
        log = await super().open(conversation_id, write=write)
        log.epoch += 0 if write else 1
        return log


class CountsNothing(MemoryStore):
    async def open(self, conversation_id: str, *, write: bool = True) -> Any:
        log = await super().open(conversation_id, write=write)
        log.epoch = 1
        return log


class Lockless(MemoryStore):
    async def open(self, conversation_id: str, *, write: bool = True) -> Any:
        self._shelves[conversation_id].held = False  # pyright: ignore[reportPrivateUsage]
        return await super().open(conversation_id, write=write)


class Careless(MemoryStore):
    async def create(self, conversation_id: str, *, format_version: int) -> Any:
        log = await super().create(conversation_id, format_version=format_version)
        await anyio.lowlevel.checkpoint()
        return log


class Reusing(MemoryStore):
    async def delete(self, conversation_id: str) -> None:
        shelf = self._shelves[conversation_id]  # pyright: ignore[reportPrivateUsage]
        await super().delete(conversation_id)
        await (await super().create(conversation_id, format_version=1)).close()
        self._shelves[conversation_id].blobs = shelf.blobs  # pyright: ignore[reportPrivateUsage]


def logs_that(**wrong: Callable[..., Any]) -> Callable[[], MemoryStore]:
    return lambda: WrongStore(**wrong)


WRONG: list[tuple[Callable[[], MemoryStore], str]] = [
    (logs_that(append=loses_the_last), "test_ten_thousand_records_are_read_back_in_order"),
    (logs_that(append=appends_one_by_one), "test_groups_are_kept_as_they_were_given"),
    (logs_that(append=takes_what_does_not_follow), "test_what_does_not_follow_is_refused_and_the_log_goes_on"),
    (logs_that(append=waits_after_it_is_kept), "test_an_append_that_is_cancelled_is_whole_or_was_not"),
    (logs_that(close=forgets_to_close), "test_a_log_goes_on_where_it_was_left"),
    (
        logs_that(close=closes_when_it_is_its_turn),
        "test_a_log_that_is_closed_by_somebody_who_is_cancelled_is_let_go",
    ),
    (logs_that(read=strips), "test_what_was_appended_is_read_back_as_it_was"),
    (logs_that(write_blob=gives_any_digest), "test_blobs_are_kept_under_their_hash"),
    (logs_that(read_blob=gives_nothing_for_a_blob), "test_a_blob_that_is_not_there_is_told"),
    (Unsorted, "test_logs_are_listed_the_newest_first"),
    (logs_that(read=reads_all), "test_a_log_is_read_from_behind_any_seq"),
    (PagesByNumber, "test_logs_are_listed_by_pages"),
    (LocksToLook, "test_who_writes_a_log_can_be_asked_without_keeping_anybody_from_it"),
    (KnowsNoHolder, "test_who_writes_a_log_can_be_asked_without_keeping_anybody_from_it"),
    (FollowsFromTheEnd, "test_a_log_is_followed_from_its_beginning"),
    (CountsReaders, "test_each_opening_for_writing_has_a_higher_epoch"),
    (CountsNothing, "test_each_opening_for_writing_has_a_higher_epoch"),
    (Lockless, "test_a_log_has_one_writer_and_says_who"),
    (Careless, "test_a_creation_that_is_cancelled_holds_nothing"),
    (Reusing, "test_what_was_deleted_is_gone_and_its_id_is_free"),
]
"""What a store may do wrong, and the test that it fails."""


async def fails(test: Callable[[MemoryStore], Awaitable[None]], store: MemoryStore) -> bool:
    try:
        with anyio.fail_after(30):
            await test(store)
    except Exception:
        return True
    return False


@pytest.mark.parametrize(("make", "test"), WRONG, ids=[test for _, test in WRONG])
def test_a_store_that_goes_wrong_is_found_out(make: Callable[[], MemoryStore], test: str) -> None:
    assert anyio.run(fails, getattr(StoreContract(), test), make())


def test_a_store_that_does_not_is_not() -> None:
    tests = inspect.getmembers(StoreContract(), inspect.iscoroutinefunction)
    assert len(tests) > 15
    assert [name for name, test in tests if anyio.run(fails, test, MemoryStore())] == []
