"""Where a model from a log may be reached, and with which key."""

from __future__ import annotations

from typing import Any

import pytest

from agentcore.errors import AddressNotAllowed
from agentcore.llm import LLM, Model, allow_base_url, restore_model
from agentcore.llm.keys import find_key


@pytest.fixture(autouse=True)
def _surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    # What other tests of this process have allowed, as the command line does for its --base-url.
    monkeypatch.setattr("agentcore.llm.recording._allowed", set[str]())
    for name in ("OPENAI", "ANTHROPIC", "HOSTED_VLLM", "OLLAMA", "COHERE", "GEMINI", "X"):
        monkeypatch.setenv(f"{name}_API_KEY", "sk-of-the-user")


def restored(model: str, base_url: str | None = None, **settings: Any) -> Model:
    return restore_model(LLM(model=model, base_url=base_url, **settings).record())


def key_of(model: Model) -> str | None:
    assert isinstance(model, LLM)
    return find_key(model)


@pytest.mark.parametrize(
    ("model", "base_url"),
    [
        ("openai/gpt-5", None),
        ("cohere/command", None),
        ("openai/gpt-5", "https://api.openai.com/v1"),
        ("openai/gpt-5", "https://API.openai.com:443/v1/responses"),
        ("anthropic/claude-sonnet-4-5", "https://api.anthropic.com/v1"),
        ("ollama/x", "http://localhost:11434/v1"),
    ],
)
def test_a_provider_is_sent_the_key_where_it_always_is(model: str, base_url: str | None) -> None:
    assert key_of(restored(model, base_url)) == "sk-of-the-user"


@pytest.mark.parametrize(
    ("model", "base_url"),
    [
        ("mine", "https://attacker.example/v1"),
        ("openai/gpt-5", "http://api.openai.com/v1"),
        ("openai/gpt-5", "https://api.openai.com:8443/v1"),
        ("openai/gpt-5", "https://api.openai.com.attacker.example/v1"),
        ("openai/gpt-5", "https://attacker.example/api.openai.com"),
        ("anthropic/claude-sonnet-4-5", "https://api.openai.com/v1"),
        ("hosted_vllm/x", "http://10.0.0.1:8000/v1"),
        ("mine", "http://localhost.attacker.example/v1"),
        ("mine", "http://127.0.0.1.attacker.example/v1"),
        ("cohere/command", "http://127.0.0.1:1"),
        ("x/y", "https://attacker.example/v1"),
    ],
)
def test_an_address_that_only_the_log_names_is_refused_by_name(model: str, base_url: str) -> None:
    with pytest.raises(AddressNotAllowed) as raised:
        restored(model, base_url)
    assert raised.value.address == base_url
    assert base_url in str(raised.value)
    assert "allow_base_url" in str(raised.value)


@pytest.mark.parametrize(
    "options",
    [
        {"api_base": "https://attacker.example"},
        {"nested": [{"anything": "https://attacker.example"}]},
        {"aws_bedrock_runtime_endpoint": "https://attacker.example"},
        {"azure": {"host": "attacker.example"}},
    ],
)
def test_options_of_litellm_can_not_lead_elsewhere(options: dict[str, Any]) -> None:
    with pytest.raises(AddressNotAllowed, match=r"attacker\.example"):
        restored("openai/gpt-5", provider_options=options)
    with pytest.raises(AddressNotAllowed, match=r"https://attacker\.example/x"):
        restored("huggingface/https://attacker.example/x", route="litellm")
    assert key_of(restored("openai/gpt-5", provider_options={"api_version": "2025-01-01"})) == "sk-of-the-user"


@pytest.mark.parametrize(
    ("model", "base_url"),
    [
        ("mine", "http://127.0.0.1:8000/v1"),
        ("mine", "http://localhost:8000/v1"),
        ("mine", "http://[::1]:8000/v1"),
        ("hosted_vllm/x", "http://127.0.0.1:8000/v1"),
        ("ollama/x", "http://127.0.0.2:11434/v1"),
    ],
)
def test_a_server_on_this_machine_is_reached_without_a_key(model: str, base_url: str) -> None:
    again = restored(model, base_url)
    assert isinstance(again, LLM)
    assert (again.base_url, key_of(again)) == (base_url, None)
    assert again.record() == LLM(model=model, base_url=base_url).record()


@pytest.mark.parametrize(
    ("model", "variable"),
    [("openai/x", "OPENAI_BASE_URL"), ("cohere/x", "COHERE_API_BASE"), ("gemini/x", "GOOGLE_GEMINI_BASE_URL")],
)
def test_an_address_of_the_environment_is_allowed(model: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, "https://gateway.example/v1/")
    assert key_of(restored(model, "https://gateway.example/v1")) == "sk-of-the-user"
    with pytest.raises(AddressNotAllowed):
        restored(model, "https://gateway.example/v2")
    with pytest.raises(AddressNotAllowed):
        restored("groq/x", "https://gateway.example/v1")


def test_an_address_that_the_program_allows_is_allowed_with_what_is_below_it() -> None:
    allow_base_url("https://allowed.example/a")
    for path in ("a", "a/b", "a/b/c"):
        assert key_of(restored("mine", f"https://allowed.example/{path}")) == "sk-of-the-user"
    for path in ("", "ab", "b", "a/../b", "a/%2e%2e/b"):
        with pytest.raises(AddressNotAllowed):
            restored("mine", f"https://allowed.example/{path}")
