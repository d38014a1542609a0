"""The user's own fields of a request, which go to the provider as they are."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import pytest

from agentcore.llm import ModelRequest
from agentcore.llm.native.exchange import prepare
from agentcore.llm.settings import LLMSettings
from agentcore.messages import Message, ToolSchema

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
async def test_the_providers_tools_stand_beside_the_agents(model: str) -> None:
    ours, theirs = (await sent(model, tools=[THEIRS]))["tools"]
    assert theirs.items() >= THEIRS.items()
    assert "read" in json.dumps(ours)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("field", ["messages", "input", "system", "tools", "user"])
async def test_a_field_of_the_users_stands_in_place_of_ours_and_is_there_once(model: str, field: str) -> None:
    assert (await sent(model, **{field: "theirs"}))[field] == "theirs"
