"""The key that litellm is handed."""

from __future__ import annotations

import pytest

from agentcore.llm import LLM
from agentcore.llm.litellm_route.wires import common_options


def test_an_empty_key_keeps_litellm_from_looking_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-user")
    own = LLM(model="mine", base_url="http://127.0.0.1:1", api_key="")
    assert common_options(own)["api_key"] == "none"
    assert "api_key" not in common_options(LLM(model="openai/gpt-5"))
