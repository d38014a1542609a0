"""Texts by which providers and servers say that a request is longer than the model can read, with where each was seen.

No two agree on the words, and most have no code for it.
"""

from __future__ import annotations

import re

__all__ = ["says_too_long"]

_TEXTS = (
    # OpenAI, vLLM, Fireworks, Cerebras, LM Studio, and who speaks as they do
    r"context.?length",
    r"context.?window",
    r"maximum context",
    r"reduce the length of the messages",
    # Anthropic
    r"prompt is too long",
    r"exceed context limit",
    r"request_too_large",
    # Bedrock
    r"input is too long",
    r"too many (?:input )?tokens",
    # Google, at both of its addresses
    r"exceed\w* the maximum number of tokens",
    r"input token count is \d+ but (?:the )?model only supports",
    # llama.cpp: ggml-org/llama.cpp#19774, and with status 500 in the middle of a reply
    r"exceeds the available context size",
    r"context size has been exceeded",
    # xAI: cline/cline#3120
    r"maximum prompt length is",
    # Moonshot: MoonshotAI/kimi-cli#2011
    r"exceeded model token limit",
    # DashScope: QwenLM/qwen-code#98
    r"range of input length should be",
    # SGLang and Volcengine Ark: sgl-project/sglang#4048, langgenius/dify#32221
    r"input length \S+ exceeds the maximum (?:allowed )?length",
    # Groq, whose limit of a minute is below what the model reads: RooCodeInc/Roo-Code#5729
    r"reduce your message size",
    # Z.ai, code 1261
    r"prompt exceeds max(?:imum)? length",
    # Together and Text Generation Inference
    r"`inputs` tokens \+",
)

_TOO_LONG = re.compile("|".join(_TEXTS), re.IGNORECASE)


def says_too_long(said: str, codes: str) -> bool:
    """Return whether an error says that the request is too long."""
    return bool(_TOO_LONG.search(said) or _TOO_LONG.search(codes))
