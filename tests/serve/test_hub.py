"""The hub: conversations are created once, opened on demand, closed when they rest, and reached by their owner alone."""

from __future__ import annotations

from pathlib import Path

import anyio
import pytest
from pydantic import SecretStr

from agentcore import FileStore, Limits
from agentcore.commands import Fork
from agentcore.conversation import Host
from agentcore.errors import ConversationLocked, ConversationNotFound, PathError
from agentcore.testing import call, say
from agentcore.tools import tool
from agentcore.wire.requests import ConversationSpec, WorkspaceSpecification
from agentcore_serve.followed import Followed
from agentcore_serve.refused import Refused, TooBusy
from agentcore_serve.served import Served
from agentcore_serve.store_lock import StoreInUse
from agentcore_serve.upkeep import delete_old, tidy
from agentcore_tools import terminal_tool
from hubs import ANN, BEN, Clock, serving
from talks import FINISHED, PAUSED, at_once, hang, ping, scripted, until


async def test_a_conversation_is_created_opened_again_and_runs(tmp_path: Path) -> None:
    spec = ConversationSpec(title="Fix it", tags={"team": "a"}, limits=Limits(steps=7))
    async with serving(scripted([say("one"), say("two")]), tmp_path) as hub:
        served = await hub.create(ANN, spec)
        assert (await served.conversation.run("go")).text == "one"
        await served.conversation.close()
        await served.ended.wait()
        again = await hub.open(ANN, served.id)
        assert again is not served
        assert again.info().title == "Fix it"
        assert again.info().tags == {"team": "a"}
        assert again.state.limits.steps == 7
        assert again.info().owner == "ann"


async def test_the_same_id_with_the_same_spec_is_the_same_conversation_and_with_another_is_refused(
    tmp_path: Path,
) -> None:
    async with serving(scripted([]), tmp_path) as hub:
        spec = ConversationSpec(title="a")
        served, is_new = await hub.create_or_open(ANN, spec, "c1")
        assert is_new
        assert await hub.create_or_open(ANN, spec, "c1") == (served, False)
        with pytest.raises(Refused) as refused:
            await hub.create(ANN, ConversationSpec(title="b"), "c1")
        assert refused.value.status == 409
        with pytest.raises(ConversationNotFound):
            await hub.create(BEN, spec, "c1")


async def test_many_who_create_one_id_at_once_share_it(tmp_path: Path) -> None:
    found: list[Served] = []
    async with serving(scripted([]), tmp_path) as hub:

        async def create() -> None:
            found.append(await hub.create(ANN, ConversationSpec(), "c1"))

        await at_once(*[create] * 8)
        assert len({id(each) for each in found}) == 1


async def test_another_owners_conversation_is_not_found(tmp_path: Path) -> None:
    async with serving(scripted([]), tmp_path) as hub:
        served = await hub.create(ANN, ConversationSpec())
        for attempt in (hub.open, hub.watch, hub.delete):
            with pytest.raises(ConversationNotFound):
                await attempt(BEN, served.id)
        await served.conversation.close()
        await served.ended.wait()
        with pytest.raises(ConversationNotFound):
            await hub.open(BEN, served.id)
        assert (await hub.list(BEN)).bodies == []
        assert len((await hub.list(ANN)).bodies) == 1


async def test_two_owners_on_this_machine_are_refused_unless_they_share_its_user(tmp_path: Path) -> None:
    async with serving(scripted([]), tmp_path, shared_user=False) as hub:
        await hub.create(ANN, ConversationSpec(workspace=WorkspaceSpecification(folder="a")))
        with pytest.raises(Refused, match="--shared-user"):
            await hub.create(BEN, ConversationSpec(workspace=WorkspaceSpecification(folder="b")))
    async with serving(scripted([]), tmp_path, shared_user=True) as hub:
        await hub.create(BEN, ConversationSpec(workspace=WorkspaceSpecification(folder="b")))


