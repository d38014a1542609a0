"""Servers, clients and connections that end while a conversation works, and what the program that waits gets to know."""

from __future__ import annotations

import asyncio  # noqa: TID251 it is about its own cancellation
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator, Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx
import pytest
import sniffio

from agentcore import LLM, Agent, Conversation, FileStore, tool
from agentcore.errors import ConnectionLost
from agentcore.events import ActionStarted, ConversationStatus
from agentcore.record import read_log
from agentcore.remote import RemoteWorkspace
from agentcore.testing import ChatProvider, Gate, call, say, serve_provider
from agentcore.testing.conversation_place import ScriptLines, running, until, until_has
from agentcore_tools import run_tool
from cutting_proxy import cutting_proxy
from ending import left_running, open_server


@pytest.fixture
async def provider() -> AsyncGenerator[ChatProvider]:
    with anyio.fail_after(100):
        async with serve_provider([]) as provider:
            yield provider


def agent_at(provider: ChatProvider, replies: ScriptLines, *tools: Any) -> Agent:
    """Make an agent whose model plays a script."""
    name = provider.add_script(replies)
    return Agent(
        llm=LLM(f"openai/{name}", base_url=provider.base_url, api_key="sk-of-the-client", num_retries=0), tools=tools
    )


def _port(url: str) -> int:
    port = urlsplit(url).port
    assert port is not None
    return port


@pytest.mark.slow
async def test_a_run_outlives_a_server_that_is_replaced(tmp_path: Path, provider: ChatProvider) -> None:
    gate = Gate()
    agent = agent_at(provider, [gate.hold(call("run", command="true")), say("done")], run_tool())
    async with open_server(tmp_path) as (server, url):
        async with Conversation(agent, RemoteWorkspace(url, path="work", reconnect_seconds=60)) as conversation:
            async with running(conversation) as begun:
                await gate.arrived()
                server.send_signal(signal.SIGTERM)
                async with httpx.AsyncClient(base_url=url) as client:
                    while (await client.get("/readyz")).status_code == 200:
                        await anyio.sleep(0.01)
                gate.open()
                assert await server.wait() == 0
                async with open_server(tmp_path, _port(url)):
                    await until(conversation, lambda: begun.outcome is not None or conversation.state.answer == "done")
            assert begun.result.status is ConversationStatus.FINISHED
            assert begun.result.text == "done"
    sent = {dict(request.headers).get("authorization") for request in provider.requests}
    assert sent == {"Bearer sk-of-the-client"}


@pytest.mark.slow
async def test_a_run_that_went_on_after_a_kill_is_still_ended_by_who_waits_for_it(
    tmp_path: Path, provider: ChatProvider
) -> None:
    first, second = Gate(), Gate()
    agent = agent_at(provider, [first.hold(say("lost")), second.hold(say("never"))])
    async with open_server(tmp_path) as (server, url):
        async with Conversation(agent, RemoteWorkspace(url, path="work", reconnect_seconds=60)) as conversation:
            async with running(conversation) as begun:
                await first.arrived()
                server.kill()
                await server.wait()
                async with open_server(tmp_path, _port(url)):
                    await second.arrived()
                    await until(conversation, lambda: conversation.state.is_working and conversation.state.head > 5)
                    begun.cancel()
                    await until(conversation, lambda: conversation.state.status is ConversationStatus.PAUSED)
                    assert conversation.state.status_code == "interrupt"
                    await conversation.close()
            assert begun.cancelled


@pytest.mark.slow
async def test_a_server_that_does_not_come_back_is_a_lost_connection(tmp_path: Path, provider: ChatProvider) -> None:
    gate = Gate()
    agent = agent_at(provider, [gate.hold(say("lost"))])
    async with open_server(tmp_path) as (server, url):
        workspace = RemoteWorkspace(url, path="work", reconnect_seconds=1)
        async with Conversation(agent, workspace) as conversation:

            async def kill() -> None:
                await gate.arrived()
                server.kill()

            async with anyio.create_task_group() as tasks:
                tasks.start_soon(kill)
                with pytest.raises(ConnectionLost):
                    await conversation.run("go")
            with pytest.raises(ConnectionLost):
                await conversation.send("still there?")


