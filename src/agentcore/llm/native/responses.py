"""The Responses interface over plain HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from pydantic import JsonValue

from agentcore.llm.caches import PrefixCache
from agentcore.llm.formats.responses import encode_function_tools, encode_items
from agentcore.llm.formats.responses_reply import ResponsesDecoder, read_response
from agentcore.llm.native.wire import Call, array, bearer_headers, body_of, own_fields, to_json, tool_cache
from agentcore.llm.providers import Host
from agentcore.messages import Message

_tools = tool_cache(lambda tool: encode_function_tools([tool])[0])


@dataclass(frozen=True, slots=True)
class ResponsesWire:
    """Speaks it. Nothing of a conversation is kept at the provider: reasoning comes and goes encrypted."""

    host: Host

    def url(self, base_url: str) -> str:
        return base_url if base_url.endswith("/responses") else f"{base_url}/responses"

    def headers(self, key: str | None) -> dict[str, str]:
        return bearer_headers(key)

    def body(self, call: Call) -> bytes:
        instructions, items = _written(call.messages[:], call.settings.provider)
        ready = {"input": array(items)}
        more, own_tools = own_fields(call.settings)
        if tools := [*map(_tools, call.tools), *own_tools]:
            ready["tools"] = array(tools)
        return body_of(_options(call, instructions) | more, **ready)

    answer = staticmethod(read_response)
    decoder = ResponsesDecoder


def _options(call: Call, instructions: str | None) -> dict[str, Any]:
    settings, reasons = call.settings, call.features.reasoning
    options: dict[str, Any] = {"model": settings.model.removeprefix(f"{settings.provider}/"), "store": False}
    if instructions is not None:
        options["instructions"] = instructions
    if call.streamed:
        options["stream"] = True
    if settings.max_output_tokens is not None:
        options["max_output_tokens"] = settings.max_output_tokens
    if settings.reasoning_effort is not None and not (settings.drop_params and reasons is False):
        options["reasoning"] = {"effort": settings.reasoning_effort, "summary": "auto"}
    if reasons or "reasoning" in options:
        # Models that do not reason refuse to be asked for it.
        options["include"] = ["reasoning.encrypted_content"]
    if settings.logprobs is not None:
        options["include"] = [*options.get("include", ()), "message.output_text.logprobs"]
        options |= {"top_logprobs": settings.logprobs} if settings.logprobs else {}
    if settings.service_tier is not None:
        options["service_tier"] = settings.service_tier
    if not (settings.drop_params and reasons):
        # Models that reason refuse both.
        sampling = {"temperature": settings.temperature, "top_p": settings.top_p}
        options |= {name: value for name, value in sampling.items() if value is not None}
    if call.context.prompt_cache_key is not None and settings.base_url is None:
        options["prompt_cache_key"] = call.context.prompt_cache_key
    if (schema := call.schema) is not None:
        options["text"] = {
            "format": {"type": "json_schema", "name": schema.name, "schema": schema.schema, "strict": False}
        }
    return options


def _written(messages: Sequence[Message], provider: str) -> tuple[str | None, list[bytes | bytearray]]:
    """Return the instructions (the system messages at the beginning) and the encoded other messages."""
    first = next((at for at, message in enumerate(messages) if message.role != "system"), len(messages))
    written = [_beginnings(provider)(messages[first:])] if first < len(messages) else []
    return "\n\n".join(message.text for message in messages[:first]) or None, [data for data in written if data]


def _encode(messages: Sequence[Message], provider: str) -> bytes:
    return b",".join(
        to_json(item)
        for message in messages
        for item in (encode_items([message], f"{provider}/")[1] if message.role != "system" else [_said_later(message)])
    )


def _said_later(message: Message) -> JsonValue:
    """Write words of the system that do not stand first: there they are an item like others."""
    return {"type": "message", "role": "system", "content": [{"type": "input_text", "text": message.text}]}


@cache
def _beginnings(provider: str) -> PrefixCache[Message]:
    """The encoded messages of conversations, for one provider."""
    return PrefixCache(partial(_encode, provider=provider))