async def test_a_folder_outside_of_the_root_is_refused(tmp_path: Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "root" / "link").symlink_to(tmp_path)
    async with serving(scripted([]), tmp_path) as hub:
        for folder in ("..", "/etc", "link/x", "a\0b"):
            with pytest.raises(PathError):
                await hub.create(ANN, ConversationSpec(workspace=WorkspaceSpecification(folder=folder)))
        assert (await hub.list(ANN)).bodies == []


async def test_one_that_rests_is_closed_and_one_that_works_or_is_watched_is_not(tmp_path: Path) -> None:
    @tool(resources=())
    async def quick() -> str:
        return "x"

    clock = Clock()
    agents = {"resting": scripted([say("x")], quick), "working": scripted([call("hang")], hang)}
    async with serving(agents, tmp_path, clock) as hub:
        resting = await hub.create(ANN, ConversationSpec(agent="resting"))
        working = await hub.create(ANN, ConversationSpec(agent="working"))
        watched = await hub.create(ANN, ConversationSpec(agent="resting"))
        await working.conversation.start("go")
        with watched.watching():
            clock.time += 599
            assert await tidy(hub) == 0
            clock.time += 2
            assert await tidy(hub) == 1
            await resting.ended.wait()
            assert not hub.open_ones.is_open(resting.id)
            assert hub.open_ones.is_open(watched.id)
        clock.time += 700
        assert await tidy(hub) == 1
        assert hub.open_ones.is_open(working.id)
        await working.conversation.interrupt()


async def test_one_that_holds_a_shell_is_closed_a_day_later(tmp_path: Path) -> None:
    clock = Clock()
    shell = call("terminal", command="true", session="main")
    async with serving(scripted([shell, say("x")], terminal_tool()), tmp_path, clock) as hub:
        served = await hub.create(ANN, ConversationSpec())
        assert not hub.open_ones.holds_sessions(served.id)
        await served.conversation.run("go")
        assert hub.open_ones.holds_sessions(served.id)
        await until(lambda: served.used == clock.time)
        clock.time += 3_600
        assert await tidy(hub) == 0
        clock.time += 86_400
        assert await tidy(hub) == 1


async def test_room_is_made_by_what_rests_and_where_nothing_does_it_is_refused(tmp_path: Path) -> None:
    clock = Clock()
    async with serving(scripted([call("hang")] * 2, hang), tmp_path, clock, limits={"open_conversations": 2}) as hub:
        first = await hub.create(ANN, ConversationSpec())
        clock.time += 10
        second = await hub.create(ANN, ConversationSpec())
        clock.time += 10
        third = await hub.create(ANN, ConversationSpec())
        assert not hub.open_ones.is_open(first.id)
        await second.conversation.start("go")
        await third.conversation.start("go")
        clock.time += 10
        with pytest.raises(TooBusy) as busy:
            await hub.open(ANN, first.id)
        assert busy.value.status == 503
        assert busy.value.headers["Retry-After"]


async def test_one_that_a_request_is_carried_out_in_is_not_closed_for_room(tmp_path: Path) -> None:
    clock = Clock()
    async with serving(scripted([]), tmp_path, clock, limits={"open_conversations": 1}) as hub:
        served = await hub.create(ANN, ConversationSpec())
        with served.requested():
            clock.time += 3_600  # its run is not in the log yet, say
            assert await tidy(hub) == 0
            with pytest.raises(TooBusy):
                await hub.create(ANN, ConversationSpec())
        clock.time += 10
        await hub.create(ANN, ConversationSpec())
        assert not hub.open_ones.is_open(served.id)


