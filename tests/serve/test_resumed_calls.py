"""A call that asks, in a conversation of a server: over HTTP it is answered, declined and resumed like any other question."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from agentcore import Agent
from agentcore.testing import ScriptedLLM, call, say
from agentcore_serve import ServeApp, ServeLimits, ServeSettings, create_app
from deploying import DEPLOY, deploying
from talks import hang

API = "/api/v1/conversations"


@asynccontextmanager
async def asked(folder: Path, **limits: Any) -> AsyncGenerator[tuple[ServeApp, httpx.AsyncClient, str, str]]:
    """Serve a conversation whose call has asked: the app, a client, the conversation's path and the question's id."""
    deploys = Agent(llm=ScriptedLLM([DEPLOY, say("done")]), tools=[deploying()])
    hangs = Agent(llm=ScriptedLLM([call("hang")]), tools=[hang])
    settings = ServeSettings(
        store=folder / "store", root=folder / "root", auth=False, limits=ServeLimits.model_validate(limits)
    )
    app = create_app(settings, agents={"deploys": deploys, "hangs": hangs})
    async with app.lifespan():
        transport = httpx.ASGITransport(app, raise_app_exceptions=True)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8420", timeout=10) as client:
            with anyio.fail_after(20):  # noqa: ASYNC100 the test inside of it waits
                path = f"{API}/{(await client.post(API, json={})).json()['id']}"
                result = (await client.post(f"{path}/run?wait=10", json={"text": "Go"})).json()
                (question,) = result["questions"]
                yield app, client, path, question["id"]


@pytest.mark.parametrize(
    ("decision", "body", "answer"),
    [
        ("/questions/{}", {"value": "staging"}, "deployed to staging"),
        ("/questions/{}/decline", {"reason": "no"}, "kept: no"),
        ("/reject", {"reason": "not now"}, "kept: not now"),
    ],
)
async def test_whatever_ends_the_question_resumes_the_call(
    tmp_path: Path, decision: str, body: dict[str, Any], answer: str
) -> None:
    async with asked(tmp_path) as (_, client, path, question):
        decided = await client.post(path + decision.format(question), json=body)
        assert decided.status_code == 200, decided.text
        result = (await client.post(f"{path}/run?wait=10", json={})).json()
        assert (result["status"], result["text"]) == ("finished", "done")
        (observed,) = (await client.get(f"{path}/events?kind=observation")).json()["items"]
    assert observed["event"]["content"][0]["text"] == answer


async def test_a_rejection_that_resumes_a_call_is_work_and_waits_for_room(tmp_path: Path) -> None:
    async with asked(tmp_path, running_conversations=1) as (_, client, path, question):
        busy = f"{API}/{(await client.post(API, json={'agent': 'hangs'})).json()['id']}"
        assert (await client.post(f"{busy}/run", json={"text": "Go"})).status_code == 202
        for decision, body in (("/reject", {"reason": "no"}), (f"/questions/{question}/decline", {"reason": "no"})):
            assert (await client.post(path + decision, json=body)).status_code == 429
        assert (await client.post(f"{busy}/interrupt", json={})).status_code == 200
        assert (await client.post(f"{path}/reject", json={"reason": "no"})).status_code == 200
        result = (await client.post(f"{path}/run?wait=10", json={})).json()
        assert result["text"] == "done"
