from __future__ import annotations

import pytest

from agentcore.llm.providers import NoProvider, full_name, provider_of


@pytest.mark.parametrize(
    ("name", "full"),
    [
        ("anthropic/claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("anthropic:claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        (" openai/gpt-5 ", "openai/gpt-5"),
        ("ollama/llama3:8b", "ollama/llama3:8b"),
        ("ollama:llama3:8b", "ollama/llama3:8b"),
        ("openrouter:meta-llama/llama-3:free", "openrouter/meta-llama/llama-3:free"),
        ("bedrock/anthropic.claude-v2:1", "bedrock/anthropic.claude-v2:1"),
        ("somebody_new/model", "somebody_new/model"),
        # At an address of one's own any name will do.
        (("gpt-5",), "openai/gpt-5"),
        (("llama3:8b",), "openai/llama3:8b"),
        (("meta-llama/Llama-3-8B",), "openai/meta-llama/Llama-3-8B"),
        (("anthropic/claude-sonnet-4-5",), "anthropic/claude-sonnet-4-5"),
    ],
)
def test_a_name_says_its_provider_with_a_slash_or_a_colon(name: str | tuple[str], full: str) -> None:
    if isinstance(name, tuple):
        assert full_name(name[0], compatible=True) == full
    else:
        assert full_name(name, compatible=False) == full
    assert provider_of(full) == full.partition("/")[0]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("gpt-5", "openai/gpt-5"),
        ("o4-mini", "openai/o4-mini"),
        ("claude-sonnet-4-5", "anthropic/claude-sonnet-4-5"),
        ("Claude", "anthropic/claude-sonnet-4-5"),
        ("gemini-2.5-flash", "gemini/gemini-2.5-flash"),
        ("llama3:8b", "anthropic/claude-sonnet-4-5"),
    ],
)
def test_a_name_without_a_provider_is_refused_with_a_hint_at_who_makes_such_models(name: str, meant: str) -> None:
    with pytest.raises(NoProvider, match=rf"names no provider.*as in '{meant}'.*base_url") as raised:
        full_name(name, compatible=False)
    assert (raised.value.name, raised.value.example) == (name, meant)


@pytest.mark.parametrize("name", ["", "openai/", "openai:", "  "])
def test_a_name_without_a_model_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="names no model"):
        full_name(name, compatible=True)
