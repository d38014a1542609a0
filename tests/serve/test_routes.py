"""The routes over a real app: what they answer, what they refuse, and who may use them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx
import pytest

from agentcore import Agent, tool
from agentcore.testing import Gate, ScriptedLLM, call, say
from agentcore.wire.routes import COMMAND_ROUTES
from agentcore_serve import ServeApp, ServeLimits, ServeSettings, create_app
from agentcore_serve.api import all_routes

API = "/api/v1"


@tool
def touch(name: str) -> str:
    """Touch a file."""
    return f"touched {name}"


@asynccontextmanager
async def served(
    tmp_path: Path, *replies: Any, auth: bool = False, **settings: Any
) -> AsyncGenerator[tuple[ServeApp, httpx.AsyncClient]]:
    """Serve an agent with these replies, in process."""
    agent = Agent(llm=ScriptedLLM(list(replies) or [say("Done.")]), tools=[touch])
    chosen = ServeSettings(store=tmp_path / "store", root=tmp_path / "root", auth=auth, **settings)
    app = create_app(chosen, agents={"coder": agent})
    async with app.lifespan():
        transport = httpx.ASGITransport(app, raise_app_exceptions=True)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1:8420", timeout=60) as client:
            with anyio.fail_after(20):  # noqa: ASYNC100 the test inside of it waits
                yield app, client


async def make(client: httpx.AsyncClient, **spec: Any) -> str:
    """Create a conversation, and return its path."""
    answer = await client.post(f"{API}/conversations", json=spec)
    assert answer.status_code == 201, answer.text
    assert answer.headers["location"] == f"{API}/conversations/{answer.json()['id']}"
    return f"{API}/conversations/{answer.json()['id']}"


async def test_a_run_is_begun_with_202_and_its_result_waited_for(tmp_path: Path) -> None:
    async with served(tmp_path, say("One."), say("Two.")) as (_, client):
        path = await make(client)
        begun = await client.post(f"{path}/run", json={"text": "Go"})
        assert begun.status_code == 202
        result = await client.post(f"{path}/run?wait=60", json={})
        assert result.status_code == 200
        assert result.json()["text"] == "One."
        again = await client.post(f"{path}/run?wait=60", json={"text": "And"})
        assert again.json()["text"] == "Two."
        assert (await client.get(path)).json()["status"] == "finished"


async def test_a_client_that_leaves_a_run_does_not_stop_it(tmp_path: Path) -> None:
    gate = Gate()
    async with served(tmp_path, gate.hold(say("Late."))) as (_, client):
        path = await make(client)
        with anyio.move_on_after(60) as leaving:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(lambda: client.post(f"{path}/run?wait=60", json={"text": "Go"}))
                await gate.arrived()
                leaving.cancel()
        assert (await client.get(path)).json()["status"] == "running"
        gate.open()
        result = await client.post(f"{path}/run?wait=60", json={})
        assert result.json()["text"] == "Late."


async def test_a_wait_that_is_too_short_answers_with_the_receipt(tmp_path: Path) -> None:
    gate = Gate()
    async with served(tmp_path, gate.hold(say("Late."))) as (_, client):
        path = await make(client)
        answer = await client.post(f"{path}/run?wait=0", json={"text": "Go"})
        assert answer.status_code == 202
        assert answer.json()["run"] > 0
        gate.open()


async def test_the_same_command_id_gets_the_same_receipt_and_is_done_once(tmp_path: Path) -> None:
    async with served(tmp_path) as (_, client):
        path = await make(client)
        first = await client.post(f"{path}/messages", json={"text": "Hello", "id": "cmd_1"})
        second = await client.post(f"{path}/messages", json={"text": "Hello", "id": "cmd_1"})
        assert first.json() == second.json()
        assert len((await client.get(f"{path}/events?kind=message")).json()["items"]) == 1


async def test_actions_that_wait_are_approved_and_rejected(tmp_path: Path) -> None:
    replies = call("touch", name="a"), call("touch", name="b"), say("Done.")
    async with served(tmp_path, *replies) as (_, client):
        path = await make(client, policy={"name": "always_confirm"})
        waiting = (await client.post(f"{path}/run?wait=60", json={"text": "Go"})).json()
        assert [action["tool_name"] for action in waiting["pending"]] == ["touch"]
        (first,) = waiting["pending"]
        approved = await client.post(f"{path}/actions/{first['id']}/approve", json={"arguments": {"name": "c"}})
        assert approved.json()["actions"] == [first["id"]]
        waiting = (await client.post(f"{path}/run?wait=60", json={})).json()
        rejected = await client.post(f"{path}/reject", json={"reason": "Not that one."})
        assert rejected.json()["actions"] == [waiting["pending"][0]["id"]]
        assert (await client.post(f"{path}/run?wait=60", json={})).json()["text"] == "Done."
        answers = (await client.get(f"{path}/events?kind=observation")).json()["items"]
        assert "touched c" in str(answers)
        nothing = await client.post(f"{path}/approve", json={})
        assert (nothing.status_code, nothing.json()["code"]) == (409, "nothing_pending")


async def test_settings_of_a_conversation_are_changed_one_by_one_and_together(tmp_path: Path) -> None:
    async with served(tmp_path) as (_, client):
        path = await make(client, title="First", tags={"team": "blue"})
        assert (await client.put(f"{path}/title", json={"title": "Second"})).status_code == 200
        assert (await client.put(f"{path}/tags", json={"tags": {"team": "red"}})).status_code == 200
        assert (await client.put(f"{path}/policy", json={"policy": {"name": "always_confirm"}})).status_code == 200
        assert (await client.put(f"{path}/limits", json={"limits": {"steps": 5}})).status_code == 200
        info = (await client.patch(path, json={"title": "Third", "limits": {"steps": 7}})).json()
        assert (info["title"], info["tags"]) == ("Third", {"team": "red"})
        assert (await client.get(f"{path}/usage")).json()["limits"]["steps"] == 7
        assert (await client.patch(path, json={})).status_code == 422
        assert (await client.put(f"{path}/policy", json={"policy": {"name": "nobody"}})).status_code == 422
        assert (await client.put(f"{path}/agent", json={"profile": "coder"})).status_code == 200
        assert (await client.put(f"{path}/agent", json={"profile": "nobody"})).status_code == 422
        assert (await client.post(f"{path}/secrets", json={"secrets": {"TOKEN": "a-secret-value"}})).status_code == 200


async def test_a_conversation_is_not_closed_for_room_under_a_request(tmp_path: Path) -> None:
    gate = Gate()
    async with served(tmp_path, gate.hold(say("Aside.")), limits=ServeLimits(open_conversations=1)) as (app, client):
        path = await make(client)
        (conversation,) = app.state.hub.open_ones.served
        answers: list[httpx.Response] = []

        async def ask() -> None:
            answers.append(await client.post(f"{path}/ask", json={"question": "Why?"}))

        async with anyio.create_task_group() as tasks:
            tasks.start_soon(ask)
            await gate.arrived()
            conversation.used -= 60  # the model thinks for a minute
            assert (await client.post(f"{API}/conversations", json={})).status_code == 503
            gate.open()
        assert answers[0].json() == {"text": "Aside.", "seq": conversation.conversation.state.head}
        conversation.used -= 60
        assert (await client.post(f"{API}/conversations", json={})).status_code == 201


async def test_a_conversation_is_put_listed_forked_rewound_and_deleted(tmp_path: Path) -> None:
    async with served(tmp_path, say("Aside."), say("One.")) as (_, client):
        made = await client.put(f"{API}/conversations/mine", json={"title": "Blue sky", "tags": {"a": "1"}})
        again = await client.put(f"{API}/conversations/mine", json={"title": "Blue sky", "tags": {"a": "1"}})
        other = await client.put(f"{API}/conversations/mine", json={"title": "Other"})
        assert [each.status_code for each in (made, again, other)] == [201, 200, 409]
        path = f"{API}/conversations/mine"
        aside = (await client.post(f"{path}/ask", json={"question": "Why?"})).json()
        assert aside == {"text": "Aside.", "seq": (await client.get(path)).json()["head"]}
        await client.post(f"{path}/run?wait=60", json={"text": "Go"})
        fork = (await client.post(f"{path}/fork", json={})).json()["conversation"]
        assert (await client.post(f"{path}/rewind", json={"to": 1})).status_code in (200, 409)
        assert (await client.post(f"{path}/condense", json={})).json() == {"seq": None}
        page = (await client.get(f"{API}/conversations?tag=a=1&text=blue&limit=1")).json()
        assert len(page["items"]) == 1
        assert page["next"] is not None
        rest = (await client.get(f"{API}/conversations", params={"tag": "a=1", "cursor": page["next"]})).json()
        assert {page["items"][0]["id"], rest["items"][0]["id"]} == {"mine", fork}
        assert (await client.get(f"{API}/conversations?status=running")).json()["items"] == []
        assert (await client.delete(path)).status_code == 204
        gone = await client.get(path)
        assert (gone.status_code, gone.json()["code"]) == (404, "conversation_not_found")


async def test_events_are_paged_in_both_directions_and_by_kind(tmp_path: Path) -> None:
    async with served(tmp_path) as (_, client):
        path = await make(client)
        for number in range(5):
            await client.post(f"{path}/messages", json={"text": f"Message {number}"})
        head = (await client.get(path)).json()["head"]
        seqs: list[int] = []
        after: int | None = 0
        while after is not None:
            page = (await client.get(f"{path}/events?after={after}&limit=3")).json()
            seqs += [item["seq"] for item in page["items"]]
            after = page["next"]
        assert seqs == list(range(1, head + 1))
        newest = (await client.get(f"{path}/events?before={head + 1}&limit=2&kind=message")).json()
        assert [item["seq"] for item in newest["items"]] == [head - 1, head]
        older = (await client.get(f"{path}/events?before={newest['next']}&limit=2&kind=message")).json()
        assert [item["seq"] for item in older["items"]] == [head - 3, head - 2]
        assert (await client.get(f"{path}/events?limit=501")).status_code == 422
        assert (await client.get(f"{path}/events?nope=1")).status_code == 422
        assert (await client.get(f"{path}/blobs/{'0' * 64}")).status_code == 404
        assert (await client.get(f"{path}/blobs/nope")).status_code == 422


async def test_a_large_piece_of_a_log_is_read_as_it_was_written(tmp_path: Path) -> None:
    async with served(tmp_path) as (_, client):
        path = await make(client)
        await client.post(f"{path}/messages", json={"text": "x" * 100_000})
        (blob,) = (tmp_path / "store").glob("*/blobs/*")
        answer = await client.get(f"{path}/blobs/{blob.name}")
        assert answer.content == blob.read_bytes()
        assert answer.headers["content-disposition"] == "attachment"


async def test_what_does_not_fit_is_refused_and_never_repeated(tmp_path: Path) -> None:
    async with served(tmp_path) as (_, client):
        path = await make(client)
        hostile = "hunter2-hunter2"
        json_body = {"content-type": "application/json"}
        refused = [
            (await client.post(f"{path}/messages", json={"text": "x", hostile[:0] + "unknown": hostile}), 422),
            (await client.post(f"{path}/messages", json={"text": {"deep": hostile}}), 422),
            (await client.post(f"{path}/messages", json={"text": "x", "by": hostile}), 422),
            (await client.post(f"{path}/messages", content=f'{{"text": "{hostile}'.encode(), headers=json_body), 422),
            (await client.post(f"{path}/messages", content=b'{"text": "\xff"}', headers=json_body), 422),
            (await client.post(f"{path}/messages", content=hostile, headers={"content-type": "text/plain"}), 415),
            (await client.post(f"{path}/messages", content=b"[" * 200_000, headers=json_body), 422),
            (await client.post(f"{path}/pause", content=b'"' + b"x" * 2_000_001 + b'"', headers=json_body), 413),
            (await client.post(f"{API}/conversations", json={"limits": {"steps": hostile}}), 422),
            (await client.get(f"{path}/events?after={hostile}"), 422),
        ]
        for answer, status in refused:
            assert answer.status_code == status, answer.text
            assert answer.headers["content-type"] == "application/problem+json"
            assert hostile not in answer.text
            assert answer.json()["request_id"]


async def test_the_catalog_names_agents_models_and_tools(tmp_path: Path) -> None:
    async with served(tmp_path) as (_, client):
        assert (await client.get(f"{API}/version")).json()["api"] == "v1"
        (agent,) = (await client.get(f"{API}/agents")).json()
        assert (agent["name"], agent["tools"], agent["default"]) == ("coder", ["touch"], True)
        assert [each["name"] for each in (await client.get(f"{API}/tools")).json()] == ["touch"]
        assert (await client.get(f"{API}/models")).json() == []  # a scripted model is none that has a name


async def test_probes_and_metrics(tmp_path: Path) -> None:
    async with served(tmp_path) as (app, client):
        path = await make(client)
        await client.post(f"{path}/run?wait=60", json={"text": "Go"})
        assert (await client.get("/livez")).text == "ok"
        assert (await client.get("/readyz")).status_code == 200
        text = (await client.get("/metrics")).text
        assert "agentcore_open_conversations 1.0" in text
        assert 'route="/api/v1/conversations/{id}/run",status="200"' in text
        assert path not in text
        await app.drain()
        draining = await client.get("/readyz")
        assert (draining.status_code, (await client.get("/livez")).status_code) == (503, 200)
        refused = await client.post(f"{API}/conversations", json={})
        assert (refused.status_code, refused.json()["code"]) == (503, "draining")


async def test_keys_are_added_listed_and_revoked_and_a_code_brings_a_page_its_cookie(tmp_path: Path) -> None:
    async with served(tmp_path, auth=True) as (app, client):
        key = await app.make_first_key()
        assert key is not None
        assert await app.make_first_key() is None
        client.headers["authorization"] = f"Bearer {key.get_secret_value()}"
        made = await client.post(f"{API}/keys", json={"owner": "ann", "scopes": ["read"], "note": "phone"})
        assert made.status_code == 201
        listed = (await client.get(f"{API}/keys")).json()
        assert [each["owner"] for each in listed] == ["default", "ann"]
        assert made.json()["key"] not in str(listed)
        ann = {"authorization": f"Bearer {made.json()['key']}"}
        assert (await client.get(f"{API}/version", headers=ann)).status_code == 200
        assert (await client.post(f"{API}/tickets", headers=ann)).status_code == 201
        code = (await client.post(f"{API}/page-codes", headers=ann)).json()["ticket"]
        del client.headers["authorization"]
        entered = await client.get("/enter", params={"code": code})
        assert entered.status_code == 200
        assert "url=./'" in entered.text
        assert "HttpOnly" in entered.headers["set-cookie"]
        assert (await client.get("/docs", headers={"sec-fetch-site": "none"})).status_code == 200  # by the cookie
        assert (await client.get("/enter", params={"code": code})).status_code == 401
        client.cookies.clear()
        client.headers["authorization"] = f"Bearer {key.get_secret_value()}"
        assert (await client.delete(f"{API}/keys/{made.json()['id']}")).status_code == 204
        assert (await client.get(f"{API}/version", headers=ann)).status_code == 401
        assert (await client.delete(f"{API}/keys/ac_000000000000")).status_code == 404


@pytest.mark.parametrize("kind", sorted(COMMAND_ROUTES))
def test_every_command_of_the_wire_has_a_route_with_its_scope(kind: str) -> None:
    command = COMMAND_ROUTES[kind]
    found = [
        route
        for route in all_routes()
        if (route.method, route.path) == (command.method, f"{API}/conversations/{{id}}{command.path}")
    ]
    assert [route.scope for route in found] == [command.scope]


async def test_a_name_that_there_is_none_of_is_answered_with_those_that_there_are(tmp_path: Path) -> None:
    async with served(tmp_path) as (_, client):
        for spec, name in (({"agent": "codr"}, "'coder'"), ({"policy": {"name": "always"}}, "always_confirm")):
            answer = await client.post(f"{API}/conversations", json=spec)
            assert answer.status_code == 422
            assert name in answer.json()["detail"]
