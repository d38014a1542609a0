"""The servers that the tests use."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import anyio
import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from serving import SERVERS, ServerName, serve


@pytest.mark.parametrize("server", SERVERS)
async def test_an_app_is_served_between_its_start_and_its_end(server: ServerName) -> None:
    seen: list[str] = []

    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        seen.append("start")
        yield
        seen.append("end")

    async def answer(request: Request) -> PlainTextResponse:
        seen.append("request")
        return PlainTextResponse("here")

    app = Starlette(routes=[Route("/", answer)], lifespan=lifespan)
    with anyio.fail_after(30):
        async with serve(app, server) as serving, httpx.AsyncClient(base_url=serving.url) as client:
            assert seen == ["start"]
            assert (await client.get("/")).text == "here"
    assert seen == ["start", "request", "end"]


@pytest.mark.parametrize("server", SERVERS)
async def test_an_app_that_does_not_start_is_an_error(server: ServerName) -> None:
    @asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncGenerator[None]:
        raise ValueError("no disk")
        yield

    with anyio.fail_after(30), pytest.raises(BaseException) as caught:  # noqa: PT011 each server has its own
        async with serve(Starlette(lifespan=lifespan), server):
            raise AssertionError("it started")
    assert "it started" not in str(caught.value)
