"""Answers in the Chat Completions format, whole or assembled from the pieces of a stream.

The way there is in `chat`. Everything here is a function of plain JSON; nothing knows where it came from.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, cast

from pydantic import JsonValue

from agentcore._text import replace_lone_surrogates as clean
from agentcore.errors import ModelUnavailable
from agentcore.llm.failures import no_reply, refused_in_stream
from agentcore.llm.formats.chat import EXTRA
from agentcore.llm.formats.decoding import DecodedReply, counted, read_arguments, split_thinking
from agentcore.llm.reply import TokenLogprob
from agentcore.llm.settings import LLMSettings
from agentcore.messages import (
    AudioBlock,
    Block,
    ImageBlock,
    Message,
    ProviderBlock,
    RedactedThinkingBlock,
    RefusalBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from agentcore.messages.message import CITED
from agentcore.usage import Usage

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
_EMBEDDED = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)
_CUT = frozenset({"abort", "error", "insufficient_system_resource", "network_error"})
"""Reasons to stop by which providers say that they gave a reply up in the middle."""

_SAID_ELSEWHERE = frozenset(
    {"refusal", "reasoning", "reasoning_content", "reasoning_details", "thinking_blocks", "citation"}
)
"""Provider's own fields that say again what the message says in fields of its own, or that a stream is cut into."""


def stop_reason(finish_reason: str, message: Message) -> str:
    """Translate the reason why a reply stopped."""
    reason = str(finish_reason).lower()
    reason = _STOP_REASONS.get(reason, reason)
    # Many compatible servers say "stop" all the same.
    return "tool_calls" if reason == "end" and message.tool_calls else reason


def text_in(content: Any) -> str:
    """Return the text of a message's content."""
    if isinstance(content, list):
        parts = cast("list[dict[str, Any]]", content)
        return "".join(part.get("text") or "" for part in parts if part.get("type") == "text")
    return content or ""


def reasoning_in(message: dict[str, Any]) -> str:
    """Return the thinking of a message, or of a piece of one."""
    words = message.get("reasoning_content") or message.get("reasoning")
    if isinstance(words, str) and words:
        return words
    content = message.get("content")
    if not isinstance(content, list):
        return ""
    # Mistral has it as a part of the content, which has parts of its own.
    parts = cast("list[dict[str, Any]]", content)
    return "".join(text_in(part.get("thinking")) for part in parts if part.get("type") == "thinking")


def call_id(call: dict[str, Any]) -> str | None:
    """Return the id of a call, which has to be text that can be stored."""
    given = call.get("id")
    return clean(str(given)) if given is not None and given != "" else None


def decode_message(message: dict[str, Any], provider: str) -> Message:
    """Read one message of a model."""
    blocks: list[Block] = list(_thinking(message, provider))
    text = text_in(message.get("content"))
    if not blocks:
        thought, text = split_thinking(text)
        if thought.strip():
            blocks.append(ThinkingBlock(text=clean(thought), provider=provider))
    if text:
        blocks.append(TextBlock(text=clean(text)))
    blocks.extend(_besides_words(message, len(clean(text)), provider))
    own: dict[str, JsonValue] = {}
    for position, call in enumerate(message.get("tool_calls") or ()):
        if _runs_at_the_provider(call):
            cast("list[JsonValue]", own.setdefault("tool_calls", [])).append(_without_nulls(call))
            continue
        if extra := call.get("extra_content"):
            blocks.append(ProviderBlock(provider=provider, data={"type": EXTRA, EXTRA: clean(extra)}))
        blocks.append(
            ToolCallBlock(
                id=call_id(call) or f"call_{position}",
                name=clean(call["function"].get("name") or ""),
                arguments=read_arguments(call["function"].get("arguments")),
            )
        )
    fields: dict[str, Any] = message.get("provider_specific_fields") or {}
    if details := message.get("reasoning_details") or fields.get("reasoning_details"):
        own["reasoning_details"] = details
    if extra := message.get(EXTRA):
        own[EXTRA] = extra
    if kept := {name: value for name, value in fields.items() if value and name not in _SAID_ELSEWHERE}:
        own["provider_specific_fields"] = kept
    if own:
        blocks.append(ProviderBlock(provider=provider, data=clean(own)))
    return Message(role="assistant", content=tuple(blocks))


def _besides_words(message: dict[str, Any], length: int, provider: str) -> Iterator[Block]:
    """Read what a message has besides its words, thinking and calls."""
    if length and (citations := message.get("annotations")):
        cited: JsonValue = {"length": length, "citations": clean(citations)}
        yield ProviderBlock(provider=provider, data={"type": CITED, "parts": [cited]})
    if refusal := message.get("refusal"):
        yield RefusalBlock(text=clean(refusal))
    content = message.get("content")
    parts: list[dict[str, Any]] = cast("list[dict[str, Any]]", content) if isinstance(content, list) else []
    for part in [*parts, *(message.get("images") or ())]:
        kind = part.get("type")
        if kind == "image_url":
            yield _decode_picture(part["image_url"])
        elif kind == "refusal":
            yield RefusalBlock(text=clean(part.get("refusal") or ""))
        elif kind not in {"text", "thinking"}:
            yield ProviderBlock(provider=provider, data={"type": "content_part", "part": clean(part)})
    if audio := message.get("audio"):
        transcript, named = clean(audio.get("transcript") or ""), audio.get("id")
        named = clean(str(named)) if named else None
        yield AudioBlock(data=audio.get("data") or None, transcript=transcript, id=named, provider=provider)
    if tools := message.get("executed_tools"):
        yield ProviderBlock(provider=provider, data={"type": "executed_tools", "executed_tools": clean(tools)})