async def test_as_many_run_as_may(tmp_path: Path) -> None:
    async with serving(scripted([call("hang")] * 9, hang), tmp_path, limits={"running_conversations": 2}) as hub:
        all_of_them = [await hub.create(ANN, ConversationSpec()) for _ in range(3)]
        for served in all_of_them[:2]:
            hub.admit_run(served)
        with pytest.raises(TooBusy) as busy:  # though neither log says yet that it works
            hub.admit_run(all_of_them[2])
        assert busy.value.status == 429
        for served in all_of_them[:2]:
            await served.conversation.start("go")
        hub.admit_run(all_of_them[0])  # joins
        with pytest.raises(TooBusy):
            hub.admit_run(all_of_them[2])
        await all_of_them[0].conversation.interrupt()
        hub.admit_run(all_of_them[2])


async def test_a_log_that_another_process_holds_is_watched_and_not_commanded(tmp_path: Path) -> None:
    async with serving(scripted([say("here")]), tmp_path, limits={"follow_seconds": 0.01}) as hub, Host() as elsewhere:
        served = await hub.create(ANN, ConversationSpec())
        await served.conversation.close()
        await served.ended.wait()
        # Another store object: the lock is between open files, as it is between processes.
        store = FileStore(tmp_path / "store", durability="flush")
        other = await elsewhere.open(scripted([say("there")]), id=served.id, store=store)
        with pytest.raises(ConversationLocked, match="process"):
            await hub.open(ANN, served.id)
        followed = await hub.watch(ANN, served.id)
        assert isinstance(followed, Followed)
        assert followed.info().holder is not None
        assert await hub.watch(ANN, served.id) is followed
        with followed.watching():
            await other.run("go")
            while followed.state.head < other.state.head:
                await followed.head_signal.wait()
            assert followed.state.snapshot() == other.state.snapshot()
            await other.close()
            while not followed.head_signal.closed:
                await followed.head_signal.wait()
        assert isinstance(await hub.watch(ANN, served.id), Served)


async def test_a_log_of_another_program_is_shown_to_administrators_alone(tmp_path: Path) -> None:
    store = FileStore(tmp_path / "store", durability="flush")
    async with Host() as host:
        conversation = await host.open(scripted([say("x")]), id="mine", store=store)
        await conversation.run("go")
    async with serving(scripted([]), tmp_path) as hub:
        await hub.is_caught_up.wait()
        assert [info.id for info in (await hub.list(ANN)).read().items] == ["mine"]
        assert (await hub.list(BEN)).bodies == []
        assert (await hub.watch(ANN, "mine")).info().problem is not None
        with pytest.raises(Refused, match="not made by this server"):
            await hub.open(ANN, "mine")
        for attempt in (hub.open, hub.watch):
            with pytest.raises(ConversationNotFound):
                await attempt(BEN, "mine")


async def test_a_second_server_on_a_store_is_refused_with_the_process_id_of_the_first(tmp_path: Path) -> None:
    async with serving(scripted([]), tmp_path):
        with pytest.raises(StoreInUse, match=r"process [0-9]+ already"):
            async with serving(scripted([]), tmp_path):
                pass
    async with serving(scripted([]), tmp_path):
        pass


async def test_deleting_leaves_nothing_and_the_id_may_be_used_again(tmp_path: Path) -> None:
    async with serving(scripted([say("x")] * 3), tmp_path) as hub:
        served = await hub.create(ANN, ConversationSpec(title="a"), "c1")
        await hub.delete(ANN, "c1")
        assert served.ended.is_set()
        with pytest.raises(ConversationNotFound):
            await hub.open(ANN, "c1")
        assert (await hub.list(ANN)).bodies == []
        assert not (tmp_path / "store" / "c1").exists()
        again = await hub.create(ANN, ConversationSpec(title="b"), "c1")
        assert again.info().title == "b"
        await again.conversation.close()
        await hub.delete(ANN, "c1")  # one that is closed, too
        assert not (tmp_path / "store" / "c1").exists()


