"""The Chat Completions interface over plain HTTP: OpenAI's, and that of the many who speak as it does."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

from pydantic import JsonValue

from agentcore.llm.caches import IdentityCache, PrefixCache
from agentcore.llm.decoding import DecodedReply, StreamDecoder, stream_truncated
from agentcore.llm.error_bodies import find_error
from agentcore.llm.failures import no_reply, refused_in_stream
from agentcore.llm.formats.chat import encode_messages, encode_tools
from agentcore.llm.formats.chat_reply import answered, logprobs_in
from agentcore.llm.formats.chat_stream import ChatDecoder, assemble
from agentcore.llm.native.hosts import Host
from agentcore.llm.native.wire import DONE, Call, array, bearer_headers, body_of, own_fields, to_json
from agentcore.llm.reply import Delta
from agentcore.llm.settings import LLMSettings
from agentcore.messages import Message, ToolSchema

_MARK: JsonValue = {"type": "ephemeral"}


def _encode_tool(tool: ToolSchema) -> bytes:
    return to_json(encode_tools([tool])[0])


_tools = IdentityCache(_encode_tool)


@dataclass(frozen=True, slots=True)
class ChatWire:
    """Speaks it as a certain provider wants it."""

    host: Host

    def url(self, base_url: str) -> str:
        """Return the address to post to."""
        return base_url if base_url.endswith("/chat/completions") else f"{base_url}/chat/completions"

    def headers(self, key: str | None) -> dict[str, str]:
        """Return the headers of a request."""
        return bearer_headers(key)

    def body(self, call: Call) -> bytes:
        """Write a request."""
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

    def answer(self, settings: LLMSettings, response: dict[str, Any]) -> DecodedReply:
        """Read an answer that came at once."""
        choices: list[dict[str, Any]] = response.get("choices") or []
        if not choices:
            raise no_reply(settings, response)
        if error := choices[0].get("error"):
            raise refused_in_stream(settings, error)
        reason = choices[0].get("finish_reason") or "stop"
        return answered(
            settings,
            choices[0].get("message") or {},
            reason,
            [response.get("usage") or {}],
            response,
            logprobs=logprobs_in(choices[0]),
        )

    def decoder(self, settings: LLMSettings) -> StreamDecoder:
        """Read an answer that comes as a stream."""
        return _ChatDecoder(settings)


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


def _refusal(said: dict[str, Any]) -> Any:
    """Return the error in an event, which a few servers send as it is in place of an answer."""
    return said.get("error") if "choices" in said else find_error(said)


_ENVELOPE = ("id", "model", "service_tier", "citations", "search_results", "usage_breakdown")
"""Fields around the message, which any piece of a stream may have."""


class _ChatDecoder:
    def __init__(self, settings: LLMSettings) -> None:
        self._settings = settings
        self._deltas = ChatDecoder()
        self._choices: list[dict[str, Any]] = []
        self._usages: list[dict[str, Any]] = []
        self._envelope: dict[str, Any] = {}
        self._logprobs: list[dict[str, Any]] = []
        self._reason: str | None = None
        self._done = False

    def read(self, event: dict[str, Any]) -> Iterator[Delta]:
        """Decode one event and yield its deltas."""
        if event is DONE:
            self._done = True
            return
        if error := _refusal(event):
            raise refused_in_stream(self._settings, error)
        for name in _ENVELOPE:
            if said := event.get(name):
                self._envelope[name] = said
        for where in (event, event.get("x_groq")):
            if isinstance(where, dict) and isinstance(usage := where.get("usage"), dict):  # pyright: ignore[reportUnknownMemberType, reportUnknownVariableType]
                self._usages.append(usage)  # pyright: ignore[reportUnknownArgumentType]
        for choice in event.get("choices") or ():
            if choice.get("index"):
                continue  # one reply is asked for
            if error := choice.get("error"):
                raise refused_in_stream(self._settings, error)
            if usage := choice.get("usage"):
                self._usages.append(usage)
            self._reason = choice.get("finish_reason") or self._reason
            whole = choice.get("message") if choice.get("delta") is None and not self._choices else None
            # What they can't tell in pieces, some servers tell all at once.
            piece = {**choice, "delta": whole} if whole else choice
            self._choices.append(piece)
            self._logprobs += logprobs_in(choice)
            yield from self._deltas.read(piece)

    def answer(self) -> DecodedReply:
        """Return the whole reply."""
        # The last word is a reason to stop; a few servers leave it out and say only that they are done.
        reason = self._reason or ("stop" if self._done and self._choices else None)
        if reason is None:
            raise stream_truncated(self._settings.model)
        return answered(
            self._settings, assemble(self._choices), reason, self._usages, self._envelope, logprobs=self._logprobs
        )