def _decode_picture(picture: dict[str, Any] | str) -> ImageBlock:
    address = picture if isinstance(picture, str) else str(picture["url"])
    if embedded := _EMBEDDED.fullmatch(address):
        return ImageBlock(media_type=clean(embedded[1]), data=embedded[2])
    return ImageBlock(url=clean(address))


def _thinking(message: dict[str, Any], provider: str) -> Iterator[Block]:
    signed = message.get("thinking_blocks")
    for block in signed or ():
        if block.get("type") == "redacted_thinking":
            yield RedactedThinkingBlock(data=clean(block["data"]), provider=provider)
        else:
            signature = clean(block.get("signature") or "") or None
            yield ThinkingBlock(text=clean(block.get("thinking") or ""), signature=signature, provider=provider)
    # Where there are blocks, this repeats their words.
    if not signed and (words := reasoning_in(message)):
        yield ThinkingBlock(text=clean(words), provider=provider)


def _runs_at_the_provider(call: dict[str, Any]) -> bool:
    """Return whether a call is one of the provider's own tools: it was answered already, in the same reply."""
    return (call.get("id") or "").startswith("srvtoolu_")


def _without_nulls(value: dict[str, Any]) -> dict[str, JsonValue]:
    return {name: item for name, item in value.items() if item is not None}


def read_reply(settings: LLMSettings, response: dict[str, Any]) -> DecodedReply:
    """Read an answer that came at once.

    Raises:
        ModelError: It says that there is none.
    """
    choices: list[dict[str, Any]] = response.get("choices") or []
    if not choices:
        raise no_reply(settings, response)
    choice = choices[0]
    if error := choice.get("error"):
        raise refused_in_stream(settings, error)
    probabilities: dict[str, Any] = choice.get("logprobs") or {}
    return answered(
        settings,
        choice.get("message") or {},
        choice.get("finish_reason") or "stop",
        [response.get("usage") or {}],
        response,
        logprobs=probabilities.get("content"),
    )


def answered(
    settings: LLMSettings,
    received: dict[str, Any],
    finish_reason: str,
    usages: list[dict[str, Any]],
    envelope: dict[str, Any],
    *,
    logprobs: list[dict[str, Any]] | None = None,
) -> DecodedReply:
    """Put an answer together of the message, why it ended, what it used, and what was around it.

    Raises:
        ModelUnavailable: It ended in the middle.
    """
    if str(finish_reason).lower() in _CUT:
        raise ModelUnavailable(
            f"{settings.model}: the provider gave the reply up in the middle, and says why in a word: {finish_reason!r}.",
            model=settings.model,
        )
    if not received.get("annotations") and (found := envelope.get("search_results") or envelope.get("citations")):
        # Perplexity and xAI name all their sources in one list.
        received = {
            **received,
            "annotations": [{"url": source} if isinstance(source, str) else source for source in found],
        }
    message = decode_message(received, settings.provider)
    # OpenRouter says what it charged; others who say "cost" mean other things.
    costs = [usage.get("cost") for usage in usages] if settings.provider == "openrouter" else []
    return DecodedReply(
        message=message,
        usage=decode_usage(usages),
        stop_reason=stop_reason(finish_reason, message),
        model=envelope.get("model"),
        provider_id=envelope.get("id"),
        reported_cost=next((cost for cost in reversed(costs) if isinstance(cost, int | float)), None),
        reported_usage=_reported(usages, envelope),
        service_tier=envelope.get("service_tier"),
        logprobs=read_logprobs(logprobs),
    )


def _reported(usages: list[dict[str, Any]], envelope: dict[str, Any]) -> dict[str, Any]:
    empty: dict[str, Any] = {}
    last = next((usage for usage in reversed(usages) if usage), empty)
    # Groq's own agents ask several models, and count each apart.
    breakdown = envelope.get("usage_breakdown")
    return {**last, "usage_breakdown": breakdown} if breakdown else last


def read_logprobs(content: list[dict[str, Any]] | None) -> tuple[TokenLogprob, ...] | None:
    """Read how likely the tokens of a reply were."""
    if not content:
        return None
    return tuple(
        TokenLogprob(
            token=clean(received["token"]),
            logprob=received["logprob"],
            top=tuple((clean(other["token"]), other["logprob"]) for other in received.get("top_logprobs") or ()),
        )
        for received in content
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
"""Names of the count at providers that keep it outside of the details."""
_KEPT = ("cache_creation_tokens", "cache_write_tokens")


def _first(counts: dict[str, Any], names: Iterable[str]) -> int:
    return next((count for name in names if (count := counts.get(name))), 0)


def _counts(usage: dict[str, Any]) -> tuple[int, int, int, int, int]:
    usage = counted(usage)
    asked: dict[str, Any] = usage.get("prompt_tokens_details") or {}
    received: dict[str, Any] = usage.get("completion_tokens_details") or {}
    return (
        usage.get("prompt_tokens") or 0,
        usage.get("completion_tokens") or 0,
        asked.get("cached_tokens") or _first(usage, _CACHED),
        _first(asked, _KEPT) or usage.get("cache_creation_input_tokens") or 0,
        received.get("reasoning_tokens") or 0,
    )
