"""Answers of a type, where the provider can be held to it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import BaseModel

from agentcore.llm import LLM, Features
from agentcore.testing import call, serve_provider
from model_route import ASK


class Planet(BaseModel):
    """A planet."""

    name: str
    moons: int


EARTH = {"name": "Earth", "moons": 1}


async def test_a_model_that_can_be_held_to_a_schema_is() -> None:
    async with serve_provider([json.dumps(EARTH)]) as provider:
        llm = LLM(model="some-model", base_url=provider.base_url, features=Features(response_schema=True))
        assert await llm.parse(ASK, Planet) == Planet(name="Earth", moons=1)
        asked: dict[str, Any] = provider.requests[0].json()
    assert "tools" not in asked
    assert asked["response_format"]["json_schema"]["schema"]["properties"].keys() == {"name", "moons"}


@pytest.mark.parametrize("known", [False, None])
async def test_any_other_model_answers_by_calling_a_tool(known: bool | None) -> None:
    async with serve_provider([call("answer", **EARTH)]) as provider:
        llm = LLM(model="some-model", base_url=provider.base_url, features=Features(response_schema=known))
        assert await llm.parse(ASK, Planet) == Planet(name="Earth", moons=1)
        asked: dict[str, Any] = provider.requests[0].json()
    assert "response_format" not in asked
    assert asked["tools"][0]["function"]["name"] == "answer"
