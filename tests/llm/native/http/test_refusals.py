"""Answers that refuse, however they come: what they say is told."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import anyio
import pytest
from anyio.abc import SocketAttribute, SocketStream

from agentcore.errors import AuthenticationError, BadRequest
from agentcore.llm import LLM
from model_route import ASK, KEY
from raw_server import just, serve_raw


def refused(body: bytes, *, status: str, length: int | None = None) -> bytes:
    return f"HTTP/1.1 {status}\r\nContent-Length: {length or len(body)}\r\n\r\n".encode() + body


def model_at(url: str, **settings: Any) -> LLM:
    given = {"model": "openai/m", "base_url": f"{url}/v1", "api_key": KEY, "num_retries": 0, "route": "native"}
    return LLM.model_validate(given | settings)


async def complete(model: LLM) -> None:
    await model.complete(ASK)


async def stream(model: LLM) -> None:
    async with model.stream(ASK) as deltas:
        async for _ in deltas:
            pass


Way = Callable[[LLM], Awaitable[None]]
WAYS = [complete, stream]


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
