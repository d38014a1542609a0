"""Servers that others made, of both eras of the protocol, as other processes: what they offer can be used, and nothing of them is left."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from agentcore import ObservationEvent
from agentcore.mcp import MCPToolset
from agentcore.messages import ImageBlock
from agentcore.testing import call, calls, say
from agentcore.testing.http import HTTPRequest, Responder, serve_http
from mcp_opened import Opened
from mcp_real import chromium, real_server, really_opened, until_none_is_left
from talks import events_of, talk

pytestmark = pytest.mark.slow

MODERN, OLDER = "2026-07-28", "2025-11-25"


def era(it: Opened) -> str:
    """Return the version of the protocol that was agreed on."""
    toolset: Any = it.toolset
    return toolset.protocol_version


def git(folder: Path, *command: str) -> None:
    if shutil.which("git") is None:
        pytest.skip("needs git: install git")
    who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.org"]
    subprocess.run(["git", "-C", str(folder), *who, *command], check=True, capture_output=True)


async def test_the_time_is_converted(tmp_path: Path) -> None:
    async with really_opened("time", tmp_path, "--local-timezone", "Europe/Paris") as it:
        assert era(it) == MODERN
        assert {"mcp__time__get_current_time", "mcp__time__convert_time"} <= set(it.names)
        asked = {"source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "UTC"}
        observation = await it.call("convert_time", **asked)
        shown: Any = observation.to_data()["structured"]
        assert (shown["target"]["datetime"][-14:], shown["time_difference"]) == ("03:00:00+00:00", "-9.0h")
        wrong = await it.call("convert_time", **{**asked, "time": "noon"})
        assert wrong.is_error


async def test_a_repository_is_looked_at_and_committed_to(tmp_path: Path) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch=main")
    git(tmp_path, "config", "user.name", "Ada")
    git(tmp_path, "config", "user.email", "ada@example.org")
    (tmp_path / "notes.txt").write_text("one\n")
    async with really_opened("git", tmp_path, "--repository", str(tmp_path)) as it:
        assert era(it) == MODERN
        place = str(tmp_path)
        assert "notes.txt" in await it.text("git_status", repo_path=place)
        await it.call("git_add", repo_path=place, files=["notes.txt"])
        await it.call("git_commit", repo_path=place, message="Keep notes")
        assert "Keep notes" in await it.text("git_log", repo_path=place)
        assert "clean" in await it.text("git_status", repo_path=place)


async def test_a_page_is_fetched_as_far_as_its_robots_txt_permits(tmp_path: Path) -> None:
    asked: list[str] = []

    async def pages(request: HTTPRequest, respond: Responder) -> None:
        asked.append(request.path)
        text = "User-agent: *\nDisallow: /private\n" if request.path == "/robots.txt" else "The price is rounded up."
        await respond.send(200, text.encode(), {"Content-Type": "text/plain"})

    async with serve_http(pages) as server, really_opened("fetch", tmp_path, "--allow-private-ips") as it:
        assert era(it) == MODERN
        assert "The price is rounded up." in await it.text("fetch", url=f"{server.url}/prices")
        assert asked == ["/robots.txt", "/prices"]
        refused = await it.call("fetch", url=f"{server.url}/private")
        assert refused.is_error
        assert "/private" not in asked


class Person:
    """A person who answers the questions of a server."""

    def __init__(self, it: Opened, answer: JsonValue) -> None:
        self.asked: list[tuple[str, Mapping[str, JsonValue] | None]] = []
        self._answer = answer
        host: Any = it.host
        host.question = self._question

    async def _question(self, text: str, schema: Mapping[str, JsonValue] | None, options: Sequence[str]) -> JsonValue:
        del options
        self.asked.append((text, schema))
        return self._answer


async def test_the_server_that_has_everything(tmp_path: Path) -> None:
    async with really_opened("everything", tmp_path) as it:
        assert era(it) == OLDER
        assert it.toolset.instructions is not None
        assert "was written by the MCP server 'everything'" in it.toolset.instructions
        assert await it.text("echo", message="hello") == "Echo: hello"
        await it.call("trigger-long-running-operation", duration=0.2, steps=2)
        assert list(it.host.shown) == ["1 of 2\n", "2 of 2\n"]
        picture = await it.call("get-tiny-image")
        assert [block.media_type for block in picture.blocks() if isinstance(block, ImageBlock)] == ["image/png"]
        weather: Any = (await it.call("get-structured-content", location="New York")).to_data()["structured"]
        assert weather.keys() == {"temperature", "conditions", "humidity"}
        assert f"file://{tmp_path}" in await it.text("get-roots-list")
        # A real server says of this one that it only reads. That permits nothing.
        assert not it.tool("get-env").annotations.read_only

        person = Person(it, {"name": "Ada", "check": True, "email": "ada@example.org", "integer": 3})
        answer = await it.text("trigger-elicitation-request")
        assert "Ada" in answer
        ((text, schema),) = person.asked
        assert text.startswith("The MCP server 'everything' asks: ")
        assert schema is not None

        listed = await it.text("read_resource")
        uri = next(line.partition(" ")[0] for line in listed.splitlines() if line.startswith("demo://"))
        assert uri in await it.text("read_resource", uri=uri)
    assert it.notices == []


async def test_files_are_read_and_written_in_the_root_alone(tmp_path: Path) -> None:
    root, secret = tmp_path / "root", tmp_path / "secret.txt"
    root.mkdir()
    secret.write_text("hush")
    # The server asks for the roots of its client, which are the workspace; its own argument it has besides.
    async with really_opened("filesystem", root, str(root)) as it:
        assert era(it) == OLDER
        await it.call("write_file", path=str(root / "a.txt"), content="one\ntwo\n")
        assert (root / "a.txt").read_text() == "one\ntwo\n"
        edits: JsonValue = [{"oldText": "two", "newText": "three"}]
        await it.call("edit_file", path=str(root / "a.txt"), edits=edits)
        assert "three" in await it.text("read_text_file", path=str(root / "a.txt"))
        refused = await it.call("read_text_file", path=str(secret))
        assert refused.is_error
        assert "hush" not in str(refused.blocks())
        assert await it.text("list_allowed_directories") == f"Allowed directories:\n{root}"


async def test_what_one_call_stores_the_next_one_and_the_next_opening_find(tmp_path: Path) -> None:
    file = str(tmp_path / "memory.jsonl")
    ada: JsonValue = [{"name": "Ada", "entityType": "person", "observations": ["likes tea"]}]
    async with really_opened("memory", tmp_path, MEMORY_FILE_PATH=file) as it:
        assert era(it) == OLDER
        await it.call("create_entities", entities=ada)
        assert "likes tea" in await it.text("search_nodes", query="Ada")
    async with really_opened("memory", tmp_path, MEMORY_FILE_PATH=file) as it:
        assert "likes tea" in await it.text("read_graph")


async def test_a_browser_opens_a_page_and_clicks(tmp_path: Path) -> None:
    page = b"<title>Prices</title><button onclick=\"document.title = this.innerText = 'Rounded up'\">Round</button>"

    async def pages(request: HTTPRequest, respond: Responder) -> None:
        del request
        await respond.send(200, page, {"Content-Type": "text/html"})

    browser = ("--headless", "--isolated", "--no-sandbox", "--browser", "chromium", "--executable-path", chromium())
    async with serve_http(pages) as server, really_opened("playwright", tmp_path, *browser) as it:
        assert era(it) == OLDER
        await it.call("browser_navigate", url=server.url)
        shown = await it.text("browser_snapshot")
        assert "Prices" in shown
        button = shown.partition('button "Round" [ref=')[2].partition("]")[0]
        await it.call("browser_click", element="the button", target=button)
        assert "Rounded up" in await it.text("browser_snapshot")
        picture = await it.call("browser_take_screenshot", scale="css")
        assert any(isinstance(block, ImageBlock) for block in picture.blocks())


async def test_a_conversation_uses_servers_of_both_eras(tmp_path: Path) -> None:
    servers = [real_server("time", mark=tmp_path), real_server("everything", mark=tmp_path)]
    asked = {"source_timezone": "Asia/Tokyo", "time": "12:00", "target_timezone": "UTC"}
    script = [
        calls(call("mcp__time__convert_time", **asked), call("mcp__everything__get-sum", a=2, b=3)),
        say("It is 3 o'clock, and the sum is 5."),
    ]
    async with talk(script, *map(MCPToolset, servers), workspace=tmp_path) as conversation:
        assert (await conversation.run("go")).text == "It is 3 o'clock, and the sum is 5."
        time, total = (event.text for event in events_of(conversation, ObservationEvent))
        assert json.loads(time)["time_difference"] == "-9.0h"
        assert "5" in total
    await until_none_is_left(tmp_path)
