"""What a provider answers in the Chat Completions format, read: whole, or put together from the pieces of a stream.

The way there is in `chat`. Everything here is a function of plain JSON; nothing knows where it came from.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from typing import Any, NoReturn, cast

from pydantic import JsonValue

from agentcore._value import is_too_deep
from agentcore.errors import ModelUnavailable
from agentcore.llm.answer import Answer
from agentcore.llm.deltas import Delta, ReasoningDelta, TextDelta, ToolCallDelta
from agentcore.llm.formats.counts import counted
from agentcore.llm.formats.text import clean, clean_json
from agentcore.llm.formats.think_tags import ThinkTags, split_thinking
from agentcore.llm.settings import LLMSettings
from agentcore.messages import (
    Block,
    Message,
    ProviderBlock,
    RedactedThinkingBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from agentcore.usage import Usage

__all__ = [
    "DeltaReader",
    "answered",
    "arguments_text",
    "assemble",
    "decode_message",
    "decode_usage",
    "read_arguments",
    "stop_reason",
]

_STOP_REASONS = {
    "stop": "end",
    "eos": "end",
    "end_turn": "end",
    "function_call": "tool_calls",
    "tool_call": "tool_calls",
    "max_tokens": "length",
    "model_length": "length",
    "sensitive": "content_filter",
    "safety": "content_filter",
}
_CUT = frozenset({"abort", "error", "insufficient_system_resource", "network_error"})
"""Reasons to stop by which providers say that they gave a reply up in the middle."""

_SAID_ELSEWHERE = frozenset(
    {"refusal", "reasoning", "reasoning_content", "reasoning_details", "thinking_blocks", "citation"}
)
"""Provider's own fields that say again what the message says in fields of its own, or that a stream is cut into."""


def stop_reason(finish_reason: str, message: Message) -> str:
    """Say why a reply stopped, in our words."""
    reason = str(finish_reason).lower()
    reason = _STOP_REASONS.get(reason, reason)
    # Many compatible servers say "stop" all the same.
    return "tool_calls" if reason == "end" and message.tool_calls else reason


def read_arguments(text: str) -> dict[str, JsonValue] | str:
    """Read the arguments of a call; what is no JSON object stays text. No text at all is no arguments."""
    if not text.strip():
        return {}
    try:
        arguments: JsonValue = json.loads(text, parse_constant=_no_number, parse_float=_number)
    except (ValueError, RecursionError):
        return clean(text)
    if not isinstance(arguments, dict) or is_too_deep(arguments):
        return clean(text)
    return cast("dict[str, JsonValue]", clean_json(arguments))


def _no_number(word: str) -> NoReturn:
    # Python reads NaN and Infinity, and writes them: in what is sent back nobody else could read them.
    raise ValueError(f"{word} is no JSON")


