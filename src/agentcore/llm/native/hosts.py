"""Where providers are that speak an interface the native route speaks, and what is peculiar to each."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

from agentcore.llm.settings import LLMSettings


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """One provider."""

    base_url: str | None = None
    """Where it is; None where only the user knows."""
    wire: Literal["chat", "anthropic", "gemini"] = "chat"
    """The interface it has; Responses besides, where `responses` says so."""
    responses: bool = False
    url_variables: tuple[str, ...] = ()
    """Environment variables that say where it is instead."""
    needs_key: bool = True
    output_limit: Literal["max_tokens", "max_completion_tokens"] = "max_tokens"
    """The name of the output limit in requests."""
    effort: Literal["reasoning_effort", "reasoning", "thinking", "enable_thinking"] = "reasoning_effort"
    """How it is told how much to think."""
    cache_key: bool = False
    """True if it takes `prompt_cache_key`."""
    cache_marks: bool = False
    """True if it passes cache marks on to models that want them."""
    counts_streams: bool = True
    """True if it counts the tokens of a stream only on request."""


HOSTS: dict[str, Host] = {
    "anthropic": Host(
        base_url="https://api.anthropic.com",
        wire="anthropic",
        url_variables=("ANTHROPIC_BASE_URL", "ANTHROPIC_API_BASE"),
    ),
    "cerebras": Host(base_url="https://api.cerebras.ai/v1", url_variables=("CEREBRAS_API_BASE",)),
    "dashscope": Host(
        base_url="https://dashscope-intl.aliyuncs.com/compatible-mode/v1",
        url_variables=("DASHSCOPE_API_BASE",),
        effort="enable_thinking",
    ),
    "deepinfra": Host(base_url="https://api.deepinfra.com/v1/openai", url_variables=("DEEPINFRA_API_BASE",)),
    "deepseek": Host(base_url="https://api.deepseek.com/v1", url_variables=("DEEPSEEK_API_BASE",), effort="thinking"),
    "fireworks_ai": Host(base_url="https://api.fireworks.ai/inference/v1", url_variables=("FIREWORKS_API_BASE",)),
    "gemini": Host(
        base_url="https://generativelanguage.googleapis.com/v1beta",
        wire="gemini",
        url_variables=("GOOGLE_GEMINI_BASE_URL", "GEMINI_API_BASE"),
    ),
    "groq": Host(base_url="https://api.groq.com/openai/v1", url_variables=("GROQ_API_BASE",)),
    "hosted_vllm": Host(url_variables=("HOSTED_VLLM_API_BASE",), needs_key=False),
    "huggingface": Host(base_url="https://router.huggingface.co/v1", url_variables=("HF_API_BASE",)),
    "litellm_proxy": Host(url_variables=("LITELLM_PROXY_API_BASE",), needs_key=False, cache_marks=True),
    "lm_studio": Host(base_url="http://localhost:1234/v1", url_variables=("LM_STUDIO_API_BASE",), needs_key=False),
    "mistral": Host(base_url="https://api.mistral.ai/v1", url_variables=("MISTRAL_API_BASE",), counts_streams=False),
    "moonshot": Host(base_url="https://api.moonshot.ai/v1", url_variables=("MOONSHOT_API_BASE",)),
    "nebius": Host(base_url="https://api.studio.nebius.ai/v1", url_variables=("NEBIUS_API_BASE",)),
    "ollama": Host(base_url="http://localhost:11434/v1", needs_key=False),
    "ollama_chat": Host(base_url="http://localhost:11434/v1", needs_key=False),
    "openai": Host(
        base_url="https://api.openai.com/v1",
        responses=True,
        url_variables=("OPENAI_BASE_URL", "OPENAI_API_BASE"),
        output_limit="max_completion_tokens",
        cache_key=True,
    ),
    "openrouter": Host(
        base_url="https://openrouter.ai/api/v1",
        url_variables=("OPENROUTER_API_BASE",),
        effort="reasoning",
        cache_marks=True,
    ),
    "perplexity": Host(base_url="https://api.perplexity.ai", url_variables=("PERPLEXITY_API_BASE",)),
    "sambanova": Host(base_url="https://api.sambanova.ai/v1", url_variables=("SAMBANOVA_API_BASE",)),
    "together_ai": Host(base_url="https://api.together.xyz/v1", url_variables=("TOGETHERAI_API_BASE",)),
    "xai": Host(base_url="https://api.x.ai/v1", url_variables=("XAI_API_BASE",)),
    "zai": Host(base_url="https://api.z.ai/api/paas/v4", url_variables=("ZAI_API_BASE",), effort="thinking"),
}
"""The providers that are reached natively, by the name that a model's name begins with."""


def goes_native(settings: LLMSettings) -> bool:
    """Return whether a model is reached over plain HTTP and not through litellm."""
    if settings.route != "auto":
        return settings.route == "native"
    # Options that only litellm knows are a wish to go through it.
    return settings.provider in HOSTS and not settings.provider_options


def where(settings: LLMSettings, host: Host) -> str | None:
    """Return the provider's address: from the settings, from the environment, or its usual one."""
    if settings.base_url is not None:
        return settings.base_url
    for variable in host.url_variables:
        if given := os.environ.get(variable, "").strip():
            return given.rstrip("/")
    return host.base_url
