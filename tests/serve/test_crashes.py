"""A server that is killed: what worked goes on at the next start, and what gets nowhere stays paused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import anyio
import pytest

from agentcore import FileStore
from agentcore.errors import ConversationNotFound
from agentcore.record import read_log
from agentcore.wire.requests import ConversationSpec
from agentcore_serve.upkeep import after_start
from hubs import ANN, BEN, serving
from talks import answers_of, scripted

_PROGRAM = Path(__file__).with_name("served_program.py")


def live(folder: Path, life: str, until: str) -> str:
    """Let a server live until it prints a line that begins so, and kill it; return the line."""
    paths = [str(_PROGRAM.parent.parent), *sys.path]
    process = subprocess.Popen(
        [sys.executable, str(_PROGRAM), str(folder), life],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
    )
    assert process.stdout is not None
    with process, process.stdout as lines:
        try:
            return next((line.strip() for line in lines if line.startswith(until)), "it ended")
        finally:
            process.kill()


@pytest.mark.slow
def test_what_worked_when_the_server_was_killed_goes_on(tmp_path: Path) -> None:
    assert live(tmp_path, "begin", "waiting") == "waiting"
    assert live(tmp_path, "end", "finished") == "finished None"
    state = anyio.run(read_log, FileStore(tmp_path / "store"), "c1")
    (answer,) = answers_of(state)
    assert getattr(answer, "outcome", None) == "unknown"  # the call was not done again
    assert state.answer == "done"


@pytest.mark.slow
def test_with_pause_it_stays_paused(tmp_path: Path) -> None:
    live(tmp_path, "begin", "waiting")
    assert live(tmp_path, "pause", "paused") == "paused recovered"


@pytest.mark.slow
def test_what_gets_no_reply_three_times_stays_paused_and_a_reply_counts_anew(tmp_path: Path) -> None:
    live(tmp_path, "begin", "waiting")
    for _ in range(5):  # each has a new reply before it is killed
        assert live(tmp_path, "call", "waiting") == "waiting"
    for _ in range(2):
        assert live(tmp_path, "silent", "asked") == "asked"
    assert live(tmp_path, "call", "waiting") == "waiting"
    for _ in range(3):
        assert live(tmp_path, "silent", "asked") == "asked"
    assert live(tmp_path, "end", "paused") == "paused recovered"


async def test_a_creation_that_was_cut_off_before_its_log_was_made_leaves_nothing(tmp_path: Path) -> None:
    spec = ConversationSpec(title="a")
    async with serving(scripted([]), tmp_path) as hub:
        served = await hub.create(ANN, spec, "c1")
        # As a crash leaves it: the row is there, and the log is not.
        row = served.row._replace(id="c2", is_made=False, is_open=True)
        await hub.records.insert(row, shared_user=True)
        with pytest.raises(ConversationNotFound):
            await hub.create(BEN, spec, "c2")
        assert (await hub.create(ANN, ConversationSpec(title="b"), "c2")).info().title == "b"
        await hub.records.insert(row._replace(id="c3"), shared_user=True)
    async with serving(scripted([]), tmp_path) as hub:
        await hub.is_caught_up.wait()
        assert await hub.records.find("c3") is None
        assert await hub.records.find("c2") is not None
        assert {info.id for info in (await hub.list(ANN)).read().items} == {"c1", "c2"}


async def test_a_creation_that_was_cut_off_behind_its_log_is_finished_by_the_same_request(tmp_path: Path) -> None:
    spec = ConversationSpec(title="a", tags={"x": "1"})
    async with serving(scripted([]), tmp_path) as hub:
        served = await hub.create(ANN, ConversationSpec(), "c0")
        await hub.create(ANN, spec, "c1")
        row = await hub.records.find("c1")
        assert row is not None
        await hub.delete(ANN, "c1")
        await hub.records.insert(row._replace(is_made=False), shared_user=True)
        log = await hub.store.create("c1", format_version=1)
        await log.close()
        assert (await hub.create(ANN, spec, "c1")).info().tags == {"x": "1"}
        assert served.id == "c0"


async def test_a_deletion_that_was_cut_off_is_finished_at_the_next_start(tmp_path: Path) -> None:
    async with serving(scripted([]), tmp_path) as hub:
        served = await hub.create(ANN, ConversationSpec(), "c1")
        await served.conversation.close()
        await served.ended.wait()
        await hub.indexing.flush()
        await hub.store.delete("c1")
    async with serving(scripted([]), tmp_path) as hub:
        await hub.is_caught_up.wait()
        assert await hub.records.find("c1") is None
        assert (await hub.list(ANN)).bodies == []
        with pytest.raises(ConversationNotFound):
            await hub.delete(ANN, "c1")


async def test_a_log_that_is_gone_is_not_begun_anew(tmp_path: Path) -> None:
    async with serving(scripted([]), tmp_path) as hub:
        served = await hub.create(ANN, ConversationSpec(), "c1")
        await served.conversation.close()
        await served.ended.wait()
        await hub.store.delete("c1")
        with pytest.raises(ConversationNotFound):
            await hub.open(ANN, "c1")
        assert not (tmp_path / "store" / "c1").exists()


async def test_a_server_starts_though_the_folder_of_a_conversation_that_was_cut_off_is_gone(tmp_path: Path) -> None:
    async with serving(scripted([]), tmp_path) as hub:
        served = await hub.create(ANN, ConversationSpec(), "c1")
    assert served.row.workspace is not None
    (tmp_path / "root" / served.row.workspace).rename(tmp_path / "moved")
    async with serving(scripted([]), tmp_path) as hub:
        await hub.records.update("c1", is_open=True)
        row = await hub.records.find("c1")
        assert row is not None
        await after_start(hub, [row])
        assert (await hub.watch(ANN, "c1")).info().problem is not None
