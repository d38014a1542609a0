"""Agents of clients at a server that runs: their parts are the ones for clients, and the server's keys go nowhere."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import anyio.to_thread
import httpx
import pytest
from pydantic import SecretStr

from agentcore import LLM, Agent, AgentContext, Memory, ProjectFiles, Skills, tool
from agentcore.agent import record_agent
from agentcore.condense import Pipeline, Structured, Summary, Window
from agentcore.testing import say, serve_provider
from agentcore.testing.http import HTTPRequest, Responder, serve_http
from agentcore.wire.requests import ClientAgent
from agentcore_serve import ServeSettings, create_app
from agentcore_serve.agents import AllowedParts, OwnAgent, restore_own_agent
from agentcore_serve.refused import Refused
from agentcore_tools import read_file_tool, readonly_tools

_OWN = "sk-of-the-client-0123456789"
_SERVERS = "sk-SERVERS-OWN-KEY-0123456789"
_API = "/api/v1/conversations"
_HERE = {"model_addresses": ["127.0.0.1"]}


@tool
def deploy(target: str) -> str:
    """Deploy: a tool of the server's own program, for its own agents."""
    return target


@pytest.fixture(autouse=True)
def _keys_of_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY", "GEMINI_API_KEY", "HOSTED_VLLM_API_KEY", "OLLAMA_API_KEY"):
        monkeypatch.setenv(name, _SERVERS)


def _record(**parts: Any) -> dict[str, Any]:
    agent = record_agent(Agent(llm=LLM("openai/gpt-5"), tools=readonly_tools()))[0]
    return {**agent, **parts}


def _context(*sources: Any) -> dict[str, Any]:
    record, missing = record_agent(Agent(llm=LLM("openai/gpt-5"), context=AgentContext(sources=sources)))
    assert not missing
    return record


_FUNCTION = {"name": "function", "params": {"import": f"{__name__}:deploy"}}
_UNKNOWN: dict[str, Any] = {"name": "of_the_program", "params": {}}

_REFUSED: dict[str, dict[str, Any]] = {
    "a function of an imported module": _record(tools=[_FUNCTION]),
    "a function that would be imported": _record(tools=[{"name": "function", "params": {"import": "this:tool"}}]),
    "a function of no module": _record(tools=[{"name": "function", "params": {}}]),
    "a tool of the program's": _record(tools=[_UNKNOWN]),
    "all files of the machine": _record(
        tools=record_agent(Agent(llm=LLM("openai/gpt-5"), tools=[read_file_tool(extra_roots=("/",))]))[0]["tools"]
    ),
    "a toolset": _record(toolsets=[_UNKNOWN]),
    "a toolset in another": _record(toolsets=[{"name": "prefixed", "params": {"toolset": _UNKNOWN, "prefix": "a"}}]),
    "a toolset in two others": _record(
        toolsets=[
            {
                "name": "filtered",
                "params": {"keep": [], "toolset": {"name": "renamed", "params": {"toolset": _UNKNOWN, "names": {}}}},
            }
        ]
    ),
    "an MCP server": _record(toolsets=[{"name": "mcp", "params": {"name": "registered"}}]),
    "a source of the program's": _record(context={"sources": [_UNKNOWN]}),
    "notes about the server's user": _context(Memory()),
    "notes by default": _record(context={"sources": [{"name": "memory"}]}),
    "skills of the server's user": _context(Skills(packages=False)),
    "skills of packages": _context(Skills(user=False)),
    "a condenser of the program's": _record(condenser=_UNKNOWN),
    "a condenser in a pipeline": _record(
        condenser={"name": "pipeline", "params": {"condensers": [{"name": "of_the_program"}]}}
    ),
    "a model in a condenser": record_agent(
        Agent(llm=LLM("openai/gpt-5"), condenser=Pipeline(Window(), Structured({}, llm=LLM("openai/gpt-5-mini"))))
    )[0],
    "a key in the record": _record(llm={"kind": "llm", "model": "openai/gpt-5", "api_key": _OWN}),
    "headers with a key": _record(llm={"kind": "llm", "model": "openai/gpt-5", "secret_headers": {"x-key": _OWN}}),
    "a key in a fallback": _record(
        llm={"kind": "fallback", "on": [], "models": [{"model": "openai/gpt-5", "api_key": _OWN}]}
    ),
    "tools that are no list": _record(tools={"name": "terminal"}),
    "a tool that is no record": _record(tools=["terminal"]),
    "a tool without a name": _record(tools=[{"params": {}}]),
    "a context that is no record": _record(context=["project_files"]),
    "parameters that are no record": _record(tools=[{"name": "terminal", "params": []}]),
}


