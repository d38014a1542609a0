"""What a log says of a server, and which server that is here: never one that only the log describes."""

from __future__ import annotations

import importlib
import json
import logging
import tomllib
from pathlib import Path
from typing import Any

import pytest
from pydantic import JsonValue

from agentcore.agent import Agent, record_agent, restore_agent
from agentcore.errors import MCPFileError, ToolNotFound
from agentcore.mcp import MCPServer, MCPToolset, mcp_toolsets, read_mcp_file, register_mcp_server
from agentcore.mcp.registry import MCPServerRegistry, resolve_mcp_server
from agentcore.testing import ScriptedLLM
from agentcore.tools import ToolsetSpec, prefixed, register_toolset, resolve_toolset

ROOT = Path(__file__).parents[2]
SECRET = MCPServer(name="secret", command="run", args=("--now",), env={"KEY": "hunter2"}, runs="workspace")


def write(folder: Path, servers: dict[str, Any]) -> Path:
    path = folder / ".mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}), "utf-8")
    return path


def test_a_record_has_a_name_and_a_hash_and_nothing_to_start_or_reach() -> None:
    record, missing = record_agent(Agent(llm=ScriptedLLM([]), tools=[MCPToolset(SECRET)]))
    assert record["toolsets"] == [{"name": "mcp", "params": {"name": "secret", "digest": SECRET.digest}}]
    assert not any("toolset" in each for each in missing)
    assert not any(part in json.dumps(record) for part in ("--now", "hunter2"))


def test_a_record_becomes_the_server_that_this_program_registered() -> None:
    toolset = prefixed(MCPToolset(SECRET), "my_")
    spec = toolset.record()
    assert spec is not None
    register_mcp_server(SECRET)
    assert resolve_toolset(spec) == toolset
    record, _ = record_agent(Agent(llm=ScriptedLLM([]), tools=[toolset]))
    assert restore_agent(dict(record), llm=ScriptedLLM([])).toolsets == (toolset,)


BAD_RECORDS: list[tuple[JsonValue, JsonValue, str]] = [
    ("gone", None, "this program has no MCP server of that name."),
    ("gone", "1", "this program has no MCP server of that name."),
    (None, None, "this program has no MCP server of that name."),
    (["x"], {}, "this program has no MCP server of that name."),
    ("x", "other", "its settings have changed since."),
    ("x", {}, "its settings have changed since."),
    ("two", None, "this program has several MCP servers of that name."),
]


@pytest.mark.parametrize(("name", "digest", "reason"), BAD_RECORDS)
def test_a_record_of_another_server_is_refused_with_what_to_do(name: JsonValue, digest: JsonValue, reason: str) -> None:
    registry = MCPServerRegistry()
    for server in (
        MCPServer(name="x", command="x"),
        MCPServer(name="two", command="1"),
        MCPServer(name="two", command="2"),
    ):
        registry.register(server)
    with pytest.raises(ToolNotFound, match="Pass --mcp FILE") as refused:
        registry.resolve(name, digest)
    assert reason in str(refused.value)


def test_a_name_alone_is_enough_where_it_means_one_server() -> None:
    registry = MCPServerRegistry()
    first, second = MCPServer(name="x", command="1"), MCPServer(name="x", command="2")
    registry.register(first)
    registry.register(first)
    assert registry.resolve("x").server == first
    registry.register(second)
    assert registry.resolve("x", second.digest).server == second


@pytest.mark.parametrize("params", [{}, {"name": "x", "command": "evil"}, {"server": {"name": "x", "command": "evil"}}])
def test_a_record_with_anything_else_is_refused(params: dict[str, JsonValue]) -> None:
    register_mcp_server(MCPServer(name="x", command="x"))
    with pytest.raises(ToolNotFound):
        resolve_toolset(ToolsetSpec(name="mcp", params=params))


def test_the_servers_of_a_file_are_toolsets_and_registered(tmp_path: Path) -> None:
    path = write(tmp_path, {"listed": {"command": "a"}, "off": {"command": "b", "disabled": True}})
    (toolset,) = mcp_toolsets(path)
    assert toolset == MCPToolset(MCPServer(name="listed", command="a", runs="workspace"))
    assert resolve_toolset(toolset.record()) == toolset
    (on_host,) = mcp_toolsets(read_mcp_file(path, runs="host"))
    assert on_host.server.runs == "host"
    with pytest.raises(ToolNotFound):
        resolve_mcp_server("off")


def test_a_bad_entry_is_logged_and_the_others_are_toolsets(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = write(tmp_path, {"good": {"command": "a"}, "bad": {"type": "carrier pigeon"}})
    with caplog.at_level(logging.WARNING, "agentcore"):
        assert [toolset.name for toolset in mcp_toolsets(str(path))] == ["good"]
    assert "There is no transport" in caplog.text


def test_a_file_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(MCPFileError, match=r"/nothing: No such file\."):
        mcp_toolsets(tmp_path / "nothing")


@pytest.mark.parametrize("value", [None, 1, ["a"], b".mcp.json"])
def test_what_is_not_a_file_is_refused_by_type(value: Any) -> None:
    with pytest.raises(TypeError, match="`file` must be the path of a file, or an MCPFile"):
        mcp_toolsets(value)


def test_the_entry_point_makes_it_again() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    module, _, name = project["entry-points"]["agentcore.toolsets"]["mcp"].partition(":")
    declared = getattr(importlib.import_module(module), name)
    assert declared is resolve_mcp_server
    register_toolset("mcp", declared)  # the same that a program registers
