"""The contract of every log of a store, as tests: a part of `StoreContract`."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from agentcore.errors import BlobLost, ConversationLocked, ConversationNotFound, SeqConflict, StoreError
from agentcore.record import FORMAT_VERSION, Record, Store, StoredLog
from agentcore.testing.cancelling import cancel_everywhere

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


def make_record(seq: int, group: int | None = None, text: str = '"words"') -> Record:
    return Record(seq, group or seq, f'{{"seq":{seq},"said":{text}}}'.encode())


async def refused(expected: type[E], answer: Awaitable[object]) -> E:
    """Await what has to raise, and give what it raised."""
    try:
        await answer
    except expected as error:
        return error
    raise AssertionError(f"it was to raise {expected.__name__}, and did not")


async def read_log_of(store: Store, conversation_id: str) -> Sequence[Record]:
    """Read a log as somebody else would."""
    log = await store.open(conversation_id, write=False)
    records = await log.read()
    await log.close()
    return records


async def filled(store: Store, conversation_id: str, *appends: Sequence[Record]) -> StoredLog:
    log = await store.create(conversation_id, format_version=FORMAT_VERSION)
    for records in appends:
        await log.append(records)
    return log


class LogContract:
    """The behaviour of one log: what is kept in it, and how it is read."""

    async def test_a_new_log_is_empty_and_knows_what_it_is(self, store: Store) -> None:
        log = await store.create("new", format_version=FORMAT_VERSION)
        assert (log.conversation_id, log.format_version, log.repaired) == ("new", FORMAT_VERSION, None)
        assert list(await log.read()) == []
        await log.close()
        again = await store.open("new")
        assert (again.conversation_id, again.format_version, again.repaired) == ("new", FORMAT_VERSION, None)
        assert list(await again.read()) == []
        await again.close()

    async def test_a_log_is_read_from_behind_any_seq(self, store: Store) -> None:
        records = [make_record(1), make_record(2, 3), make_record(3, 3), make_record(4)]
        log = await filled(store, "behind", records)
        for after in range(6):
            assert list(await log.read(after)) == records[after:]
        await log.close()
        for after in range(6):
            reader = await store.open("behind", write=False)
            assert list(await reader.read(after)) == records[after:]
            assert list(await reader.read()) == records
            await reader.close()

    async def test_each_opening_for_writing_has_a_higher_epoch(self, store: Store) -> None:
        log = await filled(store, "epoch", [make_record(1)])
        epochs = [log.epoch]
        assert epochs == [1]
        for seq in (2, 3):
            reader = await store.open("epoch", write=False)
            assert reader.epoch == epochs[-1]
            await refused(ConversationLocked, store.open("epoch"))
            await log.close()
            log = await store.open("epoch")
            assert reader.epoch == epochs[-1]
            await reader.close()
            epochs.append(log.epoch)
            await log.append([make_record(seq)])
            assert log.epoch == epochs[-1]
        await log.close()
        assert epochs == sorted(set(epochs))
        await (await filled(store, "another", [make_record(1)])).close()
        another = await store.open("another", write=False)
        assert another.epoch == 1
        await another.close()
        await store.delete("epoch")
        log = await filled(store, "epoch")
        assert log.epoch == 1
        await log.close()

    async def test_the_format_that_a_log_was_begun_with_is_told(self, store: Store) -> None:
        await (await store.create("future", format_version=7)).close()
        log = await store.open("future", write=False)
        assert log.format_version == 7
        await log.close()

    async def test_what_was_appended_is_read_back_as_it_was(self, store: Store) -> None:
        records = [make_record(seq, None, body) for seq, body in enumerate(_BODIES, 1)]
        log = await filled(store, "kept", records[:1], records[1:4], records[4:])
        assert list(await log.read()) == records
        await log.close()
        assert list(await read_log_of(store, "kept")) == records

    async def test_a_log_goes_on_where_it_was_left(self, store: Store) -> None:
        log = await filled(store, "left", [make_record(1), make_record(2)])
        await log.close()
        again = await store.open("left")
        await again.append([make_record(3)])
        await again.close()
        assert [record.seq for record in await read_log_of(store, "left")] == [1, 2, 3]

    async def test_an_empty_append_changes_nothing(self, store: Store) -> None:
        log = await filled(store, "same", [make_record(1)], [])
        await log.append([make_record(2)])
        await log.close()
        assert [record.seq for record in await read_log_of(store, "same")] == [1, 2]

    async def test_groups_are_kept_as_they_were_given(self, store: Store) -> None:
        records = [
            make_record(1, 3),
            make_record(2, 3),
            make_record(3, 3),
            make_record(4, 4),
            make_record(5, 6),
            make_record(6, 6),
        ]
        await (await filled(store, "groups", records)).close()
        assert [record.group for record in await read_log_of(store, "groups")] == [3, 3, 3, 4, 6, 6]

    async def test_what_does_not_follow_is_refused_and_the_log_goes_on(self, store: Store) -> None:
        log = await filled(store, "seq", [make_record(1)])
        for seq in (1, 3):
            await refused(SeqConflict, log.append([make_record(seq)]))
        await log.append([make_record(2)])
        await log.close()
        assert [record.seq for record in await read_log_of(store, "seq")] == [1, 2]

    async def test_what_is_no_whole_group_is_refused_whole(self, store: Store) -> None:
        log = await filled(store, "half", [make_record(1)])
        wrong = {
            "half a group": [make_record(2, 3)],
            "a group and a half": [make_record(2), make_record(3, 4)],
            "a gap": [make_record(2), make_record(4)],
            "two groups in one": [make_record(2, 3), make_record(3, 4), make_record(4, 4)],
            "a group that ended before": [make_record(2), make_record(3, 2)],
            "two lines": [Record(2, 2, b'{"seq":2,\n"said":1}')],
            "another seq in the body": [Record(2, 2, b'{"seq":3}')],
            "no object": [Record(2, 2, b'"seq"')],
        }
        for records in wrong.values():
            await refused(ValueError, log.append(records))
        await log.append([make_record(2)])
        await log.close()
        assert [record.seq for record in await read_log_of(store, "half")] == [1, 2]

    async def test_blobs_are_kept_under_their_hash(self, store: Store) -> None:
        pieces = [b"", b"words", bytes(range(256)) * 1_200, b"\n" * 70_000]
        log = await filled(store, "blobs", [make_record(1)])
        for piece in pieces:
            assert await log.write_blob(piece) == hashlib.sha256(piece).hexdigest()
        assert await log.write_blob(pieces[2]) == hashlib.sha256(pieces[2]).hexdigest()
        await log.append([make_record(2)])
        await log.close()
        for write in (True, False):
            again = await store.open("blobs", write=write)
            for piece in pieces:
                assert await again.read_blob(hashlib.sha256(piece).hexdigest()) == piece
            await again.close()

    async def test_a_blob_that_is_not_there_is_told(self, store: Store) -> None:
        log = await filled(store, "blobs", [make_record(1)])
        for digest in (hashlib.sha256(b"another").hexdigest(), "../meta.json", ""):
            await refused(BlobLost, log.read_blob(digest))
        await log.append([make_record(2)])
        await log.close()

    async def test_a_log_is_followed_from_its_beginning(self, store: Store) -> None:
        await refused(ConversationNotFound, store.tail("followed"))
        log = await filled(store, "followed")
        tail = await store.tail("followed")
        assert (tail.conversation_id, tail.format_version) == ("followed", FORMAT_VERSION)
        assert list(await tail.read() or ()) == []
        records = [make_record(1), make_record(2, 3), make_record(3, 3), make_record(4)]
        for appended in (records[:1], records[1:3], records[3:]):
            await log.append(appended)
            assert list(await tail.read() or ()) == list(appended)
        assert list(await tail.read() or ()) == []
        assert list(await (await store.tail("followed")).read() or ()) == records
        digest = await log.write_blob(b"large")
        assert await tail.read_blob(digest) == b"large"
        await refused(BlobLost, tail.read_blob(hashlib.sha256(b"another").hexdigest()))
        await log.close()
        # It holds nothing: the log can be opened, and deleted, and that is told.
        log = await store.open("followed")
        await log.append([make_record(5)])
        await log.close()
        assert list(await tail.read() or ()) == [make_record(5)]
        await store.delete("followed")
        await refused(StoreError, tail.read())

    async def test_readers_see_what_was_appended_and_disturb_nobody(self, store: Store) -> None:
        log = await filled(store, "read", [make_record(1)])
        reader = await store.open("read", write=False)
        assert len(await reader.read()) == 1
        await log.append([make_record(2, 3), make_record(3, 3)])
        assert len(await reader.read()) == 3
        assert len(await read_log_of(store, "read")) == 3
        await refused(StoreError, reader.append([make_record(4)]))
        await refused(StoreError, reader.write_blob(b"x"))
        await reader.close()
        await refused(ConversationLocked, store.open("read"))
        await log.append([make_record(4)])
        await log.close()

    async def test_closing_twice_is_fine_and_writing_after_it_is_not(self, store: Store) -> None:
        log = await filled(store, "closed", [make_record(1)])
        await log.close()
        await log.close()
        await refused(StoreError, log.append([make_record(2)]))
        await refused(StoreError, log.write_blob(b"x"))
        again = await store.open("closed")
        await log.close()  # the first handle's business only
        await refused(ConversationLocked, store.open("closed"))
        await again.append([make_record(2)])
        await again.close()
        assert len(await read_log_of(store, "closed")) == 2

    async def test_ten_thousand_records_are_read_back_in_order(self, store: Store) -> None:
        log = await store.create("many", format_version=FORMAT_VERSION)
        for first in range(1, 10_001, 250):
            await log.append([make_record(seq) for seq in range(first, first + 250)])
        await log.close()
        found = await read_log_of(store, "many")
        assert [record.seq for record in found] == list(range(1, 10_001))
        assert found[-1] == make_record(10_000)

    async def test_an_append_that_is_cancelled_is_whole_or_was_not(self, store: Store) -> None:
        for attempt in cancel_everywhere():
            conversation_id = f"cancelled-{attempt.n}"
            log = await filled(store, conversation_id, [make_record(1)])
            acknowledged: list[int] = []

            async def append(log: StoredLog = log, acknowledged: list[int] = acknowledged) -> None:
                for seq in (2, 4):
                    await log.append([make_record(seq, seq + 1), make_record(seq + 1, seq + 1)])
                    acknowledged.append(seq + 1)

            await attempt(append)
            await log.close()
            found = [record.seq for record in await read_log_of(store, conversation_id)]
            assert found in ([1], [1, 2, 3], [1, 2, 3, 4, 5])
            assert found[-1] >= max(acknowledged, default=1)