@pytest.mark.parametrize("name", _REFUSED)
async def test_a_part_that_is_not_for_clients_is_refused(name: str) -> None:
    with pytest.raises(Refused) as refused:
        await restore_own_agent(OwnAgent(_REFUSED[name], SecretStr(_OWN)))
    assert (refused.value.status, refused.value.code) == (422, "agent_refused")
    assert _OWN not in str(refused.value)


async def test_what_stays_in_the_workspace_is_made() -> None:
    sources = ProjectFiles(), Memory(user=False), Skills(user=False, packages=False)
    agent = Agent(
        llm=LLM("openai/gpt-5"),
        tools=readonly_tools(),
        context=AgentContext(sources=sources),
        condenser=Pipeline(Window(), Summary()),
    )
    made = await restore_own_agent(OwnAgent(record_agent(agent)[0]))
    assert made.context is not None
    assert made.context.sources == sources
    assert made.condenser == agent.condenser


async def test_the_servers_settings_allow_modules_and_parts() -> None:
    allowed = AllowedParts(modules=(__name__.partition(".")[0],), names=("memory",))
    made = await restore_own_agent(OwnAgent(_record(tools=[_FUNCTION])), (), allowed)
    assert [each.name for each in made.own_tools][:1] == ["deploy"]
    assert await restore_own_agent(OwnAgent(_context(Memory())), (), allowed)
    assert {"terminal", "finish"} <= set(await anyio.to_thread.run_sync(allowed.tool_names))
    # A module of which the name only begins like one that is allowed is another one.
    with pytest.raises(Refused):
        await restore_own_agent(OwnAgent(_record(tools=[_FUNCTION])), (), AllowedParts(modules=(__name__[:-1],)))


@pytest.mark.parametrize("model", ["ollama/llama3", "ollama_chat/llama3", "lm_studio/any", "hosted_vllm/any"])
async def test_models_that_are_on_the_servers_machine_by_default_are_private_too(
    model: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOSTED_VLLM_API_BASE", "http://10.1.2.3/v1")
    own = OwnAgent(_record(llm={"kind": "llm", "model": model}), SecretStr(_OWN))
    with pytest.raises(Refused) as refused:
        await restore_own_agent(own)
    assert refused.value.code == "address_not_allowed"
    assert "10.1.2.3" not in str(refused.value)
    assert await restore_own_agent(own, ["localhost", "10.0.0.0/8"])


async def test_the_servers_gateway_is_private_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "http://10.1.2.3/v1")
    with pytest.raises(Refused) as refused:
        await restore_own_agent(OwnAgent(_record(), SecretStr(_OWN)))
    assert refused.value.code == "address_not_allowed"


async def test_a_model_inside_others_is_looked_at_wherever_it_is() -> None:
    evil = {"model": "openai/a", "base_url": "http://127.0.0.1:1/v1"}
    inside = {"kind": "retrying", "model": {"kind": "limited", "model": evil, "limit": 1}}
    for llm in (
        {"kind": "fallback", "on": ["ModelUnavailable"], "models": [{"model": "openai/gpt-5"}, evil]},
        {"kind": "router", "models": {"model": {"model": "openai/gpt-5"}, "b": evil}},
        inside,
    ):
        with pytest.raises(Refused):
            await restore_own_agent(OwnAgent(_record(llm=llm), SecretStr(_OWN)))


