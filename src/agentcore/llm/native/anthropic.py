"""Anthropic's Messages interface over plain HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import Any

from agentcore.llm.caches import IdentityCache
from agentcore.llm.formats.anthropic import Turn, Written, encode_message, encode_tool, last_container, turns
from agentcore.llm.formats.anthropic_reply import MessagesDecoder, read_reply
from agentcore.llm.native.claude import BINDING_BETA, drops_stale_thinking, longest_reply, sampling, thinking
from agentcore.llm.native.wire import Call, array, body_of, own_fields, to_json, tool_cache
from agentcore.llm.settings import LLMSettings
from agentcore.messages import Message

_VERSION = "2023-06-01"

_MARK = b',"cache_control":{"type":"ephemeral"}}'
"""Ends a block up to which the provider keeps the prompt. A request may have four."""
_MARKED = b'"cache_control"'
_MARKED_TURNS = 2

_BEGINNINGS = {
    (role, later): (b"]}," if later else b"") + b'{"role":"%b","content":[' % role.encode()
    for role in ("user", "assistant")
    for later in (False, True)
}
"""How a turn begins, and how the one before it ends."""

_messages: dict[str, IdentityCache[Message, Written[bytes]]] = {}
"""The encoded messages, by provider."""


_tools = tool_cache(encode_tool)


def _encode_message(message: Message, provider: str) -> Written[bytes]:
    written = encode_message(message, provider)
    text = b",".join(map(to_json, written.blocks))
    results = tuple((call_id, to_json(result)) for call_id, result in written.results)
    return Written(written.role, (text,) if text else (), results, written.calls)


@dataclass(frozen=True, slots=True)
class AnthropicWire:
    """Speaks it to one model."""

    settings: LLMSettings

    def url(self, base_url: str) -> str:
        if base_url.endswith("/messages"):
            return base_url
        return f"{base_url}/messages" if base_url.endswith("/v1") else f"{base_url}/v1/messages"

    def headers(self, key: str | None) -> dict[str, str]:
        headers = {"content-type": "application/json", "anthropic-version": _VERSION}
        if drops_stale_thinking(self.settings):
            headers["anthropic-beta"] = BINDING_BETA
        if key is not None:
            headers["x-api-key"] = key
        return headers

    def body(self, call: Call) -> bytes:
        settings = call.settings
        more, own_tools = own_fields(settings)
        # A mark for the whole request is one more than there may be.
        marks = settings.prompt_caching and call.features.prompt_caching is not False and "cache_control" not in more
        tools = [*map(_tools, call.tools), *own_tools]
        options = _options(call)
        if isinstance(config := more.get("output_config"), dict):
            more["output_config"] = options.get("output_config", {}) | config
        if any(b'"type":"code_execution' in tool for tool in own_tools):
            _go_on_in_container(more, last_container(call.messages, settings.provider))
        system, sides = _written(call.messages, settings.provider, marks=marks)
        ready: dict[str, list[bytes | bytearray]] = {}
        if tools:
            ready["tools"] = array(_marked(tools) if marks else tools)
        if system:
            ready["system"] = array(_marked(system) if marks else system)
        written: list[bytes | bytearray] = [b"["]
        for number, turn in enumerate(sides):
            written += (_BEGINNINGS[turn.role, number > 0], b",".join(turn.blocks))
        ready["messages"] = [*written, b"]}]" if sides else b"]"]
        return body_of(options | more, **ready)

    answer = staticmethod(read_reply)
    decoder = MessagesDecoder


def _go_on_in_container(more: dict[str, Any], container: str | None) -> None:
    """Have code run where it ran before, with the files that it left there, unless the user says where."""
    given = more.get("container")
    if container is not None and (given is None or (isinstance(given, dict) and "id" not in given)):
        more["container"] = container if given is None else {**given, "id": container}


def _options(call: Call) -> dict[str, Any]:
    settings = call.settings
    longest = longest_reply(settings, call.features, streamed=call.streamed)
    thought = thinking(settings, call.features, longest)
    thinks = thought.get("thinking", {}).get("type") in {"adaptive", "enabled"}
    options: dict[str, Any] = {"model": settings.model.removeprefix(f"{settings.provider}/"), "max_tokens": longest}
    if call.streamed:
        options["stream"] = True
    # Words of blanks only are refused.
    if stop := [words for words in call.context.stop if words.strip()]:
        options["stop_sequences"] = stop
    if settings.service_tier is not None:
        options["service_tier"] = settings.service_tier
    return options | sampling(settings, thinks=thinks) | thought


def _written(messages: Sequence[Message], provider: str, *, marks: bool) -> tuple[list[bytes], list[Turn[bytes]]]:
    """Return the blocks of the system prompt, and the turns."""
    kept = _messages.get(provider)
    if kept is None:
        kept = _messages[provider] = IdentityCache(partial(_encode_message, provider=provider))
    system, sides = turns(map(kept, messages))
    # A turn of the assistant may end with thinking, which takes no mark.
    users = (turn for turn in reversed(sides) if turn.role == "user")
    for turn in islice(users, _MARKED_TURNS if marks else 0):
        turn.blocks = _marked(turn.blocks)
    return system, sides


def _marked(parts: list[bytes]) -> list[bytes]:
    """Mark the last of some blocks, unless a block there has a mark of the user's own."""
    return parts if _MARKED in parts[-1] else [*parts[:-1], parts[-1][:-1] + _MARK]
