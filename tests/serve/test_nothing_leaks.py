"""One run through the whole server with values that are looked for afterwards in all that it wrote."""

from __future__ import annotations

import base64
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

from agentcore import LLM, Agent, Conversation, RemoteWorkspace, ToolContext, tool
from agentcore.agent import record_agent
from agentcore.errors import AgentcoreError, AuthenticationError
from agentcore.testing import call, say, serve_provider
from agentcore_serve import ServeSettings, create_app
from agentcore_serve.api import all_routes
from agentcore_serve.routes.table import WEBSOCKET
from agentcore_tools import terminal_tool
from serving import serve

_API: Final = "/api/v1"
_MODEL_KEY: Final = "sk-c4n4ry-model-key-0123456789"
_SECRET: Final = "c4n4ry-secret-value-0123456789"
_ADDED: Final = "c4n4ry-added-value-0123456789"
_CLIENTS: Final = "c4n4ry-clients-value-0123456789"
_VARIABLE: Final = "c4n4ry-variable-0123456789"

# Each is found in what a person or a model said, which the logs of conversations are for, and nothing else is.
_INPUT: Final = "1nput-c4n4ry"
# An error names the path that it is about; no log does.
_PATH: Final = "p4th-c4n4ry"


class _Everything(logging.Handler):
    """Keeps what is logged, with all its fields, by anything in this process."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        # What the test's own client logs is not the server's.
        if record.name.startswith(("agentcore", "hypercorn", "asyncio", "root")):
            self.lines.append(f"{record.name} {record.getMessage()} {record.__dict__!r}")


@pytest.fixture
def logged() -> Iterator[list[str]]:
    handler = _Everything()
    root, ours = logging.getLogger(), logging.getLogger("agentcore")
    before = root.level, ours.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    ours.setLevel(logging.DEBUG)
    yield handler.lines
    root.removeHandler(handler)
    root.setLevel(before[0])
    ours.setLevel(before[1])


@tool
async def use_token(ctx: ToolContext, note: str) -> str:
    """Use a secret, in the client."""
    return f"{note}: {await ctx.secrets.get('CLIENTS')}"


def _script() -> list[Any]:
    return [
        call("terminal", command=f"echo {_INPUT} $TOKEN"),
        call("use_token", note=_INPUT),
        say(f"{_INPUT} done."),
    ]


async def _converse(url: str, key: str, llm: LLM) -> None:
    """Run a remote conversation with a tool that runs here, secrets of both sides and an agent of one's own."""
    agent = Agent(llm=llm, tools=[terminal_tool(), use_token], instructions=f"Remember {_INPUT}.")

    async def known_here() -> str:
        return _CLIENTS

    workspace = RemoteWorkspace(url, api_key=key)
    secrets = {"TOKEN": _SECRET, "CLIENTS": known_here}
    async with Conversation(agent, workspace, secrets=secrets) as conversation:
        await conversation.set_title(_INPUT)
        await conversation.set_tags({"t": _INPUT})
        result = await conversation.run(f"Begin {_INPUT}")
        assert _INPUT in (result.text or "")
        text = str([event.model_dump() for event in conversation.state.events])
        assert _INPUT in text
        for secret in (_SECRET, _CLIENTS, _MODEL_KEY, key):
            assert secret not in text


