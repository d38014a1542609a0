"""Requests: where they go, with whose key, and what the user's own fields and types make of them."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest
from pydantic import BaseModel

from agentcore.llm import LLM, Features, ModelRequest
from agentcore.llm.keys import find_key
from agentcore.llm.native.exchange import prepare
from agentcore.llm.providers import HOSTS, PROVIDERS
from agentcore.llm.settings import LLMSettings
from agentcore.messages import Message, ToolSchema
from agentcore.testing import call, serve_provider
from model_route import ASK

READ = ToolSchema(name="read", description="", parameters={"type": "object"})
THEIRS = {"type": "web_search"}
MODELS = ["openrouter/some-model", "openai/gpt-5", "anthropic/claude-sonnet-4-5"]


async def sent(model: str, **own: Any) -> dict[str, Any]:
    settings = LLMSettings(model=model, api_key="not-a-real-key", extra_body=own)
    asked = [Message.system("Be brief."), Message.user("Hi.")]
    exchange = await prepare(settings, ModelRequest(asked, [READ]), streamed=False)

    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert not [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
        return dict(pairs)

    return json.loads(exchange.body, object_pairs_hook=once)


@pytest.mark.parametrize("model", MODELS)
async def test_the_users_fields_stand_once_in_place_of_ours_and_his_tools_beside_them(model: str) -> None:
    ours, theirs = (await sent(model, tools=[THEIRS]))["tools"]
    assert theirs.items() >= THEIRS.items()
    assert "read" in json.dumps(ours)
    for field in ("messages", "input", "system", "tools", "user"):
        assert (await sent(model, **{field: "theirs"}))[field] == "theirs"


class Planet(BaseModel):
    """A planet."""

    name: str
    moons: int


@pytest.mark.parametrize("known", [True, False, None])
async def test_a_model_that_can_be_held_to_a_schema_is_and_any_other_answers_by_calling_a_tool(
    known: bool | None,
) -> None:
    earth = {"name": "Earth", "moons": 1}
    async with serve_provider([json.dumps(earth) if known else call("answer", **earth)]) as provider:
        llm = LLM(model="some-model", base_url=provider.base_url, features=Features(response_schema=known))
        assert await llm.parse(ASK, Planet) == Planet(name="Earth", moons=1)
        asked: dict[str, Any] = provider.requests[0].json()
    if known:
        assert "tools" not in asked
        assert asked["response_format"]["json_schema"]["schema"]["properties"].keys() == {"name", "moons"}
    else:
        assert "response_format" not in asked
        assert asked["tools"][0]["function"]["name"] == "answer"


def test_each_provider_is_one_that_a_name_may_begin_with_and_has_an_address_or_a_variable_for_one() -> None:
    assert set(HOSTS) <= PROVIDERS
    for host in HOSTS.values():
        assert host.base_url is not None or host.url_variables
        assert host.base_url is None or not host.base_url.endswith("/")


def test_address_and_key_are_those_of_the_settings_then_of_the_environment_then_the_usual_ones(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def address(model: str = "openai/gpt-5", **more: Any) -> str | None:
        settings = LLMSettings.model_validate({"model": model, **more})
        return HOSTS[model.partition("/")[0]].address(settings.base_url)

    def key(model: str, **more: Any) -> str | None:
        return find_key(LLMSettings.model_validate({"model": model, **more}))

    for variable in (*HOSTS["openai"].url_variables, "HOSTED_VLLM_API_BASE", "GROQ_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    assert address() == "https://api.openai.com/v1"
    assert address("hosted_vllm/m") is None
    monkeypatch.setenv("OPENAI_API_BASE", "http://older.example/v1/")
    assert address() == "http://older.example/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://proxy.example/v1")
    assert address() == "http://proxy.example/v1"
    assert address(base_url="http://own.example/v1/") == "http://own.example/v1"
    monkeypatch.setenv("OPENAI_API_KEY", "of-another")
    assert key("groq/m") is None
    monkeypatch.setenv("GROQ_API_KEY", "")
    assert key("groq/m") is None
    monkeypatch.setenv("GROQ_API_KEY", "of-the-environment")
    assert (key("groq/m"), key("groq/m", api_key="given")) == ("of-the-environment", "given")
    # One that has no line of its own has the variable that its name makes.
    monkeypatch.setenv("SAMBANOVA_API_KEY", "s")
    assert key("sambanova/m") == "s"
