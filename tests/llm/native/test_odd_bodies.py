"""JSON with status 200 that is no reply: an error with its words, on each wire, whether a stream was asked for or not."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentcore.errors import ModelError
from agentcore.llm import LLM
from model_route import ASK, KEY, canned, read

WIRES: dict[str, dict[str, Any]] = {
    "chat": {"model": "openai/m", "api_mode": "chat"},
    "responses": {"model": "openai/m", "api_mode": "responses"},
    "anthropic": {"model": "anthropic/claude-sonnet-4-5"},
    "gemini": {"model": "gemini/gemini-2.5-flash"},
}
REPLIES: dict[str, dict[str, Any]] = {
    "chat": {"choices": [{"message": {"content": "Hi."}}]},
    "responses": {"status": "completed", "output": []},
    "anthropic": {"content": [{"type": "text", "text": "Hi."}]},
    "gemini": {"candidates": [{"content": {"parts": [{"text": "Hi."}]}, "finishReason": "STOP"}]},
}
ODD: list[tuple[dict[str, Any], str]] = [
    ({}, "nothing"),
    ({"message": "upstream failure"}, "upstream failure"),
    ({"detail": "upstream failure"}, "upstream failure"),
    ({"object": "error", "message": "upstream failure"}, "upstream failure"),
    ({"success": False, "reason": "upstream failure"}, "upstream failure"),
    ({"error": {"message": "upstream failure"}}, "upstream failure"),
    ({"error": "upstream failure"}, "upstream failure"),
]


@pytest.mark.parametrize("wire", WIRES)
async def test_what_is_no_reply_is_an_error_with_its_words(wire: str) -> None:
    others = [(reply, "Check base_url") for name, reply in REPLIES.items() if name != wire]
    for body, words in [*ODD, *others]:
        data = json.dumps(body).encode()
        async with canned(data, data) as server:
            llm = LLM.model_validate({"base_url": server.url, "api_key": KEY, "num_retries": 0} | WIRES[wire])
            with pytest.raises(ModelError) as whole:
                await llm.complete(ASK)
            with pytest.raises(ModelError) as streamed:
                await read(llm)
        assert words in str(whole.value)
        assert str(streamed.value) == str(whole.value)