async def _use_routes(client: httpx.AsyncClient, agent: dict[str, Any], said: list[str]) -> list[str]:
    """Use each route once or more, and return the keys, codes and tickets that were made on the way."""

    async def send(method: str, path: str, **extra: Any) -> httpx.Response:
        answer = await client.request(method, path, **extra)
        if answer.status_code >= 400:
            said.append(f"{answer.text} {answer.headers!r}")
        return answer

    spec = {
        "agent": agent,
        "secrets": {"TOKEN": _SECRET},
        "title": _INPUT,
        "tags": {"project": _INPUT},
        "policy": {"name": "always_confirm"},
    }
    path = f"{_API}/conversations/{(await send('POST', f'{_API}/conversations', json=spec)).json()['id']}"
    info = (await send("GET", path)).json()
    await send("POST", f"{path}/secrets", json={"secrets": {"ADDED": _ADDED}})
    await send("POST", f"{path}/messages", json={"text": _INPUT})
    pending = (await send("POST", f"{path}/run?wait=60", json={"text": _INPUT})).json()["pending"]
    await send("POST", f"{path}/actions/{pending[0]['id']}/reject", json={"reason": _INPUT})
    for method, below, body in (
        ("POST", "/ask", {"question": _INPUT}),
        ("POST", "/fork", {}),
        ("POST", "/condense", {}),
        ("PUT", "/title", {"title": _INPUT}),
        ("PUT", "/agent", {"agent": agent["record"], "model_key": _MODEL_KEY}),
        ("POST", "/questions/q_1", {"choices": [_INPUT], "text": _INPUT}),
        ("POST", "/secrets", {"secrets": {"A B": _ADDED}}),
        ("POST", "/secrets", {"secrets": {"ADDED": {"value": _ADDED}}}),
        ("POST", "/messages", {"text": {_INPUT: _ADDED}}),
        ("POST", "/messages", {"unknown": _ADDED}),
        ("PATCH", "", {"policy": {"name": _INPUT}}),
        ("POST", "/asks/ask_1", {"kind": "secret", "value": _CLIENTS}),
        ("POST", "/asks/ask_1", {"kind": "secret", "value": {"a": _CLIENTS}}),
    ):
        await send(method, path + below, json=body)
    await send("GET", f"{_API}/conversations?text={_INPUT}&tag=project={_INPUT}")
    await send("GET", f"{_API}/conversations?unknown={_INPUT}")
    await send("POST", f"{_API}/conversations", content=f'{{"title": "{_INPUT}'.encode())
    wrong_key = {**agent, "model_key": [_MODEL_KEY]}
    await send("POST", f"{_API}/conversations", json={"agent": wrong_key, "secrets": {"TOKEN": [_SECRET]}})
    in_record = {"record": {**agent["record"], "llm": {**agent["record"]["llm"], "api_key": _MODEL_KEY}}}
    assert (await send("POST", f"{_API}/conversations", json={"agent": in_record})).status_code == 422

    files = f"{_API}/workspaces/{info['workspace']}"
    await send("PUT", f"{files}/files?path={_PATH}.txt", content=f"{_INPUT} {_SECRET}".encode())
    await send("GET", f"{files}/files?path={_PATH}.txt")
    await send("GET", f"{files}/files?path={_PATH}-missing.txt")
    await send("GET", f"{files}/files?path=/{_PATH}")
    await send("PUT", f"{files}/folders?path={_PATH}", content=f"no tar {_INPUT}".encode())
    stdin = base64.b64encode(_INPUT.encode()).decode()
    command = {"command": f"cat; echo {_INPUT} $V >&2; exit 3", "env": {"V": _VARIABLE}, "stdin": stdin}
    assert (await send("POST", f"{files}/commands", json=command)).status_code == 200
    await send("POST", f"{files}/commands", json={**command, "cwd": f"/{_PATH}"})
    await send("POST", f"{files}/commands", json={**command, "env": {"V": [_VARIABLE]}})

    made = (await send("POST", f"{_API}/keys", json={"owner": "ben", "scopes": ["read"]})).json()["key"]
    ticket = (await send("POST", f"{_API}/tickets")).json()["ticket"]
    code = (await send("POST", f"{_API}/page-codes")).json()["ticket"]
    cookie = (await send("GET", f"/enter?code={code}")).headers["set-cookie"].partition(";")[0].partition("=")[2]
    client.cookies.clear()
    await send("GET", f"/enter?code={code}")
    await send("GET", f"{_API}/version?key={made}")
    await send("GET", f"{_API}/conversations/{made}")
    await send("GET", f"{_API}/version", headers={"x-api-key": f"{made}0"})
    for route in all_routes():
        if route.method != WEBSOCKET and not route.path.endswith("/stream"):
            await send(route.method, route.path.replace("{id}", _INPUT * 20), content=_INPUT.encode())
    await send("DELETE", path)
    return [made, ticket, code, cookie]


async def test_no_key_secret_or_input_is_in_any_log_error_or_database(
    tmp_path: Path, logged: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    settings = ServeSettings(
        store=tmp_path / "store", root=tmp_path / "root", model_addresses=("127.0.0.1",), shared_user=True
    )
    app = create_app(settings)
    said: list[str] = []
    async with serve_provider([]) as provider, serve(app) as server:
        record, secret = await app.state.security.keys.add("all")
        key = secret.get_secret_value()

        def model(script: list[Any]) -> LLM:
            return LLM(
                f"openai/{provider.add_script(script, repeat=True)}",
                base_url=provider.base_url,
                api_key=_MODEL_KEY,
                num_retries=0,
            )

        await _converse(server.url, key, model(_script()))
        with pytest.raises(AgentcoreError) as failed:
            # The provider repeats the key in its error.
            await _converse(server.url, key, model([AuthenticationError(f"No such key: {_MODEL_KEY}.")]))
        said.append(f"{failed.value!r}")
        agent = record_agent(
            Agent(llm=model([*_script(), say(_INPUT)]), tools=[terminal_tool()], instructions=f"Remember {_INPUT}.")
        )[0]
        async with httpx.AsyncClient(base_url=server.url, headers={"x-api-key": key}, timeout=20) as client:
            made = await _use_routes(client, {"record": agent, "model_key": _MODEL_KEY}, said)
            said.append((await client.get("/metrics")).text)
    out, err = capfd.readouterr()

    secrets = [key, _MODEL_KEY, _SECRET, _ADDED, _CLIENTS, _VARIABLE, *made]
    assert any("request" in line and record.id in line for line in logged)  # it was listening
    audit = (tmp_path / "store" / "audit.jsonl").read_text()
    assert record.id in audit
    for text in (*logged, *said, out, err, audit):
        assert not [each for each in secrets if each in text], text
    written = [path for path in (tmp_path / "store").rglob("*") if path.is_file()]
    assert {"serve.sqlite", "index.sqlite"} <= {path.name for path in written}
    for path in written:
        content = path.read_bytes()
        for each in secrets:
            assert each.encode() not in content, path.name
    _assert_without_input([*logged, out, err])
    _assert_without_input(said)
    _assert_without_input(audit.splitlines())
    assert not [line for line in (*logged, out, err, audit) if _PATH in line]


def _assert_without_input(lines: list[str]) -> None:
    for line in lines:
        # The id of a conversation is in addresses: here one that was made of it.
        assert _INPUT not in line.replace(_INPUT * 20, ""), line
