"""Conversations on a server: what the contract does not ask, since it is of a server only."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import anyio
import httpx
import pytest

from agentcore import Agent, Conversation, FileStore, Host, MemoryStore, tool
from agentcore.errors import ConversationClosed, ConversationError, NotRecorded, ServerError
from agentcore.events import ObservationEvent, WorkspaceRestored
from agentcore.llm import LLM
from agentcore.remote import RemoteWorkspace
from agentcore.remote.client import ServerClient
from agentcore.remote.follower import Follower
from agentcore.testing import ChatProvider, ScriptedLLM, call, say, serve_provider
from agentcore.testing.conversation_place import ScriptLines
from agentcore.tools import ToolContext
from agentcore.wire.frames import EventFrame, Frame
from agentcore_serve import ServeSettings, create_app
from agentcore_serve.app import ServeApp
from cutting_proxy import cutting_proxy
from serving import serve
from talks import BOUND, until


class Place(NamedTuple):
    url: str
    provider: ChatProvider

    def agent(self, replies: ScriptLines, *tools: Any) -> Agent:
        name = self.provider.add_script(replies)
        llm = LLM(f"openai/{name}", base_url=self.provider.base_url, api_key="none-at-all", num_retries=0)
        return Agent(llm=llm, tools=tools)

    def workspace(self, **options: Any) -> RemoteWorkspace:
        return RemoteWorkspace(self.url, reconnect_seconds=20, **options)


@pytest.fixture
def app(tmp_path: Path) -> ServeApp:
    settings = ServeSettings(
        store=tmp_path / "store", root=tmp_path / "root", auth=False, model_addresses=("127.0.0.0/8", "localhost")
    )
    profile = Agent(llm=ScriptedLLM(lambda _: say("from the server's own")))
    return create_app(settings, agents={"coder": profile}, store=FileStore(tmp_path / "store", durability="flush"))


@pytest.fixture
async def place(app: ServeApp) -> AsyncGenerator[Place]:
    async with serve_provider([]) as provider, serve(app) as server:
        yield Place(server.url, provider)


@tool
async def reveal(name: str, ctx: ToolContext) -> str:
    """Say how long a secret is."""
    return f"{len(await ctx.secrets.get(name))} characters"


async def test_the_server_s_own_agent_works_by_its_name_or_as_the_default(place: Place) -> None:
    async with Conversation(None, place.workspace(agent="coder")) as conversation:
        assert (await conversation.run("go")).text == "from the server's own"
    async with Conversation(None, place.workspace()) as conversation:
        assert (await conversation.run("go")).text == "from the server's own"


async def test_a_conversation_is_resumed_where_it_worked_without_its_folder_being_named(place: Place) -> None:
    agent = place.agent([say("one"), say("two")])
    async with Conversation(agent, place.workspace(path="somewhere")) as conversation:
        await conversation.run("go")
        root = conversation.workspace.root
    async with Conversation(agent, place.workspace(), id=conversation.id) as resumed:
        assert resumed.workspace.root == root
        assert (await resumed.run("on")).text == "two"


async def test_secrets_that_were_added_reach_tools_of_the_client_values_or_functions(place: Place) -> None:
    async def later() -> str:
        return "twelve chars"

    replies = [call("reveal", name="TEXT"), call("reveal", name="LATER"), say("done")]
    async with Conversation(place.agent(replies, reveal), place.workspace()) as conversation:
        await conversation.add_secrets({"TEXT": "hunter2hunter2", "LATER": later})
        await conversation.run("go")
        texts = [event.text for event in conversation.state.events if isinstance(event, ObservationEvent)]
    assert texts == ["14 characters", "12 characters"]


async def test_a_store_beside_a_server_is_refused(place: Place) -> None:
    with pytest.raises(ConversationError, match="keeps the log of its conversations"):
        async with Conversation(place.agent([]), place.workspace(), store=MemoryStore()):
            pass


async def test_a_model_that_can_not_travel_is_named(place: Place) -> None:
    with pytest.raises(ConversationError, match=r"the model \(ScriptedLLM"):
        async with Conversation(Agent(llm=ScriptedLLM([])), place.workspace()):
            pass


async def test_without_the_program_s_tools_a_conversation_names_the_one_that_is_missing(place: Place) -> None:
    agent = place.agent([call("reveal", name="X"), say("done")], reveal)
    async with Conversation(agent, place.workspace(), secrets={"X": "hunter2hunter2"}) as conversation:
        await conversation.run("go")
    with pytest.raises(NotRecorded, match="reveal"):
        async with Conversation(None, place.workspace(), id=conversation.id):
            pass


async def test_of_two_programs_that_open_it_differently_the_later_one_has_it(place: Place) -> None:
    first, second = place.agent([say("first")]), place.agent([say("second")])
    async with Conversation(first, place.workspace()) as one:
        await one.run("go")
        async with Conversation(second, place.workspace(), id=one.id) as two:
            assert (await two.run("on")).text == "second"
            with anyio.fail_after(20):
                with pytest.raises((ServerError, ConversationError), match="another spec"):
                    while True:
                        await one.send("still there?")
                        await anyio.lowlevel.checkpoint()


async def test_a_host_leaves_conversations_of_a_server_to_their_handles(place: Place) -> None:
    async with Host() as host:
        with pytest.raises(ConversationError, match="holds conversations itself"):
            await host.open(place.agent([say("done")]), place.workspace())


async def test_of_two_clients_each_sees_what_the_other_does(place: Place) -> None:
    agent = place.agent([say("one"), say("two")])
    async with (
        Conversation(agent, place.workspace(path="shared")) as one,
        Conversation(agent, place.workspace(path="shared"), id=one.id) as two,
    ):
        await one.run("go")
        with anyio.fail_after(20):
            async for event in two.events():
                if event.seq == one.state.head:
                    break
        assert two.state.snapshot() == one.state.snapshot()
        assert (await two.run("on")).text == "two"


async def test_after_a_cut_the_agent_that_was_set_keeps_its_own_key(place: Place) -> None:
    async with cutting_proxy(int(place.url.rpartition(":")[2])) as proxy:
        first, second = place.agent([say("one")]), place.agent([say("two"), say("three")])
        assert isinstance(second.llm, LLM)
        other = second.llm.model_copy(update={"api_key": "of-the-other-model"})
        async with Conversation(first, RemoteWorkspace(proxy.url, reconnect_seconds=20)) as conversation:
            await conversation.run("go")
            await conversation.set_agent(Agent(llm=other))
            await conversation.run("on")
            await proxy.cut()
            result = await conversation.run("and on")
    assert result.text == "three"
    assert [request.headers["authorization"] for request in place.provider.requests] == [
        "Bearer none-at-all",
        "Bearer of-the-other-model",
        "Bearer of-the-other-model",
    ]


async def test_what_one_client_deletes_is_not_made_anew_by_another_that_follows_it(place: Place) -> None:
    agent = place.agent([say("one")])
    async with Conversation(agent, place.workspace(path="shared")) as one:
        async with Conversation(agent, place.workspace(path="shared"), id=one.id) as two:
            await one.run("go")
            await one.delete()
            with anyio.fail_after(20):
                async for _ in two.events():
                    pass
            with pytest.raises(ConversationClosed):
                await two.send("still there?")
    async with httpx.AsyncClient() as client:
        assert (await client.get(f"{place.url}/api/v1/conversations/{one.id}")).status_code == 404


async def test_a_rewind_with_files_returns_when_the_state_here_has_them_back(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    agent = place.agent([say("one"), say("two")])
    async with Conversation(agent, place.workspace(path="somewhere")) as conversation:
        first = await conversation.run("one")
        await conversation.checkpoint()
        await conversation.run("two")
        held: list[Callable[[], None]] = []
        answered, done = anyio.Event(), anyio.Event()
        feed, request = Follower.feed, ServerClient.request

        def hold(follower: Follower, frame: Frame) -> None:
            if held or (isinstance(frame, EventFrame) and isinstance(frame.event, WorkspaceRestored)):
                held.append(partial(feed, follower, frame))
            else:
                feed(follower, frame)

        async def note_answer(*args: Any, **options: Any) -> Any:
            response = await request(*args, **options)
            answered.set()
            return response

        async def rewind() -> None:
            await conversation.rewind(first.last_seq, files=True)
            done.set()

        monkeypatch.setattr(Follower, "feed", hold)
        monkeypatch.setattr(ServerClient, "request", note_answer)
        with anyio.fail_after(BOUND):
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(rewind)
                await until(lambda: held)
                await answered.wait()
                await anyio.wait_all_tasks_blocked()
                assert not done.is_set()
                for each in held:
                    each()
                await done.wait()
