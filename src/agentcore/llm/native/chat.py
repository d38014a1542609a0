"""The Chat Completions interface over plain HTTP: OpenAI's, and that of the many who speak as it does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from pydantic import JsonValue

from agentcore.llm.caches import PrefixCache
from agentcore.llm.formats.chat import encode_messages, encode_tools
from agentcore.llm.formats.chat_reply import read_reply
from agentcore.llm.formats.chat_stream import ChatDecoder
from agentcore.llm.native.wire import Call, array, bearer_headers, body_of, own_fields, to_json, tool_cache
from agentcore.llm.providers import Host
from agentcore.messages import Message

_MARK: JsonValue = {"type": "ephemeral"}


_tools = tool_cache(lambda tool: encode_tools([tool])[0])


@dataclass(frozen=True, slots=True)
class ChatWire:
    """Speaks it as a certain provider wants it."""

    host: Host

    def url(self, base_url: str) -> str:
        return base_url if base_url.endswith("/chat/completions") else f"{base_url}/chat/completions"

    def headers(self, key: str | None) -> dict[str, str]:
        return bearer_headers(key)

    def body(self, call: Call) -> bytes:
        settings = call.settings
        marks = settings.prompt_caching and self.host.cache_marks and "claude" in settings.model
        ready = {"messages": array(_written(call.messages[:], settings.provider, marks=marks))}
        more, own_tools = own_fields(call.settings)
        if tools := [*map(_tools, call.tools), *own_tools]:
            ready["tools"] = array(tools)
        return body_of(self._options(call) | more, **ready)

    def _options(self, call: Call) -> dict[str, Any]:
        settings, host = call.settings, self.host
        options: dict[str, Any] = {"model": settings.model.removeprefix(f"{settings.provider}/")}
        if call.streamed:
            options["stream"] = True
            if host.counts_streams:
                options["stream_options"] = {"include_usage": True}
        if settings.max_output_tokens is not None:
            # Servers of one's own know only the old word.
            limit = host.output_limit if settings.base_url is None else "max_tokens"
            options[limit] = settings.max_output_tokens
        options |= self._effort(call)
        # Models of OpenAI that reason refuse both.
        fixed = settings.drop_params and settings.provider == "openai" and call.features.reasoning
        if not fixed:
            sampling = {"temperature": settings.temperature, "top_p": settings.top_p}
            options |= {name: value for name, value in sampling.items() if value is not None}
        if call.context.prompt_cache_key is not None and host.cache_key and settings.base_url is None:
            options["prompt_cache_key"] = call.context.prompt_cache_key
        if call.context.stop:
            options["stop"] = list(call.context.stop)
        if (schema := call.schema) is not None:
            options["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": schema.name, "schema": schema.schema, "strict": False},
            }
        if settings.logprobs is not None:
            options |= {"logprobs": True} | ({"top_logprobs": settings.logprobs} if settings.logprobs else {})
        if settings.service_tier is not None:
            options["service_tier"] = settings.service_tier
        if settings.provider == "openrouter":
            options["usage"] = {"include": True}
        return options

    def _effort(self, call: Call) -> dict[str, Any]:
        effort = call.settings.reasoning_effort
        if effort is None or (call.settings.drop_params and call.features.reasoning is False):
            return {}
        match self.host.effort:
            case "reasoning":
                return {"reasoning": {"enabled": False} if effort == "none" else {"effort": effort}}
            case "thinking":
                return {"thinking": {"type": "disabled" if effort == "none" else "enabled"}}
            case "enable_thinking":
                return {"enable_thinking": effort != "none"}
            case _:
                return {"reasoning_effort": effort}

    answer = staticmethod(read_reply)
    decoder = ChatDecoder


def _written(messages: Sequence[Message], provider: str, *, marks: bool) -> Iterator[bytes | bytearray]:
    """Return the encoded messages: the marked first one, those of the last request, and the new ones.

    The end is written anew each time: what belongs to the last answers may still come.
    """
    end = max(len(messages) - 1, 0)
    while end and messages[end].role == "tool":
        end -= 1
    begin = 1 if marks and end else 0
    if begin:
        yield _mark(encode_messages(messages[:1], f"{provider}/"))
    if begin < end:
        yield _beginnings(provider)(messages[begin:end])
    if last := encode_messages(messages[end:], f"{provider}/"):
        yield _mark(last) if marks else b",".join(map(to_json, last))


def _encode(messages: Sequence[Message], provider: str) -> bytes:
    return b",".join(map(to_json, encode_messages(messages, f"{provider}/")))


@cache
def _beginnings(provider: str) -> PrefixCache[Message]:
    """The encoded messages of conversations, for one provider."""
    return PrefixCache(partial(_encode, provider=provider))


def _mark(encoded: list[dict[str, JsonValue]]) -> bytes:
    """Write messages with a cache mark on the last piece of the last one that has words."""
    last = encoded[-1]
    content = last.get("content")
    if isinstance(content, str) and content:
        last = {**last, "content": [{"type": "text", "text": content, "cache_control": _MARK}]}
    elif isinstance(content, list) and content and isinstance(content[-1], dict):
        last = {**last, "content": [*content[:-1], {**content[-1], "cache_control": _MARK}]}
    return b",".join(map(to_json, [*encoded[:-1], last]))