@asynccontextmanager
async def _served(tmp_path: Path, **settings: Any) -> AsyncGenerator[httpx.AsyncClient]:
    chosen = ServeSettings.model_validate(
        {"store": tmp_path / "store", "root": tmp_path / "root", "auth": False, **settings}
    )
    app = create_app(chosen)
    async with app.lifespan():
        transport = httpx.ASGITransport(app)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8420", timeout=20) as client:
            with anyio.fail_after(40):  # noqa: ASYNC100 the test inside of it waits
                yield client


def _agent(base_url: str, **llm: Any) -> dict[str, Any]:
    settings = {"model": "openai/scripted", "num_retries": 0, "base_url": base_url, **llm}
    record, _ = record_agent(Agent(llm=LLM.model_validate(settings)))
    return {"record": record}


async def test_the_servers_key_reaches_no_address_of_a_clients(tmp_path: Path) -> None:
    async with (
        serve_provider([say("Hello.")], repeat=True) as provider,
        _served(tmp_path, **_HERE) as client,
    ):
        agents = (
            _agent(provider.base_url) | {"model_key": _OWN},
            _agent(provider.base_url),
            _agent(provider.base_url, extra_headers={"X-Mine": "yes", "OpenAI-Organization": "org"}),
            _agent(provider.base_url, route="native", extra_body={"x": 1}) | {"model_key": _OWN},
        )
        for agent in agents:
            made = await client.post(_API, json={"agent": agent})
            assert made.status_code == 201, made.text
            path = f"{_API}/{made.json()['id']}"
            run = await client.post(f"{path}/run?wait=60", json={"text": "Go"})
            assert run.status_code in (200, 202, 401, 422, 502), run.text
            condensed = await client.post(f"{path}/condense", json={})
            asked = await client.post(f"{path}/ask", json={"question": "Why?"})
            assert condensed.status_code < 500 or condensed.json()["code"] != "internal_error"
            assert asked.status_code < 500 or asked.json()["code"] != "internal_error"
        assert len(provider.requests) >= 4
        arrived = json.dumps([dict(request.headers) for request in provider.requests])
        assert _OWN in arrived
        assert _SERVERS not in arrived


async def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    seen: list[str] = []

    async def answer(request: HTTPRequest, responder: Responder) -> None:
        seen.append(request.path)
        await responder.start(307, {"Location": "/stolen"})
        await responder.end()

    async with serve_http(answer) as provider, _served(tmp_path, **_HERE) as client:
        made = await client.post(_API, json={"agent": _agent(f"{provider.url}/v1") | {"model_key": _OWN}})
        await client.post(f"{_API}/{made.json()['id']}/run?wait=60", json={"text": "Go"})
        assert seen
        assert "/stolen" not in seen


async def test_private_addresses_are_refused_over_http_on_each_way_in(tmp_path: Path) -> None:
    async with serve_provider([say("Hello.")]) as provider, _served(tmp_path) as client:
        agent = _agent(provider.base_url) | {"model_key": _OWN}
        for method, path, body in (
            ("POST", _API, {"agent": agent}),
            ("PUT", f"{_API}/mine", {"agent": agent}),
        ):
            refused = await client.request(method, path, json=body)
            assert (refused.status_code, refused.json()["code"]) == (422, "address_not_allowed")
            assert _OWN not in refused.text
        made = await client.post(_API, json={"agent": _agent("https://1.1.1.1/v1")})
        assert made.status_code == 201, made.text
        path = f"{_API}/{made.json()['id']}/agent"
        body = {"agent": agent["record"], "model_key": _OWN}
        refused = await client.put(path, json=body)
        assert (refused.status_code, refused.json()["code"]) == (422, "address_not_allowed")
        assert not provider.requests


def test_a_clients_agent_shows_neither_record_nor_key() -> None:
    agent = ClientAgent(record=_record(instructions="s3cr3t-instructions"), model_key=SecretStr(_OWN))
    assert _OWN not in repr(agent)
    assert "s3cr3t-instructions" not in repr(agent)
