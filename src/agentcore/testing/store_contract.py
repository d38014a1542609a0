"""The contract of every store, as tests: subclass it where your store is tested."""

from __future__ import annotations

from datetime import UTC, datetime

import anyio

from agentcore.errors import (
    BlobLost,
    ConversationExists,
    ConversationLocked,
    ConversationNotFound,
    StoreError,
)
from agentcore.record import FORMAT_VERSION, Store, StoredLog
from agentcore.testing.cancelling import cancel_everywhere
from agentcore.testing.store_log_contract import LogContract, filled, make_record, read_log_of, refused


class StoreContract(LogContract):
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

    async def test_there_is_one_log_of_an_id(self, store: Store) -> None:
        log = await filled(store, "one", [make_record(1)])
        await refused(ConversationExists, store.create("one", format_version=FORMAT_VERSION))
        await log.append([make_record(2)])
        await log.close()
        await refused(ConversationExists, store.create("one", format_version=FORMAT_VERSION))
        assert len(await read_log_of(store, "one")) == 2

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
        await made[0].append([make_record(1)])
        await made[0].close()
        assert len(await read_log_of(store, "race")) == 1

    async def test_what_is_not_there_is_not_found(self, store: Store) -> None:
        for write in (True, False):
            await refused(ConversationNotFound, store.open("nowhere", write=write))
        await refused(ConversationNotFound, store.delete("nowhere"))
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
            await refused(ValueError, store.create(wrong, format_version=FORMAT_VERSION))
            await refused(ValueError, store.open(wrong))
            await refused(ValueError, store.delete(wrong))
            await refused(ValueError, store.tail(wrong))
            await refused(ValueError, store.holder(wrong))
        assert list(await store.list()) == []
        for right in ("a", "7", "A.b_c-d", "x" * 128):
            await (await store.create(right, format_version=FORMAT_VERSION)).close()
        assert len(await store.list()) == 4

    async def test_logs_are_listed_the_newest_first(self, store: Store) -> None:
        began = datetime.now(UTC)
        for conversation_id in ("b", "c", "a"):
            await (await filled(store, conversation_id, [make_record(1)])).close()
        listed = await store.list()
        assert [info.conversation_id for info in listed] == ["a", "c", "b"]
        for info in listed:
            assert info.format_version == FORMAT_VERSION
            assert info.problem is None
            assert info.created.tzinfo is not None
            # A file's time may come from a coarser clock than the program's.
            assert (info.created - began).total_seconds() > -5
            assert abs((info.modified - info.created).total_seconds()) < 60

    async def test_logs_are_listed_by_pages(self, store: Store) -> None:
        for number in range(7):
            await (await filled(store, f"log-{number}", [make_record(1)])).close()
        assert list(await store.list(limit=0)) == []
        found = list(await store.list(limit=3))
        assert [info.conversation_id for info in found] == ["log-6", "log-5", "log-4"]
        # What is made, or deleted, between two pages moves nothing from one to the other.
        await (await filled(store, "newer", [make_record(1)])).close()
        await (await filled(store, "newest", [make_record(1)])).close()
        await store.delete("log-4")
        await store.delete("log-3")
        found = list(await store.list(after=found[-1].cursor, limit=2))
        assert [info.conversation_id for info in found] == ["log-2", "log-1"]
        found = list(await store.list(after=found[-1].cursor))
        assert [info.conversation_id for info in found] == ["log-0"]
        assert list(await store.list(after=found[-1].cursor, limit=2)) == []
        assert len(await store.list(limit=100)) == 7

    async def test_a_page_that_can_not_be_is_refused(self, store: Store) -> None:
        await (await filled(store, "one", [make_record(1)])).close()
        await refused(ValueError, store.list(limit=-1))
        for wrong in ("one", "", "yesterday one"):
            await refused(ValueError, store.list(after=wrong))

    async def test_a_log_that_is_held_can_be_listed(self, store: Store) -> None:
        log = await filled(store, "held", [make_record(1)])
        assert [info.conversation_id for info in await store.list()] == ["held"]
        await log.close()

    async def test_what_was_deleted_is_gone_and_its_id_is_free(self, store: Store) -> None:
        log = await filled(store, "gone", [make_record(1)])
        digest = await log.write_blob(b"large")
        await log.close()
        await store.delete("gone")
        assert list(await store.list()) == []
        await refused(ConversationNotFound, store.open("gone"))
        again = await store.create("gone", format_version=FORMAT_VERSION)
        assert list(await again.read()) == []
        await refused(BlobLost, again.read_blob(digest))
        await again.close()

    async def test_a_log_has_one_writer_and_says_who(self, store: Store) -> None:
        log = await filled(store, "mine", [make_record(1)])
        for action in (store.open, store.delete):
            error = await refused(ConversationLocked, action("mine"))
            assert error.holder
            assert error.holder in str(error)
        await log.append([make_record(2)])
        await log.close()
        again = await store.open("mine")
        assert len(await again.read()) == 2
        await again.close()

    async def test_who_writes_a_log_can_be_asked_without_keeping_anybody_from_it(self, store: Store) -> None:
        await refused(ConversationNotFound, store.holder("asked"))
        log = await filled(store, "asked", [make_record(1)])
        reader = await store.open("asked", write=False)
        holder = await store.holder("asked")
        assert holder
        assert (await refused(ConversationLocked, store.open("asked"))).holder == holder
        await log.append([make_record(2)])
        await log.close()
        assert await store.holder("asked") is None
        await reader.close()

        async def ask() -> None:
            while not done:
                await store.holder("asked")

        done: list[bool] = []
        async with anyio.create_task_group() as group:
            for _ in range(3):
                group.start_soon(ask)
            for _ in range(20):
                await (await store.open("asked")).close()
            done.append(True)

    async def test_many_logs_are_written_at_once(self, store: Store) -> None:
        async def fill(number: int) -> None:
            log = await store.create(f"log-{number}", format_version=FORMAT_VERSION)
            for seq in range(1, 6):
                await log.append([make_record(seq, None, str(number))])
            await log.close()

        async with anyio.create_task_group() as group:
            for number in range(20):
                group.start_soon(fill, number)
        assert len(await store.list()) == 20
        for number in range(20):
            records = await read_log_of(store, f"log-{number}")
            assert list(records) == [make_record(seq, None, str(number)) for seq in range(1, 6)]

    async def test_an_opening_that_is_cancelled_holds_nothing(self, store: Store) -> None:
        await (await filled(store, "opened", [make_record(1)])).close()
        for attempt in cancel_everywhere():
            opened: list[StoredLog] = []

            async def open_it(opened: list[StoredLog] = opened) -> None:
                opened.append(await store.open("opened"))

            await attempt(open_it)
            for log in opened:
                await log.close()
            await (await store.open("opened")).close()

    async def test_a_log_that_is_closed_by_somebody_who_is_cancelled_is_let_go(self, store: Store) -> None:
        log = await filled(store, "closed", [make_record(1)])
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
            await log.append([make_record(1)])
            await log.close()
