"""The server inside of another application, with its lifespan and without."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette

from agentcore import Agent
from agentcore.testing import ScriptedLLM, say
from agentcore_serve import ServeApp, ServeSettings, create_app
from serving import serve

API = "/api/v1"


def make_server(tmp_path: Path) -> ServeApp:
    """Make a server that asks for no keys."""
    settings = ServeSettings(store=tmp_path / "store", root=tmp_path / "root", auth=False)
    return create_app(settings, agents={"coder": Agent(llm=ScriptedLLM([say("Done.")]))})


@pytest.mark.parametrize("outer", [Starlette, FastAPI])
async def test_mounted_with_its_lifespan_it_serves(outer: Any, tmp_path: Path) -> None:
    inner = make_server(tmp_path)
    app = outer(lifespan=inner.lifespan)
    app.mount("/agents", inner)
    async with serve(app) as serving, httpx.AsyncClient(base_url=serving.url, timeout=20) as client:
        made = await client.post(f"/agents{API}/conversations", json={})
        assert made.status_code == 201
        path = f"/agents{API}/conversations/{made.json()['id']}"
        assert made.headers["Location"] == path
        result = await client.post(f"{path}/run?wait=60", json={"text": "Go"})
        assert result.json()["text"] == "Done."
        assert (await client.get("/agents/readyz")).text == "ok"
        assert (await client.get("/agents/openapi.json")).status_code == 200


@pytest.mark.parametrize("outer", [Starlette, FastAPI])
async def test_mounted_without_its_lifespan_each_call_names_the_lines_that_enter_it(outer: Any, tmp_path: Path) -> None:
    app = outer()
    app.mount("/agents", make_server(tmp_path))
    transport = httpx.ASGITransport(app)
    async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8420") as client:
        for path in ("/livez", f"{API}/version", "/nowhere"):
            answer = await client.get(f"/agents{path}")
            assert (answer.status_code, answer.json()["code"]) == (503, "not_started")
            assert "lifespan=served.lifespan" in answer.json()["detail"]


async def test_its_lifespan_composes_with_another_and_can_be_entered_again(tmp_path: Path) -> None:
    inner = make_server(tmp_path)

    @asynccontextmanager
    async def lifespan(app: Any) -> AsyncGenerator[None]:
        async with inner.lifespan(app):
            yield

    for _ in range(2):
        app = FastAPI(lifespan=lifespan)
        app.mount("/agents", inner)
        async with serve(app) as serving, httpx.AsyncClient(base_url=serving.url) as client:
            assert (await client.get(f"/agents{API}/version")).status_code == 200


async def test_the_lifespan_is_not_entered_twice_at_once(tmp_path: Path) -> None:
    inner = make_server(tmp_path)
    async with inner.lifespan():
        with pytest.raises(RuntimeError, match="entered already"):
            async with inner.lifespan():
                pass
