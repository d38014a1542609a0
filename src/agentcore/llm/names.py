"""Names of models and providers, as people write them.

A model's name is `provider/model`, or `provider:model`; what follows the provider is the provider's own.
"""

from __future__ import annotations

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