async def test_what_is_too_old_is_deleted(tmp_path: Path) -> None:
    async with serving(scripted([say("x")]), tmp_path, retain_days=1) as hub:
        old = await hub.create(ANN, ConversationSpec(), "old")
        await old.conversation.close()
        await old.ended.wait()
        await hub.create(ANN, ConversationSpec(), "open")
        await hub.list(ANN)
        assert await delete_old(hub) == 0
        now = hub.wall()
        hub.wall = lambda: now + 2 * 86_400
        assert await delete_old(hub) == 1
        assert [info.id for info in (await hub.list(ANN)).read().items] == ["open"]


async def test_a_fork_belongs_to_the_owner_and_is_listed(tmp_path: Path) -> None:
    async with serving(scripted([say("x"), say("y")]), tmp_path) as hub:
        served = await hub.create(ANN, ConversationSpec(title="a"))
        await served.conversation.run("go")
        copy = await hub.fork(ANN, served, Fork(conversation="copy"))
        assert {info.id for info in (await hub.list(ANN)).read().items} == {served.id, copy}
        opened = await hub.open(ANN, copy)
        assert opened.info().owner == "ann"
        assert (await opened.conversation.run("more")).text == "y"
        with pytest.raises(ConversationNotFound):
            await hub.open(BEN, copy)
        with pytest.raises(Refused):
            await hub.fork(ANN, served, Fork(conversation="copy"))


async def test_secrets_outlive_closing_and_come_again_with_the_same_spec_after_a_restart(tmp_path: Path) -> None:
    spec = ConversationSpec(secrets={"TOKEN": SecretStr("a-very-long-value")})
    async with serving(scripted([say("a-very-long-value"), say("a-very-long-value")]), tmp_path) as hub:
        served = await hub.create(ANN, spec, "c1")
        await served.conversation.close()
        await served.ended.wait()
        again = await hub.open(ANN, "c1")
        await again.conversation.run("go")
    kept = b"".join(path.read_bytes() for path in (tmp_path / "store").rglob("*") if path.is_file())
    assert b"a-very-long-value" not in kept
    async with serving(scripted([say("a-very-long-value")]), tmp_path) as hub:
        again = await hub.create(ANN, spec, "c1")
        await again.conversation.run("go")
        assert "a-very-long-value" not in again.state.events[-1].model_dump_json()


async def test_draining_pauses_and_refuses_and_the_next_start_goes_on(tmp_path: Path) -> None:
    reached, release = anyio.Event(), anyio.Event()

    @tool(resources=())
    async def hold() -> str:
        reached.set()
        await release.wait()
        return "held"

    async with serving(scripted([call("hold"), say("x")], hold), tmp_path) as hub:
        served = await hub.create(ANN, ConversationSpec())
        await served.conversation.start("go")
        await reached.wait()

        async def let_go() -> None:
            await until(lambda: served.state.pause_requested)
            with pytest.raises(Refused, match="about to end"):
                await hub.create(ANN, ConversationSpec())
            with pytest.raises(Refused, match="about to end"):
                hub.admit_run(served)
            release.set()

        await at_once(hub.drain, let_go)
        assert served.state.status is PAUSED
    async with serving(scripted([say("done")], hold), tmp_path) as hub:
        await hub.crashes_handled.wait()
        again = await hub.open(ANN, served.id)
        assert (await again.conversation.run()).status is FINISHED  # what the end of the server cut off goes on


async def test_a_profile_that_is_set_is_the_one_it_is_opened_with_again(tmp_path: Path) -> None:
    async with serving({"a": scripted([say("a")], ping), "b": scripted([say("b")], ping)}, tmp_path) as hub:
        served = await hub.create(ANN, ConversationSpec(agent="a"))
        await served.conversation.set_agent(await hub.agent("b"))
        await hub.agent_was_set(served, "b")
        await served.conversation.close()
        await served.ended.wait()
        assert (await (await hub.open(ANN, served.id)).conversation.run("go")).text == "b"
        with pytest.raises(Refused):
            await hub.agent("c")
