from __future__ import annotations

from typing import Any

import pytest

from agentcore.llm.keys import find_key
from agentcore.llm.providers import HOSTS, PROVIDERS, Host
from agentcore.llm.settings import LLMSettings


def settings(model: str, **more: Any) -> LLMSettings:
    return LLMSettings.model_validate({"model": model, **more})


def address_of(settings: LLMSettings, host: Host) -> str | None:
    return host.address(settings.base_url)


def test_each_provider_is_one_that_a_name_may_begin_with_and_has_an_address_or_a_variable_for_one() -> None:
    assert set(HOSTS) <= PROVIDERS
    for host in HOSTS.values():
        assert host.base_url is not None or host.url_variables
        assert host.base_url is None or not host.base_url.endswith("/")


def test_the_address_is_that_of_the_settings_then_of_the_environment_then_the_usual_one(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    host = HOSTS["openai"]
    for variable in host.url_variables:
        monkeypatch.delenv(variable, raising=False)
    assert address_of(settings("openai/gpt-5"), host) == "https://api.openai.com/v1"
    monkeypatch.setenv("OPENAI_API_BASE", "http://older.example/v1/")
    assert address_of(settings("openai/gpt-5"), host) == "http://older.example/v1"
    monkeypatch.setenv("OPENAI_BASE_URL", "http://proxy.example/v1")
    assert address_of(settings("openai/gpt-5"), host) == "http://proxy.example/v1"
    assert address_of(settings("openai/gpt-5", base_url="http://own.example/v1/"), host) == "http://own.example/v1"
    monkeypatch.delenv("HOSTED_VLLM_API_BASE", raising=False)
    assert address_of(settings("hosted_vllm/m"), HOSTS["hosted_vllm"]) is None


def test_the_key_is_that_of_the_settings_or_of_the_providers_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("GROQ_API_KEY", raising=False)
    monkeypatch.setenv("OPENAI_API_KEY", "of-another")
    assert find_key(settings("groq/m")) is None
    monkeypatch.setenv("GROQ_API_KEY", "")
    assert find_key(settings("groq/m")) is None
    monkeypatch.setenv("GROQ_API_KEY", "of-the-environment")
    assert find_key(settings("groq/m")) == "of-the-environment"
    assert find_key(settings("groq/m", api_key="given")) == "given"
    # One that has no line of its own has the variable that its name makes.
    monkeypatch.setenv("SAMBANOVA_API_KEY", "s")
    assert find_key(settings("sambanova/m")) == "s"
