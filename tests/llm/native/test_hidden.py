"""No key leaves by way of an error, whatever a server does with it."""

from __future__ import annotations

import base64
import json
from typing import Any

import anyio
import pytest

from agentcore import Agent, Conversation, FileStore
from agentcore.errors import ModelError, RunError
from agentcore.llm import LLM
from agentcore.testing.http import HTTPRequest, Responder, serve_http
from model_route import ASK, read

KEY = "sk-verysecret12345"
HEADER = "Bearer gateway-secret-67890"
SECRETS = (KEY, HEADER, "gateway-secret-67890", base64.b64encode(KEY.encode()).decode())
ECHO = f"Authorization: Bearer {KEY}; X-Gateway: {HEADER}; {SECRETS[-1]}"
JSON = {"Content-Type": "application/json"}
EVENTS = {"Content-Type": "text/event-stream"}

ANSWERS: dict[str, tuple[int, str, dict[str, str]]] = {
    "a page with status 200": (200, f"<html>{ECHO}", {"Content-Type": "text/html"}),
    "a page whose key is at the end of what is shown": (200, f"<html>{'x ' * 92}{ECHO}", {"Content-Type": "text/html"}),
    "a type that holds it": (200, "{", {"Content-Type": f"text/{KEY}"}),
    "no JSON": (200, f"oops {ECHO}", JSON),
    "an error in JSON": (401, json.dumps({"error": {"message": f"wrong key: {ECHO}"}}), JSON),
    "an error as text": (500, ECHO, {"Content-Type": "text/plain"}),
    "a request id": (429, "{}", {**JSON, "X-Request-Id": KEY}),
    "no event": (200, f"data: {ECHO}\n\n", EVENTS),
    "an event that is an error": (200, f"data: {json.dumps({'error': {'message': ECHO}})}\n\n", EVENTS),
    "a redirect": (307, "", {"Location": f"http://elsewhere.invalid/?key={KEY}"}),
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("what", ANSWERS)
async def test_a_key_that_a_server_repeats_is_in_no_error(what: str, streamed: bool) -> None:
    status, body, headers = ANSWERS[what]

    async def answer(request: HTTPRequest, responder: Responder) -> None:
        await responder.send(status, body.encode(), headers)

    with anyio.fail_after(30):
        async with serve_http(answer) as server:
            model = model_at(server.url)
            with pytest.raises(ModelError) as raised:
                await (read(model) if streamed else model.complete(ASK))
    shown = f"{raised.value} {raised.value!r} {raised.value.request_id}"
    assert [secret for secret in SECRETS if secret in shown] == []


async def test_a_key_of_the_environment_is_hidden_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GROQ_API_KEY", KEY)

    async def answer(request: HTTPRequest, responder: Responder) -> None:
        assert request.headers["authorization"] == f"Bearer {KEY}"
        await responder.send_json(400, {"error": {"message": f"You sent {KEY}."}})

    with anyio.fail_after(30):
        async with serve_http(answer) as server:
            with pytest.raises(ModelError, match="You sent <secret:") as raised:
                await LLM(model="groq/some-model", base_url=server.url).complete(ASK)
    assert KEY not in str(raised.value)


async def test_a_key_that_a_server_repeats_is_in_no_log(tmp_path: Any) -> None:
    async def answer(request: HTTPRequest, responder: Responder) -> None:
        await responder.send(200, f"<html>{ECHO}".encode(), {"Content-Type": "text/html"})

    with anyio.fail_after(30):
        async with serve_http(answer) as server:
            agent = Agent(llm=model_at(server.url))
            async with Conversation(agent, store=FileStore(tmp_path), id="a") as conversation:
                with pytest.raises(RunError):
                    await conversation.run("Hello?")
    kept = await anyio.Path(tmp_path / "a" / "events.jsonl").read_text()
    assert "can't be read" in kept
    assert [secret for secret in SECRETS if secret in kept] == []


def model_at(url: str) -> LLM:
    return LLM(
        model="some-model", base_url=f"{url}/v1", api_key=KEY, secret_headers={"X-Gateway": HEADER}, num_retries=0
    )