@pytest.mark.slow
async def test_a_connection_that_carries_nothing_is_made_anew(tmp_path: Path, provider: ChatProvider) -> None:
    gate = Gate()
    agent = agent_at(provider, [gate.hold(say("done"))])
    async with open_server(tmp_path) as (_, url), cutting_proxy(_port(url)) as proxy:
        async with Conversation(agent, RemoteWorkspace(proxy.url, path="work", reconnect_seconds=60)) as conversation:
            async with running(conversation) as begun:
                await gate.arrived()
                proxy.half_open()
                gate.open()
                accepted = proxy.accepted
                while proxy.accepted == accepted:  # after two pings that did not come
                    await anyio.sleep(0.1)
                proxy.flow()
            assert begun.result.text == "done"


_CLIENT = """
import sys, anyio
from agentcore import LLM, Agent, Conversation, tool
from agentcore.remote import RemoteWorkspace

@tool(resources=())
async def hang() -> str:
    "Never return."
    print("hanging", flush=True)
    await anyio.sleep_forever()

async def main(url, base_url, model):
    agent = Agent(llm=LLM(f"openai/{model}", base_url=base_url, api_key="sk-of-the-client"), tools=(hang,))
    async with Conversation(agent, RemoteWorkspace(url, path="work"), id="c1") as conversation:
        await conversation.run("go")

anyio.run(main, *sys.argv[1:])
"""


@pytest.mark.slow
async def test_a_client_that_is_killed_interrupts_nothing_and_the_next_one_has_its_call(
    tmp_path: Path, provider: ChatProvider, surroundings: dict[str, str]
) -> None:
    calls: list[str] = []

    @tool(resources=())
    def hang() -> str:
        """Never return."""
        calls.append("again")
        return "again"

    name = provider.add_script([call("hang"), say("done")])
    llm = LLM(f"openai/{name}", base_url=provider.base_url, api_key="sk-of-the-client")
    async with open_server(tmp_path) as (_, url):
        arguments = [sys.executable, "-c", _CLIENT, url, provider.base_url, name]
        async with await anyio.open_process(arguments, env=surroundings, stderr=subprocess.DEVNULL) as client:
            assert client.stdout is not None
            assert await client.stdout.receive() == b"hanging\n"
            client.kill()
        async with Conversation(
            Agent(llm=llm, tools=(hang,)), RemoteWorkspace(url, path="work"), id="c1"
        ) as conversation:
            assert conversation.state.is_working
            # The first program had begun: it is not done again, and nobody can say what came of it but a person.
            assert await conversation.interrupt_call(next(iter(conversation.state.open_actions)))
            await until(conversation, lambda: conversation.state.status is ConversationStatus.FINISHED)
            assert conversation.state.answer == "done"
    assert calls == []
    assert left_running(tmp_path) == []


async def _wait_for(run: Callable[[], Any], arrived: Callable[[], Any]) -> None:
    with pytest.raises(asyncio.TimeoutError):
        await asyncio.wait_for(run(), 3)
    await arrived()


async def _cancel_twice(run: Callable[[], Any], arrived: Callable[[], Any]) -> None:
    task = asyncio.ensure_future(run())
    await arrived()
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


@pytest.mark.slow
@pytest.mark.parametrize("cancel", [_wait_for, _cancel_twice])
async def test_cancelled_by_asyncio_itself_a_run_is_interrupted(
    tmp_path: Path, provider: ChatProvider, cancel: Any
) -> None:
    if sniffio.current_async_library() != "asyncio":
        pytest.skip("it is about asyncio's own cancellation")

    @tool(resources=())
    async def hang() -> str:
        """Never return."""
        await anyio.sleep_forever()
        return "never"

    agent = agent_at(provider, [call("hang"), say("on")], hang)
    async with open_server(tmp_path) as (_, url):
        async with Conversation(agent, RemoteWorkspace(url, path="work")) as conversation:
            await cancel(lambda: conversation.run("go"), lambda: until_has(conversation, ActionStarted))
            await until(conversation, lambda: not conversation.state.is_working)
            assert conversation.state.status is ConversationStatus.PAUSED
            assert (await conversation.run()).text == "on"
            state = await read_log(FileStore(tmp_path / "store"), conversation.id)
            assert state.snapshot() == conversation.state.snapshot()
