from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import httpx
import pytest

from agentcore.llm.native.clients import Clients, clients, make_clients, read_through
from agentcore.testing.http import HTTPRequest, HTTPServer, Responder, serve_http


async def read(made: Clients, server: HTTPServer, number: int) -> int:
    answered = await made.post(f"{server.url}/{number}", {}, json.dumps(number).encode())
    try:
        return json.loads(b"".join([chunk async for chunk in read_through(answered.response)]))
    finally:
        await answered.aclose()


@asynccontextmanager
async def opened() -> AsyncGenerator[Clients]:
    made = make_clients(on_asyncio=anyio.get_cancelled_exc_class().__module__.startswith("asyncio"))
    try:
        yield made
    finally:
        await made.aclose()


class Echo:
    """Answers with what it was sent, once so many have asked."""

    def __init__(self, together: int = 1) -> None:
        self._together = together
        self._waiting = 0
        self._full = anyio.Event()
        self.most = 0

    async def __call__(self, request: HTTPRequest, responder: Responder) -> None:
        self._waiting += 1
        self.most = max(self.most, self._waiting)
        if self._waiting >= self._together:
            self._full.set()
        await self._full.wait()
        await responder.send(200, request.content, {"Content-Type": "application/json"})
        self._waiting -= 1


@pytest.mark.slow
async def test_hundreds_at_once_are_answered_by_small_pools_whose_connections_are_used_again() -> None:
    echo = Echo(together=300)
    with anyio.fail_after(60):
        async with serve_http(echo) as server, opened() as made:
            kept = 300
            for asking in (300, 100):
                answers: list[int] = []

                async def ask(number: int, answers: list[int] = answers) -> None:
                    answers.append(await read(made, server, number))

                async with anyio.create_task_group() as tasks:
                    for number in range(asking):
                        tasks.start_soon(ask, number)
                assert sorted(answers) == list(range(asking))
                assert server.connections <= kept
                kept = server.connections
            assert echo.most == 300
            await made.aclose()
            await server.idle()


async def test_what_fails_or_is_left_early_gives_its_place_back() -> None:
    async def slow(_: HTTPRequest, responder: Responder) -> None:
        await responder.start(200, {"Content-Type": "text/plain"})
        await responder.write(b"x")
        await anyio.sleep_forever()

    with anyio.fail_after(30):
        async with serve_http(slow) as server, opened() as made:
            for _ in range(20):
                with pytest.raises(httpx.ConnectError):
                    await made.post("http://127.0.0.1:1/", {}, b"")
                answered = await made.post(server.url, {}, b"")
                chunks = read_through(answered.response)
                assert await anext(chunks) == b"x"
                await chunks.aclose()
                await answered.aclose()
                await server.idle()
            assert len(made._transports) == 1  # pyright: ignore[reportPrivateUsage]


async def test_an_event_loop_has_its_clients_once_however_many_ask_first() -> None:
    found: list[Clients] = []

    async def ask() -> None:
        found.append(await clients())

    async with anyio.create_task_group() as tasks:
        for _ in range(10):
            tasks.start_soon(ask)
    assert len(set(map(id, found))) == 1


async def test_bodies_of_any_size_arrive_as_they_are_one_after_the_other_on_one_connection() -> None:
    with anyio.fail_after(30):
        async with serve_http(Echo()) as server, opened() as made:
            for size in (0, 1, 100_000, 3_000_000, 5):
                sent = b"\xffx" * (size // 2) + b"!" * (size % 2)
                answered = await made.post(server.url, {}, sent)
                assert b"".join([chunk async for chunk in read_through(answered.response)]) == sent
                await answered.aclose()
                assert server.connections == 1


async def test_a_name_and_a_password_in_an_address_are_sent_as_a_header() -> None:
    headers: list[str] = []

    async def answer(request: HTTPRequest, responder: Responder) -> None:
        headers.append(request.headers["authorization"])
        await responder.send(200, b"", {})

    with anyio.fail_after(30):
        async with serve_http(answer) as server, opened() as made:
            url = server.url.replace("http://", "http://anna:p%40ss@")
            answered = await made.post(url, {"authorization": "Bearer key"}, b"")
            await answered.aclose()
    assert headers == ["Basic " + b64encode(b"anna:p@ss").decode()]
