"""A history that one model began and another goes on with, as each interface is sent it."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Any, cast

import pytest

from agentcore import Agent
from agentcore.messages import (
    Message,
    ProviderBlock,
    ReasoningBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolSchema,
)
from agentcore.testing import ScriptedLLM, ScriptedReply, call, say
from agentcore.tools import tool
from gemini_server import SAID, google
from model_route import request_body
from talks import talk

THOUGHTS = {
    "anthropic": (
        ThinkingBlock(text="Hm.", signature="signed-by-anthropic", provider="anthropic"),
        RedactedThinkingBlock(data="hidden-by-anthropic", provider="anthropic"),
    ),
    "openai": (
        ReasoningBlock(id="rs_1", summary=("Hm.",), encrypted_content="hidden-by-openai", provider="openai"),
        ProviderBlock(provider="openai", data={"type": "web_search_call", "id": "found-by-openai"}),
    ),
    "gemini": (ThinkingBlock(text="Hm.", signature="signed-by-gemini", provider="gemini"),),
    "deepseek": (ThinkingBlock(text="Hm, by deepseek.", provider="deepseek"),),
}
OPAQUE = ("by-anthropic", "by-openai", "by-gemini")


@tool(resources=(), aliases=("lookup", "look up"))
async def find(file_path: str) -> str:
    """Find something."""
    return f"found {file_path}"


async def to_google(messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Any:
    async with google([SAID]) as server:
        await server.model().complete(messages, tools)
        return server.sent


def to(model: str, mode: str = "auto") -> Callable[[Sequence[Message], Sequence[ToolSchema]], Awaitable[Any]]:
    async def send(messages: Sequence[Message], tools: Sequence[ToolSchema]) -> Any:
        settings: dict[str, Any] = {"model": model} if mode == "auto" else {"model": model, "api_mode": mode}
        return await request_body(messages, tools, **settings)

    return send


WIRES = {
    "anthropic": to("anthropic/claude-sonnet-4-5"),
    "openai": to("openai/gpt-5", "responses"),
    "chat": to("openai/m", "chat"),
    "gemini": to_google,
}


def named(sent: object) -> list[str]:
    """Return the names of calls, and of answers where they have names, wherever they stand in a request."""
    if isinstance(sent, list):
        return [name for each in cast("list[object]", sent) for name in named(each)]
    if not isinstance(sent, dict):
        return []
    members = cast("dict[str, Any]", sent)
    names: list[str] = [members["name"]] if members.get("type") in ("tool_use", "function_call") else []
    for key, value in members.items():
        if key in ("functionCall", "functionResponse") or (key == "function" and "arguments" in value):
            names.append(value["name"])
        elif key != "tools":
            names += named(value)
    return names


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize("thinker", THOUGHTS)
async def test_what_one_model_thought_goes_to_no_other_and_its_calls_go_in_its_own_words(
    thinker: str, wire: str
) -> None:
    def thinking(name: str) -> ScriptedReply:
        (block,) = call(name, filePath="a").content
        return ScriptedReply(content=(*THOUGHTS[thinker], TextBlock(text="Let me look."), block))

    first = Agent(llm=ScriptedLLM([thinking("lookup"), thinking("look up"), say("one")]), tools=[find])
    second = ScriptedLLM([say("two")])
    async with talk(first) as conversation:
        await conversation.run("go")
        await conversation.set_agent(replace(first, llm=second))
        assert (await conversation.run("more")).text == "two"
    (request,) = second.requests
    assert sum(isinstance(block, ToolCallBlock) for message in request.messages for block in message.content) == 2
    sent = await WIRES[wire](request.messages, request.tools)
    text = json.dumps(sent)
    assert all(mark not in text for mark in OPAQUE if not mark.endswith(wire)), text
    # One name that every provider takes back, and one that none does; Gemini compares those of the answers.
    names = ["lookup", "find"] if wire != "gemini" else ["lookup", "lookup", "find", "find"]
    assert named(sent) == names
    assert text.count("filePath") == 2
    assert text.count("Let me look.") == 2
