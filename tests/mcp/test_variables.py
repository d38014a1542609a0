"""Variables in a server's settings, and the secrets among them."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import anyio
import pytest
from pydantic import JsonValue

from agentcore.errors import MCPServerError
from agentcore.mcp import MCPServer, MCPToolset
from mcp_opened import opened, program


async def test_a_secret_of_the_conversation_comes_before_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_TEST_A", "from the environment")
    monkeypatch.setenv("MCP_TEST_B", "beta value")
    env = {"A": "${MCP_TEST_A}", "B": "<${MCP_TEST_B}>", "C": "${MCP_TEST_C:-none}", "D": "$MCP_TEST_B"}
    async with opened(program("raw", env=env), tmp_path, {"MCP_TEST_A": "the secret value"}) as it:
        assert await it.text("environment", variable="A") == "<secret:MCP_TEST_A>"
        assert await it.text("environment", variable="B") == "<beta value>"
        assert await it.text("environment", variable="C") == "none"
        assert await it.text("environment", variable="D") == "$MCP_TEST_B"


async def test_what_is_called_like_a_secret_is_masked_wherever_it_comes_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MCP_TEST_TOKEN", "hush-from-environment")
    env = {"API_KEY": "hush-written-there", "OTHER": "${MCP_TEST_TOKEN}"}
    async with opened(program("raw", env=env), tmp_path) as it:
        assert await it.text("environment", variable="API_KEY") == "<secret:API_KEY>"
        assert await it.text("environment", variable="OTHER") == "<secret:MCP_TEST_TOKEN>"


async def test_a_secret_is_masked_in_what_a_server_says_of_itself_and_of_its_tools(tmp_path: Path) -> None:
    key = "hush-written-there"
    schema: JsonValue = {"type": "object", "properties": {"a": {"type": "string", "description": f"Not {key}."}}}
    told: dict[str, JsonValue] = {"name": "tell", "title": key, "description": f"Tell {key}.", "inputSchema": schema}
    env = {"API_KEY": key, "INSTRUCTIONS": f"Use {key}."}
    async with opened(program("raw", env=env), tmp_path) as it:
        assert "Use <secret:API_KEY>." in (it.toolset.instructions or "")
        await it.text("list", tools=[told, {**told, "name": key}])
        with anyio.fail_after(30):
            while "mcp__raw__tell" not in it.names or not it.notices:
                await anyio.wait_all_tasks_blocked()
        tool = it.tool("tell")
        assert tool.description == "Tell <secret:API_KEY>."
        assert tool.annotations.title == "<secret:API_KEY>"
        assert "Not <secret:API_KEY>." in str(tool.schema.parameters)
        assert it.names == ["mcp__raw__tell", "mcp__raw__list", "mcp__raw__read_resource"]
        assert it.notices == ["MCP server 'raw': Its tool '<secret:API_KEY>' is left out: its name holds a secret."]


async def test_a_secret_is_masked_in_progress(tmp_path: Path) -> None:
    async with opened(program("raw", env={"API_KEY": "hush-written-there"}), tmp_path) as it:
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(partial(it.call, "hang", message="With hush-written-there."))
            with anyio.fail_after(30):
                while not it.host.shown:
                    await anyio.wait_all_tasks_blocked()
            tasks.cancel_scope.cancel()
        assert list(it.host.shown) == ["With <secret:API_KEY>. (1)\n"]


async def test_a_variable_that_is_missing_is_named_with_the_server_and_the_key(tmp_path: Path) -> None:
    with pytest.raises(MCPServerError, match=r"'raw' needs the variable 'MCP_TEST_NOT_SET' \(env\.A\)"):
        async with opened(program("raw", env={"A": "${MCP_TEST_NOT_SET}"}), tmp_path):
            pass


def test_settings_show_no_value_and_are_recorded_by_their_digest() -> None:
    server = MCPServer(name="x", url="https://example.com/mcp?key=hush", headers={"Authorization": "Bearer hush"})
    assert "hush" not in repr(server)
    assert server.transport == "http"
    spec = MCPToolset(server).record()
    assert spec.name == "mcp"
    assert spec.params == {"name": "x", "digest": server.digest}
    assert server.digest != server.model_copy(update={"headers": {}}).digest


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"command": "a", "url": "http://b"},
        {"command": "a", "transport": "http"},
        {"url": "http://b", "transport": "stdio"},
    ],
)
def test_settings_that_say_not_which_server_are_refused(settings: dict[str, str]) -> None:
    with pytest.raises(ValueError, match=r"MCP server has a command or a url|transport of a command"):
        MCPServer.model_validate({"name": "x", **settings})
