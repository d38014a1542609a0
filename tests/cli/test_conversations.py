from __future__ import annotations

import os
from pathlib import Path

import pytest

from agentcore.cli.conversations import find_conversation, has_log, is_running, open_store
from agentcore.cli.failures import UsageError
from agentcore.cli.log import _lines_of  # pyright: ignore[reportPrivateUsage]
from agentcore.cli.settings import Settings
from agentcore.events import ConversationStateUpdateEvent, ConversationStatus, StatusChanged
from agentcore.record import EventLog, MemoryStore, Store


async def store_with(home: Path, *ids: str) -> tuple[Store, Settings]:
    settings = Settings(home=str(home))
    store = open_store(settings)
    for number, conversation_id in enumerate(ids):
        log = await EventLog.create(store, conversation_id)
        await log.close()
        file = home / "conversations" / conversation_id / "events.jsonl"
        os.utime(file, (1_000_000 + number, 1_000_000 + number))
    return store, settings


async def test_the_beginning_of_an_id_is_enough(tmp_path: Path) -> None:
    store, settings = await store_with(tmp_path, "20260101-aaa", "20260102-bbb")
    assert await find_conversation(store, settings, "20260102") == "20260102-bbb"


async def test_a_whole_id_means_itself_even_if_it_begins_another(tmp_path: Path) -> None:
    store, settings = await store_with(tmp_path, "task", "task-2")
    assert await find_conversation(store, settings, "task") == "task"


async def test_without_an_id_it_is_the_one_that_changed_last(tmp_path: Path) -> None:
    store, settings = await store_with(tmp_path, "b", "c", "a")
    assert await find_conversation(store, settings, None) == "a"


async def test_an_ambiguous_beginning_lists_what_it_could_mean(tmp_path: Path) -> None:
    store, settings = await store_with(tmp_path, "x-1", "x-2", "y-3")
    with pytest.raises(UsageError, match=r"'x-' matches 2 conversations") as raised:
        await find_conversation(store, settings, "x-")
    assert "\n  x-1" in str(raised.value)
    assert "\n  x-2" in str(raised.value)
    assert "y-3" not in str(raised.value)


async def test_a_long_list_is_cut_and_counted(tmp_path: Path) -> None:
    store, settings = await store_with(tmp_path, *(f"x-{number}" for number in range(13)))
    with pytest.raises(UsageError, match="and 3 more"):
        await find_conversation(store, settings, "x")


@pytest.mark.parametrize("given", ["nope", "../x", "a/b", ""])
async def test_what_is_no_id_is_told_with_what_to_do(tmp_path: Path, given: str) -> None:
    store, settings = await store_with(tmp_path, "x")
    if given:
        with pytest.raises(UsageError, match="agentcore conversations"):
            await find_conversation(store, settings, given)
    else:
        assert await find_conversation(store, settings, given) == "x"


async def test_where_there_is_none_it_is_said_how_to_begin_one(tmp_path: Path) -> None:
    store, settings = await store_with(tmp_path)
    with pytest.raises(UsageError, match="Start one: agentcore run"):
        await find_conversation(store, settings, None)
    assert not (tmp_path / "conversations").exists()


async def test_a_log_is_there_by_its_whole_id_alone_even_if_its_meta_is_damaged(tmp_path: Path) -> None:
    store, _ = await store_with(tmp_path, "task-2")
    assert [await has_log(store, given) for given in ("task-2", "task", "../x", "")] == [True, False, False, False]
    (tmp_path / "conversations" / "task-2" / "meta.json").write_text("{}")
    assert await has_log(store, "task-2")


async def test_a_log_that_says_running_is_at_work_while_somebody_holds_it() -> None:
    store: Store = MemoryStore()
    log = await EventLog.create(store, "a")
    assert not await is_running(store, log.state)
    await log.append([[ConversationStateUpdateEvent(update=StatusChanged(status=ConversationStatus.RUNNING))]])
    assert await is_running(store, log.state)
    await log.close()
    assert not await is_running(store, log.state)
    await store.delete("a")
    assert not await is_running(store, log.state)


def test_logs_that_are_not_files_are_neither_verified_nor_repaired() -> None:
    with pytest.raises(UsageError, match="The logs in memory are not files"):
        _lines_of(MemoryStore())