def _number(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _no_number(digits)


def arguments_text(arguments: object) -> str:
    """Give the arguments of a call as text; a few servers send the object that they are."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments) if arguments else ""


def _written(function: dict[str, Any]) -> str:
    return arguments_text(function.get("arguments"))


def _id(call: dict[str, Any]) -> str | None:
    """Give the id of a call, which has to be text that can be stored."""
    given = call.get("id")
    return clean(str(given)) if given is not None and given != "" else None


def decode_message(message: dict[str, Any], provider: str) -> Message:
    """Read one message of a model."""
    blocks: list[Block] = list(_thinking(message, provider))
    text: str = _text(message.get("content")) or message.get("refusal") or ""
    if not blocks:
        thought, text = split_thinking(text)
        if thought.strip():
            blocks.append(ThinkingBlock(text=clean(thought), provider=provider))
    if text:
        blocks.append(TextBlock(text=clean(text)))
    own: dict[str, JsonValue] = {}
    for position, call in enumerate(message.get("tool_calls") or ()):
        if _runs_at_the_provider(call):
            cast("list[JsonValue]", own.setdefault("tool_calls", [])).append(_without_nulls(call))
            continue
        blocks.append(
            ToolCallBlock(
                id=_id(call) or f"call_{position}",
                name=clean(call["function"].get("name") or ""),
                arguments=read_arguments(_written(call["function"])),
            )
        )
    fields: dict[str, Any] = message.get("provider_specific_fields") or {}
    if details := message.get("reasoning_details") or fields.get("reasoning_details"):
        own["reasoning_details"] = details
    if kept := {name: value for name, value in fields.items() if value and name not in _SAID_ELSEWHERE}:
        own["provider_specific_fields"] = kept
    if own:
        blocks.append(ProviderBlock(provider=provider, data=clean_json(own)))
    return Message(role="assistant", content=tuple(blocks))


def _text(content: Any) -> str:
    if isinstance(content, list):
        parts = cast("list[dict[str, Any]]", content)
        return "".join(part.get("text") or "" for part in parts if part.get("type") == "text")
    return content or ""


def _thinking(message: dict[str, Any], provider: str) -> Iterator[Block]:
    signed = message.get("thinking_blocks")
    for block in signed or ():
        if block.get("type") == "redacted_thinking":
            yield RedactedThinkingBlock(data=block["data"], provider=provider)
        else:
            signature = block.get("signature") or None
            yield ThinkingBlock(text=clean(block.get("thinking") or ""), signature=signature, provider=provider)
    # Where there are blocks, this repeats their words.
    if not signed and (words := _reasoning(message)):
        yield ThinkingBlock(text=clean(words), provider=provider)


def _reasoning(message: dict[str, Any]) -> str:
    words = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(words, str) and words:
        return words
    content = message.get("content")
    if not isinstance(content, list):
        return ""
    # Mistral has it as a part of the content, which has parts of its own.
    parts = cast("list[dict[str, Any]]", content)
    return "".join(_text(part.get("thinking")) for part in parts if part.get("type") == "thinking")


def _runs_at_the_provider(call: dict[str, Any]) -> bool:
    """Whether a call is one of the provider's own tools: it was answered already, in the same reply."""
    return (call.get("id") or "").startswith("srvtoolu_")


def _without_nulls(value: dict[str, Any]) -> dict[str, JsonValue]:
    return {name: item for name, item in value.items() if item is not None}


def _is_whole(arguments: str) -> bool:
    return bool(arguments.strip()) and isinstance(read_arguments(arguments), dict)


class _CallNumbers:
    """Which call of a reply a fragment belongs to, whatever its provider makes of `index`."""

    def __init__(self) -> None:
        self._positions: dict[int, int] = {}
        self._ids: list[str | None] = []
        self._arguments: list[list[str]] = []

    def position(self, fragment: dict[str, Any]) -> int:
        """Say the position of the call that a fragment continues or begins."""
        index, call_id = fragment.get("index") or 0, _id(fragment)
        function: dict[str, Any] = fragment.get("function") or {}
        more = _written(function)
        position = self._positions.get(index)
        if position is None or self._begins_another(position, call_id, function.get("name"), more):
            position = self._positions[index] = len(self._ids)
            self._ids.append(None)
            self._arguments.append([])
        self._ids[position] = self._ids[position] or call_id
        self._arguments[position].append(more)
        return position

    def _begins_another(self, position: int, call_id: str | None, name: object, more: str) -> bool:
        """Some servers say index 0 for every call. Then a new id begins one, or a name where the last one is whole."""
        if call_id and self._ids[position]:
            return call_id != self._ids[position]
        return bool(name and more) and _is_whole("".join(self._arguments[position]))


class DeltaReader:
    """Shows what a stream says, piece by piece."""

    def __init__(self) -> None:
        self._numbers = _CallNumbers()
        self._tags: ThinkTags | None = ThinkTags()

    def read(self, choice: dict[str, Any]) -> Iterator[Delta]:
        """Show what one piece says."""
        delta: dict[str, Any] = choice.get("delta") or {}
        if words := _reasoning(delta):
            yield from self._end_of_tags()
            yield ReasoningDelta(text=clean(words))
        if text := _text(delta.get("content")):
            pieces = [(False, text)] if self._tags is None else self._tags.feed(text)
            yield from _tagged(pieces)
        if delta.get("tool_calls") or choice.get("finish_reason"):
            yield from self._end_of_tags()
        for fragment in delta.get("tool_calls") or ():
            function: dict[str, Any] = fragment.get("function") or {}
            yield ToolCallDelta(
                index=self._numbers.position(fragment),
                id=_id(fragment),
                name=clean(function.get("name") or "") or None,
                arguments=clean(_written(function)),
            )

    def _end_of_tags(self) -> Iterator[Delta]:
        if self._tags is not None:
            yield from _tagged(self._tags.finish())
            self._tags = None


def _tagged(pieces: Iterable[tuple[bool, str]]) -> Iterator[Delta]:
    for is_thought, words in pieces:
        yield ReasoningDelta(text=clean(words)) if is_thought else TextDelta(text=clean(words))


def assemble(choices: Iterable[dict[str, Any]]) -> dict[str, Any]:
    """Put the pieces of a stream together: the message that the provider would have sent at once."""
    texts: list[str] = []
    reasoning: list[str] = []
    refusal: list[str] = []
    thinking: list[dict[str, Any]] = []
    calls: list[dict[str, Any]] = []
    details: list[Any] = []
    fields: dict[str, Any] = {}
    numbers = _CallNumbers()
    for choice in choices:
        delta: dict[str, Any] = choice.get("delta") or {}
        texts.append(_text(delta.get("content")))
        reasoning.append(_reasoning(delta))
        refusal.append(delta.get("refusal") or "")
        own: dict[str, Any] = delta.get("provider_specific_fields") or {}
        details.extend(delta.get("reasoning_details") or own.get("reasoning_details") or ())
        fields.update(own)
        for block in delta.get("thinking_blocks") or ():
            _add_thinking(thinking, block)
        for fragment in delta.get("tool_calls") or ():
            _add_call(calls, numbers.position(fragment), fragment)
    return {
        "content": "".join(texts),
        "reasoning_content": "".join(reasoning),
        "refusal": "".join(refusal),
        "thinking_blocks": thinking,
        "tool_calls": calls,
        "reasoning_details": details,
        "provider_specific_fields": fields,
    }


def _add_thinking(blocks: list[dict[str, Any]], fragment: dict[str, Any]) -> None:
    """A block comes as words, words, ..., signature; the signature ends it."""
    last = blocks[-1] if blocks else None
    if fragment.get("type") == "redacted_thinking" or last is None or last.get("signature") or "thinking" not in last:
        blocks.append(dict(fragment))
        return
    last["thinking"] = (last.get("thinking") or "") + (fragment.get("thinking") or "")
    last["signature"] = fragment.get("signature")


def _add_call(calls: list[dict[str, Any]], position: int, fragment: dict[str, Any]) -> None:
    function: dict[str, Any] = fragment.get("function") or {}
    if position == len(calls):
        calls.append({"id": None, "type": "function", "function": {"name": "", "arguments": ""}})
    call = calls[position]
    call["id"] = call["id"] or _id(fragment)
    call["function"]["name"] = call["function"]["name"] or function.get("name") or ""
    call["function"]["arguments"] += _written(function)
    if own := fragment.get("provider_specific_fields"):
        call["provider_specific_fields"] = {**call.get("provider_specific_fields", {}), **own}


def answered(
    settings: LLMSettings,
    said: dict[str, Any],
    finish_reason: str,
    usages: list[dict[str, Any]],
    envelope: dict[str, Any],
) -> Answer:
    """Put an answer together of the message, why it ended, what it used, and what was around it.

    Raises:
        ModelUnavailable: It ended in the middle.
    """
    if str(finish_reason).lower() in _CUT:
        raise ModelUnavailable(
            f"{settings.model}: the provider gave the reply up in the middle, and says why in a word: {finish_reason!r}.",
            model=settings.model,
        )
    message = decode_message(said, settings.provider)
    # OpenRouter says what it charged; others who say "cost" mean other things.
    costs = [usage.get("cost") for usage in usages] if settings.provider == "openrouter" else []
    return Answer(
        message=message,
        usage=decode_usage(usages),
        stop_reason=stop_reason(finish_reason, message),
        model=envelope.get("model"),
        provider_id=envelope.get("id"),
        reported_cost=next((cost for cost in reversed(costs) if isinstance(cost, int | float)), None),
    )


def decode_usage(usages: Iterable[dict[str, Any]]) -> Usage:
    """Read what a reply used. A stream may say it several times, and not all of it each time: the last word counts."""
    found = [_counts(usage) for usage in usages]
    last = [next((count for count in reversed(column) if count), 0) for column in zip(*found, strict=True)] or [0] * 5
    read, written, cache_read, cache_write, reasoning = last
    return Usage(
        requests=1,
        # Inclusive by our convention, and by litellm's; where a provider counts apart all the same, the part is larger.
        input_tokens=read if cache_read + cache_write <= read else read + cache_read + cache_write,
        output_tokens=written if reasoning <= written else written + reasoning,
        cache_read_tokens=cache_read,
        cache_write_tokens=cache_write,
        reasoning_tokens=reasoning,
    )


_CACHED = ("cache_read_input_tokens", "prompt_cache_hit_tokens", "cached_tokens", "num_cached_tokens")
"""What those call it who do not count it among the details."""
_KEPT = ("cache_creation_tokens", "cache_write_tokens")


def _first(counts: dict[str, Any], names: Iterable[str]) -> int:
    return next((count for name in names if (count := counts.get(name))), 0)


def _counts(usage: dict[str, Any]) -> tuple[int, int, int, int, int]:
    usage = counted(usage)
    asked: dict[str, Any] = usage.get("prompt_tokens_details") or {}
    said: dict[str, Any] = usage.get("completion_tokens_details") or {}
    return (
        usage.get("prompt_tokens") or 0,
        usage.get("completion_tokens") or 0,
        asked.get("cached_tokens") or _first(usage, _CACHED),
        _first(asked, _KEPT) or usage.get("cache_creation_input_tokens") or 0,
        said.get("reasoning_tokens") or 0,
    )
