"""Faults and races in the hub: each leaves the server whole, and nothing behind that was not asked for."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import anyio
import httpx
import pytest
from pydantic import SecretStr

from agentcore import Agent, FileStore, Workspace
from agentcore.commands import Fork
from agentcore.errors import AgentcoreError, ConversationNotFound, StoreError, WorkspaceError
from agentcore.testing import Gate, ScriptedLLM, call, say
from agentcore.testing.disks import FaultyDisk
from agentcore.wire.requests import ConversationSpec
from agentcore_serve import create_app
from agentcore_serve.auth.database import DatabaseDamaged
from agentcore_serve.refused import TooBusy
from agentcore_serve.settings import ServeSettings
from agentcore_serve.upkeep import tidy
from hubs import ANN, Clock, serving
from rounds import some_quick
from talks import BOUND, FINISHED, at_once, hang, scripted, until


def damage(folder: Path, statement: str, name: str = "serve.sqlite") -> None:
    """Change a database of a server behind its back."""
    connection = sqlite3.connect(folder / "store" / name)
    with connection:
        connection.execute(statement)
    connection.close()


async def test_one_that_is_used_again_while_others_are_closed_stays_open(tmp_path: Path) -> None:
    clock, gate = Clock(), Gate()
    async with serving(scripted([gate.hold(say("x"))]), tmp_path, clock) as hub:
        await hub.create(ANN, ConversationSpec(), "first")
        await hub.create(ANN, ConversationSpec(), "second")
        clock.time += 700

        async def close_what_rests() -> None:
            assert await tidy(hub) == 1
            gate.open()

        async def use() -> None:
            served = await hub.open(ANN, "second")
            assert (await served.conversation.run("go")).status is FINISHED

        await at_once(close_what_rests, use)


async def test_one_that_is_opened_while_it_closes_is_noted_as_open(tmp_path: Path) -> None:
    async with serving(scripted([]), tmp_path) as hub:
        served = await hub.create(ANN, ConversationSpec(), "c1")

        with anyio.fail_after(BOUND):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(served.conversation.close)
                await until(lambda: hub.open_ones.find("c1") is not served)
                assert await hub.open(ANN, "c1") is not served
        row = await hub.records.find("c1")
        assert row is not None
        assert row.is_open  # else it would not go on after a crash


async def test_a_creation_for_which_there_is_no_room_leaves_nothing(tmp_path: Path) -> None:
    limits = {"open_conversations": 1}
    async with serving(scripted([call("hang")], hang), tmp_path, limits=limits) as hub:
        working = await hub.create(ANN, ConversationSpec())
        await working.conversation.start("go")
        with pytest.raises(TooBusy):
            await hub.create(ANN, ConversationSpec())
        assert len(await hub.records.all()) == 1
        assert len(list((tmp_path / "root").iterdir())) == 1


@pytest.mark.parametrize("step", some_quick(range(1, 20), 4))
async def test_a_creation_that_fails_at_any_step_is_made_by_the_next_request(tmp_path: Path, step: int) -> None:
    disk = FaultyDisk()
    store = FileStore(tmp_path / "store", disk=disk)
    spec = ConversationSpec(title="t", secrets={"TOKEN": SecretStr("a-very-long-value")})
    with anyio.fail_after(30):
        async with serving(scripted([say("done")]), tmp_path, store=store) as hub:
            await hub.is_caught_up.wait()
            disk.fail(at=step, times=None)
            try:
                await hub.create(ANN, spec, "c1")
            except StoreError:
                assert not hub.open_ones.is_open("c1")
                assert hub.open_ones.opening.host.conversations == ()
            disk.normalize()
            if not await hub.open_ones.has_log("c1"):
                assert await hub.records.find("c1") is None
                assert list((tmp_path / "root").iterdir()) == []
                await hub.create(ANN, ConversationSpec(), "c2")
                return
            served = await hub.create(ANN, spec, "c1")
            assert served.info().title == "t"
            assert (await served.conversation.run("go")).text == "done"


async def test_a_full_disk_ends_one_run_and_nothing_else(tmp_path: Path) -> None:
    disk = FaultyDisk()
    store = FileStore(tmp_path / "store", disk=disk)
    with anyio.fail_after(30):
        async with serving(scripted([say("a"), say("b")]), tmp_path, store=store) as hub:
            served = await hub.create(ANN, ConversationSpec(), "c1")
            other = await hub.create(ANN, ConversationSpec(), "c2")
            disk.fail("write", times=None)
            with pytest.raises(AgentcoreError):
                await served.conversation.run("go")
            disk.normalize()
            again = await hub.open(ANN, "c1")
            assert (await again.conversation.run("go")).text == "a"
            assert (await other.conversation.run("go")).text == "b"


async def test_a_row_that_can_not_be_read_does_not_keep_the_server_from_starting(tmp_path: Path) -> None:
    async with serving(scripted([]), tmp_path) as hub:
        await hub.create(ANN, ConversationSpec(), "c1")
        await hub.create(ANN, ConversationSpec(), "c2")
    damage(tmp_path, "UPDATE conversations SET spec = '{\"of\": \"another version\"}', is_open = 1 WHERE id = 'c1'")
    async with serving(scripted([]), tmp_path) as hub:
        await hub.is_caught_up.wait()
        assert (await hub.open(ANN, "c2")).id == "c2"


async def test_a_creation_that_was_killed_before_its_log_was_made_is_removed_at_the_start(tmp_path: Path) -> None:
    async with serving(scripted([]), tmp_path) as hub:
        row = (await hub.create(ANN, ConversationSpec(), "c1")).row
    statement = f"INSERT INTO conversations SELECT 'c2', owner, digest, spec, profile, workspace, is_local, created, 0, 1, 0, 0 FROM conversations WHERE id = '{row.id}'"
    damage(tmp_path, statement)
    async with serving(scripted([]), tmp_path) as hub:
        await hub.is_caught_up.wait()
        assert await hub.records.find("c2") is None
        assert not (tmp_path / "store" / "c2").exists()


async def test_one_that_was_deleted_is_not_made_anew_by_who_opens_it_again(tmp_path: Path) -> None:
    async with serving(scripted([]), tmp_path) as hub:
        await hub.create(ANN, ConversationSpec(), "c1")
        assert (await hub.create_or_open(ANN, ConversationSpec(), "c1", create=False))[1] is False
        await hub.delete(ANN, "c1")
        with pytest.raises(ConversationNotFound):
            await hub.create_or_open(ANN, ConversationSpec(), "c1", create=False)
        assert await hub.records.all() == []


async def test_a_damaged_database_is_named_and_a_damaged_index_is_made_anew(tmp_path: Path) -> None:
    store = tmp_path / "store"
    app = create_app(ServeSettings(store=store, root=tmp_path / "root"), agents={"coder": scripted([])})
    async with app.lifespan():
        pass
    (store / "index.sqlite").write_bytes(b"not a database " * 999)
    async with app.lifespan():
        pass
    (store / "serve.sqlite").write_bytes(b"not a database " * 999)
    with pytest.raises(DatabaseDamaged, match=r"serve\.sqlite cannot be used"):
        async with app.lifespan():
            pass


async def test_a_list_that_can_not_be_written_fails_no_deletion_and_no_fork(tmp_path: Path) -> None:
    async with serving(scripted([say("x")]), tmp_path) as hub:
        served = await hub.create(ANN, ConversationSpec(), "c1")
        await served.conversation.run("go")
        await hub.indexing.flush()
        damage(tmp_path, "DROP TABLE listed", "index.sqlite")
        assert await hub.fork(ANN, served, Fork(conversation="copy")) == "copy"
        await hub.delete(ANN, "c1")
        assert await hub.records.find("c1") is None
    async with serving(scripted([]), tmp_path) as hub:
        await hub.is_caught_up.wait()
        assert [info.id for info in (await hub.list(ANN)).read().items] == ["copy"]


@pytest.mark.parametrize("leaves", [(), ("file",)])
async def test_a_creation_whose_workspace_cannot_be_made_leaves_no_empty_folder(
    leaves: tuple[str, ...], tmp_path: Path
) -> None:
    def refuse(folder: str) -> Workspace:
        for name in leaves:
            (Path(folder) / name).touch()
        raise WorkspaceError("There is no place here.")

    settings = ServeSettings(store=tmp_path / "store", root=tmp_path / "root", auth=False, workspaces=refuse)
    app = create_app(settings, agents={"coder": Agent(llm=ScriptedLLM([]))})
    async with app.lifespan():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8420", timeout=60) as client:
            answer = await client.post("/api/v1/conversations", json={})
            assert (answer.status_code, "There is no place here." in answer.text) == (409, True), answer.text
    assert len(list((tmp_path / "root").iterdir())) == len(leaves)
