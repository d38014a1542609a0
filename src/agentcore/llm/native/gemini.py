"""Google's generateContent interface over plain HTTP, as AI Studio's keys open it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any
from urllib.parse import urlsplit

from agentcore.errors import BadRequest
from agentcore.llm.caches import PrefixCache
from agentcore.llm.formats.gemini import encode_contents, encode_declaration, run_start, system_parts, version_of
from agentcore.llm.formats.gemini_reply import GeminiDecoder, read_reply
from agentcore.llm.native.wire import Call, array, body_of, own_fields, to_json, tool_cache
from agentcore.llm.settings import LLMSettings
from agentcore.messages import Message

_VERSIONED = re.compile(r"/v\d\w*(?:/|$)")
_MOST_STOPS = 5
_BUDGETS = {"minimal": 512, "low": 1024, "medium": 8192, "high": 24_576, "xhigh": 24_576, "max": 24_576}
"""Tokens to think with, for models that want a number."""
_SMALLEST_PRO_BUDGET = 128


_tools = tool_cache(encode_declaration)


@dataclass(frozen=True, slots=True)
class GeminiWire:
    """Speaks it to one model. Whether a stream is wanted, the address says."""

    settings: LLMSettings
    streamed: bool

    def url(self, base_url: str) -> str:
        if not _VERSIONED.search(urlsplit(base_url).path) and not base_url.endswith("/models"):
            base_url = f"{base_url}/v1beta"
        name = self.settings.model.removeprefix(f"{self.settings.provider}/")
        base_url = base_url.removesuffix("/models")
        name = name if "/" in name else f"models/{name}"
        return f"{base_url}/{name}:{'streamGenerateContent?alt=sse' if self.streamed else 'generateContent'}"

    def headers(self, key: str | None) -> dict[str, str]:
        headers = {"content-type": "application/json"}
        if key is not None:
            headers["x-goog-api-key"] = key
        return headers

    def body(self, call: Call) -> bytes:
        messages = call.messages[:]
        first = next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))
        more, own_tools = own_fields(call.settings)
        options = _options(call)
        for name in ("generationConfig", "toolConfig"):
            if isinstance(given := more.get(name), dict):
                more[name] = options.get(name, {}) | given
        ready = {"contents": array(_written(messages[first:], call.settings))}
        declared = [b'{"functionDeclarations":[%b]}' % b",".join(map(_tools, call.tools))] if call.tools else []
        if tools := [*declared, *own_tools]:
            ready["tools"] = array(tools)
        if declared and own_tools and version_of(call.settings.model) >= (3, 0):
            # Only so do tools of the provider and of the agent go together, and only newer models do both.
            more["toolConfig"] = {"includeServerSideToolInvocations": True} | more.get("toolConfig", {})
        if parts := system_parts(messages[:first]):
            options["systemInstruction"] = {"parts": parts}
        return body_of(options | more, **ready)

    answer = staticmethod(read_reply)
    decoder = GeminiDecoder


def _options(call: Call) -> dict[str, Any]:
    settings = call.settings
    given = {
        "temperature": settings.temperature,
        "topP": settings.top_p,
        "maxOutputTokens": settings.max_output_tokens,
        "thinkingConfig": _thinking(call),
    }
    config: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if call.context.stop:
        config["stopSequences"] = list(call.context.stop[:_MOST_STOPS])
    if (schema := call.schema) is not None:
        config |= {"responseMimeType": "application/json", "responseJsonSchema": schema.schema}
    if settings.logprobs is not None:
        config |= {"responseLogprobs": True} | ({"logprobs": settings.logprobs} if settings.logprobs else {})
    options: dict[str, Any] = {"generationConfig": config} if config else {}
    if settings.service_tier is not None:
        options["serviceTier"] = settings.service_tier
    return options


def _thinking(call: Call) -> dict[str, Any] | None:
    """Build how much to think, as far as the model takes it.

    Raises:
        BadRequest: The model always thinks, and was asked not to.
    """
    settings, effort = call.settings, call.settings.reasoning_effort
    if effort is None or (settings.drop_params and call.features.reasoning is False):
        return None
    name, version = settings.model, version_of(settings.model)
    if effort == "none" and not settings.drop_params and (version >= (3, 0) or "pro" in name):
        raise BadRequest(
            f"{name}: this model always thinks. Take reasoning_effort='minimal' or 'low', or another model.", model=name
        )
    if version >= (3, 0):
        return {"includeThoughts": effort != "none", "thinkingLevel": _level(name, effort, settings)}
    if effort == "none":
        return {"thinkingBudget": _SMALLEST_PRO_BUDGET if "pro" in name else 0}
    longest = settings.max_output_tokens
    # The words of the reply need room as well.
    budget = _BUDGETS[effort] if longest is None else min(_BUDGETS[effort], longest * 4 // 5)
    return {"includeThoughts": True, "thinkingBudget": budget}


def _level(name: str, effort: str, settings: LLMSettings) -> str:
    if not settings.drop_params:
        return effort
    flash = "flash" in name
    if effort in {"none", "minimal"}:
        return "minimal" if flash else "low"
    # The first of this line knows only the two ends.
    if effort == "medium" and not flash and version_of(name) == (3, 0):
        return "high"
    return "high" if effort in {"xhigh", "max"} else effort


def _written(messages: Sequence[Message], settings: LLMSettings) -> list[bytes | bytearray]:
    """Return the contents as bytes: those that were there before, and the end, which is written anew each time."""
    end = run_start(messages)
    written: list[bytes | bytearray] = [_beginnings(settings.model, settings.provider)(messages[:end])] if end else []
    written.append(_encode(messages[end:], settings.model, settings.provider))
    return [data for data in written if data]


def _encode(messages: Sequence[Message], model: str, provider: str) -> bytes:
    return b",".join(map(to_json, encode_contents(messages, model, provider)))


@cache
def _beginnings(model: str, provider: str) -> PrefixCache[Message]:
    """Return the cache of what the messages of conversations were written as for a model."""
    return PrefixCache(partial(_encode, model=model, provider=provider))
