"""A server that is killed again and again while conversations work on it: nothing is lost, and nothing happens twice."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from contextlib import AsyncExitStack
from pathlib import Path
from urllib.parse import urlsplit

import anyio
import pytest

from agentcore import Agent, Conversation, FileStore, RunResult, tool
from agentcore.events import ConversationStatus, Event
from agentcore.record import read_log
from agentcore.remote.workspace import RemoteWorkspace
from agentcore_tools import run_tool
from ending import Fleet, Watcher, left_running, model_at, open_server, provider_process


async def _kill_again_and_again(folder: Path, *, conversations: int, watchers: int, kills: int, calls: int) -> None:
    notes = folder / "notes"
    notes.mkdir()
    store = FileStore(folder / "store")
    results: dict[str, RunResult] = {}
    seen: dict[str, list[Event]] = {}
    names = [f"c{number}" for number in range(conversations)]

    @tool(resources=())
    def note(text: str) -> str:
        """Write a line."""
        with notes.joinpath("here").open("a") as file:
            file.write(f"{text}\n")
        return "written"

    async with provider_process(notes) as model_url, AsyncExitStack() as servers:
        agent = Agent(llm=model_at(model_url), tools=(run_tool(), note))
        server, url = await servers.enter_async_context(open_server(folder, restarts="1000"))
        port = urlsplit(url).port
        assert port is not None

        async def work(name: str, opened: anyio.Event, ended: anyio.Event) -> None:
            async with Conversation(
                agent, RemoteWorkspace(url, path=name, reconnect_seconds=120), id=name
            ) as conversation:
                opened.set()
                results[name] = await conversation.run(f"{name} {calls}")
                seen[name] = list(conversation.state.events)
                await ended.wait()

        fleet = Fleet(
            [
                Watcher(url, names[each % conversations], ("sse", "ws")[each // conversations % 2])
                for each in range(watchers)
            ]
        )
        ended = anyio.Event()
        async with anyio.create_task_group() as tasks:
            for name in names:
                opened = anyio.Event()
                tasks.start_soon(work, name, opened, ended)
                await opened.wait()
            async with fleet.follow():
                chance = random.Random(7)
                total = conversations * calls * 6  # more than six events for each call
                for kill in range(1, kills + 1):
                    target = total * kill / (kills + 1) * (watchers / conversations) * chance.uniform(0.8, 1.0)
                    with anyio.move_on_after(30):
                        while fleet.total < target and len(results) < conversations:
                            await anyio.sleep(0.01)
                    server.kill()
                    await server.wait()
                    server, _ = await servers.enter_async_context(open_server(folder, port, restarts="1000"))
                while len(results) < conversations:
                    await anyio.sleep(0.01)
                logs = {name: await read_log(store, name) for name in names}
                for watcher in fleet.watchers:
                    await watcher.until(logs[watcher.conversation_id].head)
            ended.set()
        server.terminate()
        assert await server.wait() == 0
        logs = {name: await read_log(store, name) for name in names}
    for name in names:
        result = results[name]
        assert result.status is ConversationStatus.FINISHED, (name, result)
        assert result.text == f"{name} is done."
        assert [event.model_dump_json() for event in seen[name]] == [
            event.model_dump_json() for event in logs[name].events[: len(seen[name])]
        ]
    for watcher in fleet.watchers:
        log = [json.loads(event.model_dump_json()) for event in logs[watcher.conversation_id].events]
        assert watcher.seen == log[: len(watcher.seen)]
    for place in ("here", "there"):
        lines = notes.joinpath(place).read_text().split("\n")
        twice = {line: count for line, count in Counter(filter(None, lines)).items() if count > 1}
        assert not twice, (place, twice)
        assert len(set(lines)) > conversations  # most calls were made
    assert left_running(folder) == []


@pytest.mark.slow
async def test_a_few_conversations_survive_a_server_that_is_killed(tmp_path: Path) -> None:
    with anyio.fail_after(120):
        await _kill_again_and_again(tmp_path, conversations=3, watchers=6, kills=2, calls=4)


@pytest.mark.slow
async def test_fifty_conversations_and_a_hundred_watchers_survive_a_server_that_is_killed(tmp_path: Path) -> None:
    kills = 5 if "AGENTCORE_BOUNDED" in os.environ else 100
    with anyio.fail_after(60 + 30 * kills):
        await _kill_again_and_again(tmp_path, conversations=50, watchers=100, kills=kills, calls=4 + kills // 2)
