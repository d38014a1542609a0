"""MCP servers of a server: those of its own files, by their names, and never one that a client describes."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest
from anyio.streams.buffered import BufferedByteReceiveStream

from agentcore import LLM, Agent
from agentcore.agent import record_agent
from agentcore.mcp import MCPServer, MCPToolset, register_mcp_server
from agentcore.testing import ChatProvider, call, say, serve_provider
from agentcore_serve.agents import AllowedParts, OwnAgent, restore_own_agent
from agentcore_serve.refused import Refused

API = "/api/v1/conversations"
TINY = str(Path(__file__).parents[1] / "mcp" / "servers" / "tiny.py")
REGISTERED = MCPServer(name="of_serve", command="run")
WITH_MCP = AllowedParts(names=("mcp",))


def _record(*toolsets: dict[str, Any], base_url: str | None = None) -> dict[str, Any]:
    llm = LLM("openai/scripted", base_url=base_url, api_mode="chat")
    return {**record_agent(Agent(llm=llm))[0], "toolsets": list(toolsets)}


async def test_an_agent_of_a_client_names_a_registered_server() -> None:
    register_mcp_server(REGISTERED)
    inner = {"name": "mcp", "params": {"name": "of_serve"}}
    outer = {"name": "filtered", "params": {"toolset": inner, "keep": ["mcp__of_serve__a"]}}
    made = await restore_own_agent(OwnAgent(_record(inner)), (), WITH_MCP)
    assert made.toolsets == (MCPToolset(REGISTERED),)
    assert (await restore_own_agent(OwnAgent(_record(outer)), (), WITH_MCP)).toolsets[0].name == "of_serve"


BAD_PARAMS: list[dict[str, Any]] = [
    {"name": "not_registered"},
    {"name": "of_serve", "digest": "of another"},
    {"name": "of_serve", "command": "evil"},
    {"server": {"name": "of_serve", "command": "evil"}},
    {"path": ".mcp.json"},
]


@pytest.mark.parametrize("params", BAD_PARAMS)
async def test_what_a_client_describes_is_not_started(params: dict[str, Any]) -> None:
    register_mcp_server(REGISTERED)
    with pytest.raises(Refused) as refused:
        await restore_own_agent(OwnAgent(_record({"name": "mcp", "params": params})), (), WITH_MCP)
    assert (refused.value.status, refused.value.code) == (422, "agent_refused")


@asynccontextmanager
async def _serving(
    tmp_path: Path, surroundings: dict[str, str], base_url: str, *options: str
) -> AsyncGenerator[httpx.AsyncClient]:
    tmp_path.joinpath("root").mkdir()
    environment = {
        **surroundings,
        "HOME": str(tmp_path),
        "OPENAI_API_KEY": "sk-not-a-key",
        "AGENTCORE_SERVE_ROOT": str(tmp_path / "root"),
        "AGENTCORE_SERVE_STORE": str(tmp_path / "store"),
        "AGENTCORE_SERVE_MODEL_ADDRESSES": "127.0.0.1",
        "AGENTCORE_BASE_URL": base_url,
    }
    command = [sys.executable, "-m", "agentcore", "serve", "--port", "0", "--no-auth", "--log", "none", *options]
    async with await anyio.open_process(
        command, env=environment, stderr=sys.stderr, stdin=subprocess.DEVNULL, cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        line = await BufferedByteReceiveStream(process.stdout).receive_until(b"\n", 10_000)
        try:
            async with httpx.AsyncClient(base_url=json.loads(line)["url"], timeout=40, trust_env=False) as client:
                yield client
        finally:
            process.send_signal(signal.SIGTERM)
            with anyio.move_on_after(20, shield=True):
                await process.wait()


async def _run(client: httpx.AsyncClient, agent: Any) -> None:
    made = await client.post(API, json={"agent": agent})
    assert made.status_code == 201, made.text
    ran = await client.post(f"{API}/{made.json()['id']}/run?wait=30", json={"text": "Go"})
    assert ran.json()["status"] == "finished", ran.text


def _answers(provider: ChatProvider) -> list[str]:
    """Return the answers of tools that the model was shown last."""
    messages = json.loads(provider.requests[-1].content)["messages"]
    return [message["content"] for message in messages if message["role"] == "tool"]


async def test_agents_of_a_server_use_the_servers_of_its_files(tmp_path: Path, surroundings: dict[str, str]) -> None:
    entries = {"tiny": {"command": sys.executable, "args": [TINY]}, "bad": {}}
    tmp_path.joinpath("servers.json").write_text(json.dumps({"mcpServers": entries}))
    replies = [call("mcp__tiny__echo", text="hello"), say("Done.")]
    with anyio.fail_after(90):
        async with serve_provider(replies, repeat=True) as provider:
            tmp_path.joinpath("agents.toml").write_text(
                f'[agents.coder]\nmodel = "openai/scripted"\nbase_url = "{provider.base_url}"\nmcp = ["tiny"]\n'
                'settings = { api_mode = "chat" }\n'
            )
            options = ("--mcp", "servers.json", "--agents", "agents.toml")
            async with _serving(tmp_path, surroundings, provider.base_url, *options) as client:
                await _run(client, "coder")
                assert _answers(provider) == ["echo: hello"]
                toolset = {"name": "mcp", "params": {"name": "tiny"}}
                own = {"record": _record(toolset, base_url=provider.base_url)}
                await _run(client, own)
                assert _answers(provider) == ["echo: hello"]
                refused = await client.post(
                    API, json={"agent": {"record": _record({**toolset, "params": entries["tiny"]})}}
                )
                assert refused.status_code == 422


async def test_the_one_agent_without_a_file_of_agents_has_them_too(
    tmp_path: Path, surroundings: dict[str, str]
) -> None:
    entry = {"command": sys.executable, "args": [TINY]}
    tmp_path.joinpath("servers.json").write_text(json.dumps({"servers": {"tiny": entry}}))
    replies = [call("mcp__tiny__echo", text="hello"), say("Done.")]
    with anyio.fail_after(90):
        async with serve_provider(replies, repeat=True) as provider:
            options = ("--mcp", "servers.json", "--model", "mine")
            async with _serving(tmp_path, surroundings, provider.base_url, *options) as client:
                await _run(client, "default")
                assert _answers(provider) == ["echo: hello"]
