"""Providers: their names in names of models, the variables of their keys, and where they are reached.

A model's name is `provider/model`, or `provider:model`; what follows the provider is the provider's own.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Literal

# One line per letter. A test compares it with what litellm knows.
_KNOWN = """
    a2a a2a_agent ai21 ai21_chat aiml aiohttp_openai amazon_nova anthropic anthropic_text apertis assemblyai auto_router
    aws_polly aws_textract azure azure_ai azure_speech azure_text
    baseten bedrock bedrock_mantle black_forest_labs bytez
    cerebras charity_engine chatgpt chutes clarifai cloudflare codestral cognition cohere cohere_chat cometapi compactifai
    cortecs cursor custom custom_openai
    darkbloom dashscope databricks datarobot deepgram deepinfra deepseek docker_model_runner dotprompt
    edenai elevenlabs empower
    fal_ai featherless_ai fireworks_ai friendliai
    galadriel gdc gemini gigachat github github_copilot gradient_ai groq
    helicone heroku hosted_vllm huggingface humanloop hyperbolic
    inception infinity
    jina_ai
    lambda_ai langflow langfuse langgraph lemonade libertai litellm_agent litellm_proxy llamafile lm_studio
    manus maritalk meta meta_llama milvus minimax mistral modelscope mongodb moonshot morph
    nadir nano-gpt nebius neosantara nlp_cloud novita nscale nvidia_nim nvidia_riva
    oci ollama ollama_chat oobabooga openai openai_like openrouter ovhcloud
    parasail perplexity petals pg_vector pinstripes poe predibase prism publicai
    qwen_ai_platform qwencloud
    ragflow recraft reducto reka replicate runwayml
    s3_vectors sagemaker sagemaker_chat sagemaker_nova sail sambanova sap scaleway scx-ai snowflake soniox stability
    strands_decider synthetic
    tencent tensormesh text-completion-codestral text-completion-inception text-completion-openai together_ai topaz
    transcribe triton typesafe
    v0 valkey vercel_ai_gateway vertex_ai vertex_ai_beta vllm volcengine voyage
    wandb watsonx watsonx_text
    xai xiaomi_mimo xinference
    zai
"""

PROVIDERS = frozenset(_KNOWN.split())
"""The providers that a name may start with."""

KEY_VARIABLES: dict[str, tuple[str, ...]] = {
    "anthropic": ("ANTHROPIC_API_KEY",),
    "azure": ("AZURE_API_KEY",),
    "bedrock": ("AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"),
    "cerebras": ("CEREBRAS_API_KEY",),
    "cohere": ("COHERE_API_KEY",),
    "dashscope": ("DASHSCOPE_API_KEY",),
    "deepseek": ("DEEPSEEK_API_KEY",),
    "fireworks_ai": ("FIREWORKS_API_KEY",),
    "gemini": ("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    "groq": ("GROQ_API_KEY",),
    "huggingface": ("HF_TOKEN",),
    "mistral": ("MISTRAL_API_KEY",),
    "moonshot": ("MOONSHOT_API_KEY",),
    "openai": ("OPENAI_API_KEY",),
    "openrouter": ("OPENROUTER_API_KEY",),
    "perplexity": ("PERPLEXITYAI_API_KEY",),
    "together_ai": ("TOGETHERAI_API_KEY",),
    "vertex_ai": ("GOOGLE_APPLICATION_CREDENTIALS",),
    "xai": ("XAI_API_KEY",),
    "zai": ("ZAI_API_KEY",),
}
"""The environment variables that hold the keys of the providers people use most; one of each tuple is enough."""


_MAKERS = {
    "claude": ("anthropic", "claude-sonnet-4-5"),
    "gpt": ("openai", "gpt-5"),
    "chatgpt": ("openai", "gpt-5"),
    "codex": ("openai", "gpt-5"),
    "o1": ("openai", "o1"),
    "o3": ("openai", "o3"),
    "o4": ("openai", "o4-mini"),
    "gemini": ("gemini", "gemini-2.5-pro"),
    "grok": ("xai", "grok-4"),
    "deepseek": ("deepseek", "deepseek-chat"),
    "mistral": ("mistral", "mistral-large-latest"),
    "codestral": ("mistral", "codestral-latest"),
    "devstral": ("mistral", "devstral-medium-latest"),
    "kimi": ("moonshot", "kimi-k2-thinking"),
    "glm": ("zai", "glm-4.6"),
    "sonar": ("perplexity", "sonar"),
}
"""How names of models begin, who makes these, and a whole name of one."""


class NoProvider(ValueError):
    """A model's name says no provider."""

    def __init__(self, name: str) -> None:
        self.name = name
        """The name, as it was given."""
        self.example = _example(name)
        """A name that may be meant, with its provider."""
        super().__init__(
            f"{name!r} names no provider. Write the provider and the model, as in {self.example!r}; for a server of your "
            f"own, say where it is: LLM(model={name!r}, base_url=...)."
        )


def _example(name: str) -> str:
    low = name.lower()
    for beginning, (provider, whole) in _MAKERS.items():
        if low.startswith(beginning):
            # Without a number it is a family's name, which no provider knows.
            return f"{provider}/{name if any(map(str.isdigit, name)) else whole}"
    return "anthropic/claude-sonnet-4-5"


def full_name(name: str, *, compatible: bool) -> str:
    """Return `provider/model` for a name as a person writes it.

    Args:
        name: The name.
        compatible: Whether an address is given too. Then a name without a known provider is one that the server there
            knows, and the server speaks as OpenAI's does.

    Raises:
        NoProvider: The name says no provider.
        ValueError: It says no model.
    """
    name = name.strip()
    slash, colon = name.find("/"), name.find(":")
    first = min((at for at in (slash, colon) if at >= 0), default=-1)
    provider, model = (name[:first], name[first + 1 :]) if first >= 0 else ("", name)
    if not model:
        raise ValueError(f"{name!r} names no model. Write the provider and the model: 'anthropic/claude-sonnet-4-5'.")
    if provider in PROVIDERS:
        return f"{provider}/{model}"
    if compatible:
        return f"openai/{name}"
    if provider and slash == first:
        return name  # a provider that litellm may have learned of since
    raise NoProvider(name)


def provider_of(name: str) -> str:
    """Return the provider of a full name."""
    return name.partition("/")[0]


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

    def address(self, base_url: str | None) -> str | None:
        """Return where it is reached: at `base_url`, where the environment says, or at its usual address."""
        if base_url is not None:
            return base_url
        given = (os.environ.get(variable, "").strip() for variable in self.url_variables)
        return next((url.rstrip("/") for url in given if url), self.base_url)


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
