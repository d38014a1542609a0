from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING

import anyio
import pytest

from agentcore import Agent, Conversation, FileStore
from agentcore.cli.conversations import find_conversation, has_log, is_running, open_store, shorten_id
from agentcore.cli.failures import UsageError
from agentcore.cli.settings import Settings
from agentcore.events import ConversationStateUpdateEvent, ConversationStatus, StatusChanged
from agentcore.record import EventLog, MemoryStore, Store
from agentcore.testing import ScriptedLLM, call

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


async def store_with(home: Path, *ids: str) -> tuple[Store, Settings]:
    settings = Settings(home=str(home))
    store = open_store(settings)
    for number, conversation_id in enumerate(ids):
        log = await EventLog.create(store, conversation_id)
        await log.close()
        file = home / "conversations" / conversation_id / "events.jsonl"
        os.utime(file, (1_000_000 + number, 1_000_000 + number))
    return store, settings


async def test_the_beginning_of_an_id_is_enough_and_without_one_it_is_the_last_changed(tmp_path: Path) -> None:
    store, settings = await store_with(tmp_path, "20260101-aaa", "20260102-bbb", "task-2", "task")
    for given, found in (("20260102", "20260102-bbb"), ("task", "task"), ("task-", "task-2"), (None, "task")):
        assert await find_conversation(store, settings, given) == found


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ("x-1", r"'x-1' matches 4 conversations; type more of the id:(\n  x-1\d){4}$"),
        ("x", "and 4 more$"),
        *((given, "agentcore conversations") for given in ("nope", "../x", "a/b")),
    ],
)
async def test_an_id_that_is_ambiguous_or_unknown_is_refused(tmp_path: Path, given: str, complaint: str) -> None:
    store, settings = await store_with(tmp_path, *(f"x-{number}" for number in (*range(10, 14), *range(20, 30))))
    with pytest.raises(UsageError, match=complaint):
        await find_conversation(store, settings, given)


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


async def test_a_short_id_is_the_date_and_the_time_unless_two_have_the_same(tmp_path: Path) -> None:
    ids = ("20260101-000000-aaaaaaaaaa", "20260101-000001-aaaaaaaaaa", "20260101-000001-bbbbbbbbbb", "mine-20260101")
    store, settings = await store_with(tmp_path, *ids)
    short = [await shorten_id(store, each) for each in ids]
    assert short == ["20260101-000000", *ids[1:]]
    assert [await find_conversation(store, settings, each) for each in short] == list(ids)


@pytest.mark.parametrize("conversation_id", ["mine", "conversations"])
def test_the_folder_of_a_programs_file_store_is_a_home(cli: Cli, tmp_path: Path, conversation_id: str) -> None:
    async def write() -> None:
        agent = Agent(llm=ScriptedLLM(["Done."]))
        async with Conversation(
            agent, tmp_path, id=conversation_id, store=FileStore(tmp_path / "logs")
        ) as conversation:
            await conversation.run("A program's task")

    anyio.run(write)
    home = ("--home", str(tmp_path / "logs"))
    assert "A program's task" in cli.run("conversations", *home).out
    assert "A program's task" in cli.run("log", "show", *home).out
    assert cli.run("conversations", "delete", conversation_id, "--yes", *home).code == 0
    assert list((tmp_path / "logs").iterdir()) == []


SEQ = call("terminal", command="seq 20000")


def test_deleting_removes_the_log_and_the_outputs_and_leaves_the_project(cli: Cli) -> None:
    cli.play(SEQ, "Done.", flags=["--id", "one"])
    (cli.project / "made").touch()
    (kept,) = {Path(found) for found in re.findall(r"/[^\s\"]+/one/[^\s\"]+\.txt", cli.log().read_text("utf-8"))}
    assert kept.exists()
    refused = cli.run("conversations", "delete", "on")
    assert (refused.code, refused.err) == (
        2,
        "error: Deleting one needs a confirmation, and there is no terminal to ask on. Pass --yes.\n",
    )
    code, screen = cli.on_terminal("conversations", "delete", "on", answers=[("[y/N] ", "\n")])
    assert (code, cli.ids()) == (1, ["one"])
    assert "one  finished  Do it.\n" in screen.text
    assert cli.on_terminal("conversations", "delete", "on", answers=[("[y/N] ", "y\n")])[0] == 0
    assert cli.ids() == []
    assert not kept.exists()
    assert (cli.project / "made").exists()


def test_deleting_takes_the_home_from_either_place_and_a_damaged_log_too(cli: Cli) -> None:
    for id_ in ("one", "two"):
        cli.play("Done.", flags=["--id", id_])
    cli.log("two").write_text("nonsense\n" * 3)
    env = {"AGENTCORE_HOME": ""}
    home = ("--home", str(cli.home))
    ended = cli.run("conversations", *home, "delete", "one", "--yes", env=env)
    assert (ended.code, ended.out) == (0, "deleted one\n"), ended.err
    assert cli.run("conversations", "delete", "two", "-y", *home, env=env).code == 0
    assert cli.ids() == []
    ended = cli.run("conversations", "delete", "two", "-y")
    assert ended.code == 2
