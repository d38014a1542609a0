"""What every store keeps to, as tests: subclass it where your store is tested."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Sequence
from datetime import UTC, datetime
from typing import TypeVar

import anyio

from agentcore.errors import (
    BlobLost,
    ConversationExists,
    ConversationLocked,
    ConversationNotFound,
    SeqConflict,
    StoreError,
)
from agentcore.record import FORMAT_VERSION, Record, Store, StoredLog
from agentcore.testing.cancelling import cancel_everywhere

__all__ = ["StoreContract"]

E = TypeVar("E", bound=Exception)

_BODIES = (
    '"words"',
    '"\\"quoted\\" \\\\ back \\u0000 \\n \\r \\t \\u2028"',
    '"line separators \u2028 \u2029 \u0085 that are no newline"',
    '"żółw 龜 🐢 \\ud83d\\udc22"',
    '{"seq":7,"group":99,"crc":"00000000"}',
    '"blob:sha256:looks like one"',
    "[null,true,false,-0.0,1e300,123456789012345678901234567890]",
    '"' + "long " * 40_000 + '"',
)


def _record(seq: int, group: int | None = None, said: str = '"words"') -> Record:
    return Record(seq, group or seq, f'{{"seq":{seq},"said":{said}}}'.encode())


async def _refused(expected: type[E], answer: Awaitable[object]) -> E:
    """Await what has to raise, and give what it raised."""
    try:
        await answer
    except expected as error:
        return error
    raise AssertionError(f"it was to raise {expected.__name__}, and did not")


async def _read(store: Store, conversation_id: str) -> Sequence[Record]:
    """Read a log as somebody else would."""
    log = await store.open(conversation_id, write=False)
    records = await log.read()
    await log.close()
    return records


async def _filled(store: Store, conversation_id: str, *appends: Sequence[Record]) -> StoredLog:
    log = await store.create(conversation_id, format_version=FORMAT_VERSION)
    for records in appends:
        await log.append(records)
    return log


class StoreContract:
    """The behaviour that all stores share, as async tests for pytest with anyio's plugin (`anyio_mode = "auto"`).

    A subclass has a fixture `store` that gives one with nothing in it.

        class TestMyStore(StoreContract):
            @pytest.fixture
            async def store(self):
                async with MyStore() as store:
                    yield store
    """

    async def test_a_store_says_where_it_is(self, store: Store) -> None:
        await store.list()
        assert store.location

    async def test_a_new_log_is_empty_and_knows_what_it_is(self, store: Store) -> None:
        log = await store.create("new", format_version=FORMAT_VERSION)
        assert (log.conversation_id, log.format_version, log.repaired) == ("new", FORMAT_VERSION, None)
        assert list(await log.read()) == []
        await log.close()
        again = await store.open("new")
        assert (again.conversation_id, again.format_version, again.repaired) == ("new", FORMAT_VERSION, None)
        assert list(await again.read()) == []
        await again.close()

    async def test_the_format_that_a_log_was_begun_with_is_told(self, store: Store) -> None:
        await (await store.create("future", format_version=7)).close()
        log = await store.open("future", write=False)
        assert log.format_version == 7
        await log.close()

    async def test_what_was_appended_is_read_back_as_it_was(self, store: Store) -> None:
        records = [_record(seq, None, body) for seq, body in enumerate(_BODIES, 1)]
        log = await _filled(store, "kept", records[:1], records[1:4], records[4:])
        assert list(await log.read()) == records
        await log.close()
        assert list(await _read(store, "kept")) == records

    async def test_a_log_goes_on_where_it_was_left(self, store: Store) -> None:
        log = await _filled(store, "left", [_record(1), _record(2)])
        await log.close()
        again = await store.open("left")
        await again.append([_record(3)])
        await again.close()
        assert [record.seq for record in await _read(store, "left")] == [1, 2, 3]

    async def test_an_empty_append_changes_nothing(self, store: Store) -> None:
        log = await _filled(store, "same", [_record(1)], [])
        await log.append([_record(2)])
        await log.close()
        assert [record.seq for record in await _read(store, "same")] == [1, 2]

    async def test_groups_are_kept_as_they_were_given(self, store: Store) -> None:
        records = [_record(1, 3), _record(2, 3), _record(3, 3), _record(4, 4), _record(5, 6), _record(6, 6)]
        await (await _filled(store, "groups", records)).close()
        assert [record.group for record in await _read(store, "groups")] == [3, 3, 3, 4, 6, 6]

    async def test_what_does_not_follow_is_refused_and_the_log_goes_on(self, store: Store) -> None:
        log = await _filled(store, "seq", [_record(1)])
        for seq in (1, 3):
            await _refused(SeqConflict, log.append([_record(seq)]))
        await log.append([_record(2)])
        await log.close()
        assert [record.seq for record in await _read(store, "seq")] == [1, 2]

    async def test_what_is_no_whole_group_is_refused_whole(self, store: Store) -> None:
        log = await _filled(store, "half", [_record(1)])
        wrong = {
            "half a group": [_record(2, 3)],
            "a group and a half": [_record(2), _record(3, 4)],
            "a gap": [_record(2), _record(4)],
            "two groups in one": [_record(2, 3), _record(3, 4), _record(4, 4)],
            "a group that ended before": [_record(2), _record(3, 2)],
            "two lines": [Record(2, 2, b'{"seq":2,\n"said":1}')],
            "another seq in the body": [Record(2, 2, b'{"seq":3}')],
            "no object": [Record(2, 2, b'"seq"')],
        }
        for records in wrong.values():
            await _refused(ValueError, log.append(records))
        await log.append([_record(2)])
        await log.close()
        assert [record.seq for record in await _read(store, "half")] == [1, 2]

    async def test_there_is_one_log_of_an_id(self, store: Store) -> None:
        log = await _filled(store, "one", [_record(1)])
        await _refused(ConversationExists, store.create("one", format_version=FORMAT_VERSION))
        await log.append([_record(2)])
        await log.close()
        await _refused(ConversationExists, store.create("one", format_version=FORMAT_VERSION))
        assert len(await _read(store, "one")) == 2

    async def test_of_many_who_create_the_same_log_at_once_one_does(self, store: Store) -> None:
        made: list[StoredLog] = []
        refused: list[StoreError] = []

        async def create() -> None:
            try:
                made.append(await store.create("race", format_version=FORMAT_VERSION))
            except (ConversationExists, ConversationLocked) as error:
                refused.append(error)

        async with anyio.create_task_group() as group:
            for _ in range(8):
                group.start_soon(create)
        assert (len(made), len(refused)) == (1, 7)
        await made[0].append([_record(1)])
        await made[0].close()
        assert len(await _read(store, "race")) == 1

    async def test_what_is_not_there_is_not_found(self, store: Store) -> None:
        for write in (True, False):
            await _refused(ConversationNotFound, store.open("nowhere", write=write))
        await _refused(ConversationNotFound, store.delete("nowhere"))
        assert list(await store.list()) == []

    async def test_what_can_be_no_id_is_refused(self, store: Store) -> None:
        for wrong in (
            "",
            ".",
            "..",
            "../up",
            "a/b",
            "/etc",
            "a\\b",
            ".hidden",
            "-option",
            "a b",
            "a\0b",
            "a\n",
            "x" * 129,
        ):
            await _refused(ValueError, store.create(wrong, format_version=FORMAT_VERSION))
            await _refused(ValueError, store.open(wrong))
            await _refused(ValueError, store.delete(wrong))
        assert list(await store.list()) == []
        for right in ("a", "7", "A.b_c-d", "x" * 128):
            await (await store.create(right, format_version=FORMAT_VERSION)).close()
        assert len(await store.list()) == 4

    async def test_blobs_are_kept_under_their_hash(self, store: Store) -> None:
        pieces = [b"", b"words", bytes(range(256)) * 1_200, b"\n" * 70_000]
        log = await _filled(store, "blobs", [_record(1)])
        for piece in pieces:
            assert await log.write_blob(piece) == hashlib.sha256(piece).hexdigest()
        assert await log.write_blob(pieces[2]) == hashlib.sha256(pieces[2]).hexdigest()
        await log.append([_record(2)])
        await log.close()
        for write in (True, False):
            again = await store.open("blobs", write=write)
            for piece in pieces:
                assert await again.read_blob(hashlib.sha256(piece).hexdigest()) == piece
            await again.close()

    async def test_a_blob_that_is_not_there_is_told(self, store: Store) -> None:
        log = await _filled(store, "blobs", [_record(1)])
        for digest in (hashlib.sha256(b"another").hexdigest(), "../meta.json", ""):
            await _refused(BlobLost, log.read_blob(digest))
        await log.append([_record(2)])
        await log.close()

    async def test_logs_are_listed_the_newest_first(self, store: Store) -> None:
        began = datetime.now(UTC)
        for conversation_id in ("b", "c", "a"):
            await (await _filled(store, conversation_id, [_record(1)])).close()
        listed = await store.list()
        assert [info.conversation_id for info in listed] == ["a", "c", "b"]
        for info in listed:
            assert info.format_version == FORMAT_VERSION
            assert info.problem is None
            assert info.created.tzinfo is not None
            # A file's time may come from a coarser clock than the program's.
            assert (info.created - began).total_seconds() > -5
            assert abs((info.modified - info.created).total_seconds()) < 60

    async def test_a_log_that_is_held_can_be_listed(self, store: Store) -> None:
        log = await _filled(store, "held", [_record(1)])
        assert [info.conversation_id for info in await store.list()] == ["held"]
        await log.close()

    async def test_what_was_deleted_is_gone_and_its_id_is_free(self, store: Store) -> None:
        log = await _filled(store, "gone", [_record(1)])
        digest = await log.write_blob(b"large")
        await log.close()
        await store.delete("gone")
        assert list(await store.list()) == []
        await _refused(ConversationNotFound, store.open("gone"))
        again = await store.create("gone", format_version=FORMAT_VERSION)
        assert list(await again.read()) == []
        await _refused(BlobLost, again.read_blob(digest))
        await again.close()

    async def test_a_log_has_one_writer_and_says_who(self, store: Store) -> None:
        log = await _filled(store, "mine", [_record(1)])
        for action in (store.open, store.delete):
            error = await _refused(ConversationLocked, action("mine"))
            assert error.holder
            assert error.holder in str(error)
        await log.append([_record(2)])
        await log.close()
        again = await store.open("mine")
        assert len(await again.read()) == 2
        await again.close()

    async def test_readers_see_what_was_appended_and_disturb_nobody(self, store: Store) -> None:
        log = await _filled(store, "read", [_record(1)])
        reader = await store.open("read", write=False)
        assert len(await reader.read()) == 1
        await log.append([_record(2, 3), _record(3, 3)])
        assert len(await reader.read()) == 3
        assert len(await _read(store, "read")) == 3
        await _refused(StoreError, reader.append([_record(4)]))
        await _refused(StoreError, reader.write_blob(b"x"))
        await reader.close()
        await _refused(ConversationLocked, store.open("read"))
        await log.append([_record(4)])
        await log.close()

    async def test_closing_twice_is_fine_and_writing_after_it_is_not(self, store: Store) -> None:
        log = await _filled(store, "closed", [_record(1)])
        await log.close()
        await log.close()
        await _refused(StoreError, log.append([_record(2)]))
        await _refused(StoreError, log.write_blob(b"x"))
        again = await store.open("closed")
        await log.close()  # the first handle's business only
        await _refused(ConversationLocked, store.open("closed"))
        await again.append([_record(2)])
        await again.close()
        assert len(await _read(store, "closed")) == 2

    async def test_ten_thousand_records_are_read_back_in_order(self, store: Store) -> None:
        log = await store.create("many", format_version=FORMAT_VERSION)
        for first in range(1, 10_001, 250):
            await log.append([_record(seq) for seq in range(first, first + 250)])
        await log.close()
        found = await _read(store, "many")
        assert [record.seq for record in found] == list(range(1, 10_001))
        assert found[-1] == _record(10_000)

    async def test_many_logs_are_written_at_once(self, store: Store) -> None:
        async def fill(number: int) -> None:
            log = await store.create(f"log-{number}", format_version=FORMAT_VERSION)
            for seq in range(1, 6):
                await log.append([_record(seq, None, str(number))])
            await log.close()

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(fill, number)
        assert len(await store.list()) == 20
        for number in range(20):
            records = await _read(store, f"log-{number}")
            assert list(records) == [_record(seq, None, str(number)) for seq in range(1, 6)]

    async def test_an_append_that_is_cancelled_is_whole_or_was_not(self, store: Store) -> None:
        for attempt in cancel_everywhere():
            conversation_id = f"cancelled-{attempt.n}"
            log = await _filled(store, conversation_id, [_record(1)])
            acknowledged: list[int] = []

            async def append(log: StoredLog = log, acknowledged: list[int] = acknowledged) -> None:
                for seq in (2, 4):
                    await log.append([_record(seq, seq + 1), _record(seq + 1, seq + 1)])
                    acknowledged.append(seq + 1)

            await attempt(append)
            await log.close()
            found = [record.seq for record in await _read(store, conversation_id)]
            assert found in ([1], [1, 2, 3], [1, 2, 3, 4, 5])
            assert found[-1] >= max(acknowledged, default=1)

    async def test_an_opening_that_is_cancelled_holds_nothing(self, store: Store) -> None:
        await (await _filled(store, "opened", [_record(1)])).close()
        for attempt in cancel_everywhere():
            opened: list[StoredLog] = []

            async def open_it(opened: list[StoredLog] = opened) -> None:
                opened.append(await store.open("opened"))

            await attempt(open_it)
            for log in opened:
                await log.close()
            await (await store.open("opened")).close()

    async def test_a_log_that_is_closed_by_somebody_who_is_cancelled_is_let_go(self, store: Store) -> None:
        log = await _filled(store, "closed", [_record(1)])
        with anyio.CancelScope() as scope:
            scope.cancel()
            await log.close()
        await (await store.open("closed")).close()

    async def test_a_creation_that_is_cancelled_holds_nothing(self, store: Store) -> None:
        for attempt in cancel_everywhere():
            conversation_id = f"created-{attempt.n}"
            created: list[StoredLog] = []

            async def create(conversation_id: str = conversation_id, created: list[StoredLog] = created) -> None:
                created.append(await store.create(conversation_id, format_version=FORMAT_VERSION))

            await attempt(create)
            for log in created:
                await log.close()
            if conversation_id in {info.conversation_id for info in await store.list()}:
                log = await store.open(conversation_id)
            else:
                log = await store.create(conversation_id, format_version=FORMAT_VERSION)
            await log.append([_record(1)])
            await log.close()
