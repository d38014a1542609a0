"""The contract of conversations holds for those on a server, also over connections that are cut, delayed and half open."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

import anyio
import pytest

from agentcore import Agent, Conversation, FileStore
from agentcore.conversation import StreamDelta
from agentcore.llm import LLM, Model
from agentcore.record import ConversationState, read_log
from agentcore.remote.workspace import RemoteWorkspace
from agentcore.testing import (
    ChatProvider,
    ConversationContract,
    ConversationPlace,
    Request,
    ScriptLine,
    call,
    say,
    serve_provider,
)
from agentcore.testing.conversation_place import ScriptLines, opened
from agentcore.testing.conversation_watching_contract import WatchingContract
from agentcore.tools import ToolContext, tool
from agentcore_serve import ServeSettings, create_app
from agentcore_serve.app import ServeApp
from cutting_proxy import CuttingProxy, cutting_proxy
from serving import serve


class There:
    """Conversations of a server."""

    def __init__(self, store: FileStore, url: str, provider: ChatProvider) -> None:
        self.store = store
        self.url = url
        self.provider = provider

    def model(self, replies: ScriptLines) -> Model:
        name = self.provider.add_script(replies)
        return LLM(f"openai/{name}", base_url=self.provider.base_url, api_key="none-at-all", num_retries=0)

    def open(self, agent: Agent | None, **options: Any) -> AbstractAsyncContextManager[Conversation]:
        return Conversation(agent, RemoteWorkspace(self.url, path="work", reconnect_seconds=50), **options)

    async def read_state(self, conversation_id: str) -> ConversationState:
        return await read_log(self.store, conversation_id)


@pytest.fixture
def store(tmp_path: Path) -> FileStore:
    return FileStore(tmp_path / "store", durability="flush")


@pytest.fixture
def app(tmp_path: Path, store: FileStore) -> ServeApp:
    """Make a server whose clients' models may be on this machine."""
    settings = ServeSettings(
        store=tmp_path / "store", root=tmp_path / "root", auth=False, model_addresses=("127.0.0.0/8", "localhost")
    )
    return create_app(settings, store=store)


class TestOnAServer(ConversationContract):
    @pytest.fixture
    async def place(self, app: ServeApp, store: FileStore) -> AsyncGenerator[ConversationPlace]:
        async with serve_provider([]) as provider, serve(app) as server:
            yield There(store, server.url, provider)


class Troubles:
    """What a network does to the connections of a test, again and again: all are cut, delayed, or nothing comes through."""

    def __init__(self, proxy: CuttingProxy) -> None:
        self._proxy = proxy

    async def trouble(self) -> None:
        """Trouble the connections until cancelled."""
        proxy = self._proxy
        for number in count():
            # Longer each time: on a machine that is slow enough nothing would ever come through.
            await anyio.sleep(0.2 * 1.1**number)
            match number % 4:
                case 0:
                    await proxy.cut()
                case 1:
                    proxy.delay = 0.02
                case 2:
                    proxy.delay = 0.0
                    proxy.bytes_until_cut = {"down": 700, "up": 3_000}
                case _:
                    proxy.half_open()
                    await anyio.sleep(0.1)
                    proxy.flow()
                    await proxy.cut()


@asynccontextmanager
async def _behind_a_bad_network(app: ServeApp, store: FileStore) -> AsyncGenerator[There]:
    async with (
        serve_provider([]) as provider,
        serve(app) as server,
        cutting_proxy(server.port) as proxy,
        anyio.create_task_group() as tasks,
    ):
        tasks.start_soon(Troubles(proxy).trouble)
        yield There(store, proxy.url, provider)
        tasks.cancel_scope.cancel()


class LossyDeltas:
    """The tests of deltas where a connection may be cut while a piece is said: that piece does not come again."""

    async def test_words_come_piece_by_piece(self, place: ConversationPlace) -> None:
        words = "one two three"
        async with opened(place, lambda _: say(words)) as conversation:
            deltas = conversation.deltas()
            pieces: list[StreamDelta] = []
            while not pieces:
                assert (await conversation.run("go")).text == words
                pieces = [delta for delta in deltas.take() if delta.type == "text"]
            for piece in pieces:  # they tell where they belong, whatever was lost before them
                assert words[piece.offset :].startswith(piece.text)

    async def test_progress_of_a_tool_is_shown_and_not_kept(self, place: ConversationPlace) -> None:
        @tool
        async def work(ctx: ToolContext) -> str:
            """Work."""
            await ctx.progress("half of it")
            return "all of it"

        def reply(request: Request) -> ScriptLine:
            return say("done") if request.answers else call("work")

        async with opened(place, reply, work) as conversation:
            deltas = conversation.deltas()
            pieces: list[StreamDelta] = []
            while not pieces:
                assert (await conversation.run("go")).text == "done"
                pieces = [delta for delta in deltas.take() if delta.type == "progress"]
            assert {(piece.tool_name, piece.text) for piece in pieces} == {("work", "half of it")}
            assert "half of it" not in str(list(conversation.state.events))


@pytest.mark.slow
class TestWatchingOverABadNetwork(LossyDeltas, WatchingContract):
    @pytest.fixture
    async def place(self, app: ServeApp, store: FileStore) -> AsyncGenerator[ConversationPlace]:
        async with _behind_a_bad_network(app, store) as place:
            yield place


@pytest.mark.slow
class TestOverABadNetwork(LossyDeltas, ConversationContract):
    @pytest.fixture
    async def place(self, app: ServeApp, store: FileStore) -> AsyncGenerator[ConversationPlace]:
        async with _behind_a_bad_network(app, store) as place:
            yield place
