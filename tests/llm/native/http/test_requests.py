"""What is sent and what can't be; and refusals, however they come."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from agentcore.errors import AuthenticationError, BadRequest
from agentcore.llm import LLM
from agentcore.testing.http import HTTPRequest, HTTPServer, Responder, serve_http
from model_route import ASK, KEY, read
from raw_server import just, serve_raw

REPLY = b'{"choices": [{"message": {"content": "Hi."}}]}'


@asynccontextmanager
async def listening() -> AsyncGenerator[tuple[HTTPServer, list[HTTPRequest]]]:
    asked: list[HTTPRequest] = []

    async def answer(request: HTTPRequest, responder: Responder) -> None:
        asked.append(request)
        await responder.send(200, REPLY, {"Content-Type": "application/json"})

    with anyio.fail_after(30):
        async with serve_http(answer) as server:
            yield server, asked


def model_at(base_url: str | None, **settings: Any) -> LLM:
    given = {"model": "openai/m", "base_url": base_url, "api_key": KEY, "num_retries": 0, "route": "native"}
    return LLM.model_validate(given | settings)


@pytest.mark.parametrize(
    ("given", "sent"),
    [
        ("/v1", "/v1/chat/completions"),
        ("/v1?api-version=2024-10-21", "/v1/chat/completions?api-version=2024-10-21"),
        ("/v1/?a=b+c%20d%2F&e", "/v1/chat/completions?a=b+c%20d%2F&e"),
        ("/a%2Fb/c%20d/%7Ee+f/v1", "/a%2Fb/c%20d/%7Ee+f/v1/chat/completions"),
        ("/v1/chat/completions?x=1", "/v1/chat/completions?x=1"),
    ],
)
async def test_an_address_is_sent_as_it_is_and_its_query_stays_at_the_end(given: str, sent: str) -> None:
    async with listening() as (server, asked):
        await model_at(server.url + given).complete(ASK)
    assert [request.path for request in asked] == [sent]


async def test_a_header_of_the_users_goes_before_ours_in_whatever_case_it_is_written() -> None:
    async with listening() as (server, asked):
        given = {"Authorization": "Token gateway", "CONTENT-TYPE": "application/x-own", "Host": "elsewhere"}
        await model_at(server.url, secret_headers=given).complete(ASK)
    (request,) = asked
    sent = {name: request.headers[name] for name in ("authorization", "content-type", "host")}
    assert sent == {"authorization": "Token gateway", "content-type": "application/x-own", "host": "elsewhere"}


@pytest.mark.parametrize("key", ["sk-\u2026abc", "sk-a\nb", "sk-\u200babc"])
async def test_a_key_that_cannot_be_one_is_named_by_where_it_is_and_not_sent(
    key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", key)
    async with listening() as (server, asked):
        with pytest.raises(AuthenticationError, match=r"LLM\(api_key=\.\.\.\) can't be one: character \d of") as raised:
            await model_at(server.url, api_key=key).complete(ASK)
        with pytest.raises(AuthenticationError, match="OPENAI_API_KEY can't be one"):
            await model_at(server.url, api_key=None).complete(ASK)
    assert asked == []
    assert key not in str(raised.value)


@pytest.mark.parametrize(
    ("address", "words"),
    [
        ("localhost:1/v1", "neither http:// nor https://"),
        ("http://localhost:99999/v1", "99999|0-65535"),
        (f"http://{'a' * 300}/v1", "label"),
        ("http://xn--/v1", "A-label"),
        ("http://user:password@../v1", "label"),
    ],
)
async def test_an_address_of_the_environment_that_is_none_is_said_at_once(
    address: str, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", f" {address} ")
    with pytest.raises(BadRequest, match=f"is no address.*({words})") as raised:
        await model_at(None).complete(ASK)
    assert "password" not in str(raised.value)


def refused(body: bytes, *, status: str, length: int | None = None) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {length or len(body)}\r\n\r\n".encode() + body


async def complete(model: LLM) -> object:
    return await model.complete(ASK)


Way = Callable[[LLM], Awaitable[object]]
WAYS = [complete, read]


@pytest.mark.parametrize("way", WAYS)
async def test_a_refusal_that_breaks_off_is_told_as_far_as_it_came(way: Way) -> None:
    refusal = refused(b'{"error": {"message": "who are you', length=1_000, status="401 Unauthorized")
    async with serve_raw(just(refusal)) as server:
        with pytest.raises(AuthenticationError, match="who are you") as raised:
            await way(model_at(server.url))
    assert raised.value.status == 401


@pytest.mark.parametrize("way", WAYS)
async def test_a_refusal_that_comes_while_the_request_is_still_being_sent_is_told(way: Way) -> None:
    async def serve(connection: SocketStream) -> None:
        async with connection:
            await connection.receive()
            await connection.send(refused(b'{"error": {"message": "too much"}}', status="413 Content Too Large"))
            await connection.send_eof()
            with suppress(anyio.EndOfStream, anyio.BrokenResourceError):
                while True:
                    await connection.receive()

    with anyio.fail_after(30):
        async with await anyio.create_tcp_listener(local_host="127.0.0.1") as listener:
            url = f"http://127.0.0.1:{listener.extra(SocketAttribute.local_port)}"
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(listener.serve, serve)
                model = model_at(url, extra_body={"padding": "x" * 10_000_000})
                with pytest.raises(BadRequest, match="too much"):
                    await way(model)
                tasks.cancel_scope.cancel()


@pytest.mark.parametrize("backend", ["asyncio", "trio"])
def test_a_proxy_of_the_environment_that_cannot_be_used_is_said_at_once(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "carrier-pigeon://127.0.0.1:1")

    async def ask() -> None:
        with anyio.fail_after(30):
            with pytest.raises(BadRequest, match=r"proxy of the environment can't be used.*carrier-pigeon"):
                await complete(model_at("http://provider.invalid", num_retries=3, retry_min_wait=60))

    anyio.run(ask, backend=backend)
