"""Answers of Anthropic's Messages interface, whole or as the events of a stream.

The way there is in `anthropic`. A stream is put together into the answer that would have come at once, and read as that.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any, cast

from pydantic import JsonValue

from agentcore._text import replace_lone_surrogates as clean
from agentcore.llm.catalog import Surcharges
from agentcore.llm.error_bodies import find_error
from agentcore.llm.failures import no_reply, refused_in_stream
from agentcore.llm.formats.anthropic import CONTAINER
from agentcore.llm.formats.decoding import DecodedReply, counted, read_arguments, stream_truncated
from agentcore.llm.reply import Delta, ReasoningDelta, RefusalDelta, TextDelta, ToolCallDelta
from agentcore.llm.settings import LLMSettings
from agentcore.messages import (
    Block,
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
    "end_turn": "end",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": "pause",
    "refusal": "content_filter",
}

_ADVICE = "advisor_message"
"""The calls of another model among those that a reply took."""

_UNREAD = "unread_json"
"""Where a stream keeps arguments that are not a JSON object."""


def read_reply(settings: LLMSettings, response: dict[str, Any]) -> DecodedReply:
    """Read an answer that came at once.

    Raises:
        ModelError: It says that there is none.
    """
    if response.get("type") == "error":
        raise refused_in_stream(settings, response.get("error") or response)
    content = response.get("content")
    if not isinstance(content, list):
        raise no_reply(settings, response)
    message = decode_content(cast("list[dict[str, Any]]", content), settings.provider)
    more = tuple(_around(response, settings.provider))
    if more:
        message = message.model_copy(update={"content": (*message.content, *more)})
    usage: dict[str, Any] = response.get("usage") or {}
    return DecodedReply(
        message=message,
        usage=decode_usage(usage),
        surcharges=_surcharges(usage, settings.provider),
        reported_usage=usage,
        service_tier=usage.get("service_tier"),
        stop_reason=stop_reason(response.get("stop_reason") or "end_turn", message),
        model=response.get("model"),
        provider_id=response.get("id"),
    )


def _around(response: dict[str, Any], provider: str) -> Iterator[Block]:
    """Return the blocks for fields beside the content: the reason of a refusal, and the container that ran code."""
    if words := _explanation(response):
        yield RefusalBlock(text=words)
    container = response.get("container")
    if isinstance(container, dict):
        data = {**cast("dict[str, JsonValue]", container), "type": CONTAINER}
        yield ProviderBlock(provider=provider, data=clean(cast("JsonValue", data)))


def _explanation(reported: dict[str, Any]) -> str:
    if reported.get("stop_reason") != "refusal":
        return ""
    details = reported.get("stop_details")
    words = cast("dict[str, Any]", details).get("explanation") if isinstance(details, dict) else None
    return clean(words) if isinstance(words, str) else ""


def stop_reason(reason: str, message: Message) -> str:
    """Translate the reason why a reply stopped."""
    ours = _STOP_REASONS.get(reason, reason)
    # Compatible servers say "end_turn" all the same.
    return "tool_calls" if ours == "end" and message.tool_calls else ours


def decode_content(content: Iterable[dict[str, Any]], provider: str) -> Message:
    """Read the blocks of a reply, in their order; what only the provider can read is kept as it came."""
    blocks: list[Block] = []
    for are_texts, run in groupby(content, key=lambda block: block.get("type") == "text"):
        decode = _decode_texts if are_texts else _decode_others
        blocks.extend(decode(list(run), provider))
    return Message(role="assistant", content=tuple(blocks))


def _decode_texts(texts: list[dict[str, Any]], provider: str) -> Iterator[Block]:
    reported = [clean(text.get("text") or "") for text in texts]
    if not any(text.get("citations") for text in texts):
        yield from (TextBlock(text=text) for text in reported if text)
        return
    # Sentences are cut wherever something is cited; who reads them wants them whole.
    whole = "".join(reported)
    if not whole:
        return
    parts: list[JsonValue] = []
    for text, words in zip(texts, reported, strict=True):
        part: dict[str, JsonValue] = {"length": len(words)}
        if citations := text.get("citations"):
            part["citations"] = clean(citations)
        parts.append(part)
    yield TextBlock(text=whole)
    yield ProviderBlock(provider=provider, data={"type": CITED, "parts": parts})


def _decode_others(content: Iterable[dict[str, Any]], provider: str) -> Iterator[Block]:
    for block in content:
        kind = block.get("type")
        if kind == "tool_use":
            yield ToolCallBlock(id=clean(block["id"]), name=clean(block.get("name") or ""), arguments=_arguments(block))
        elif kind == "thinking":
            text, signature = clean(block.get("thinking") or ""), clean(block.get("signature") or "") or None
            # Where the words are left out, the signature stands for them.
            if text or signature:
                yield ThinkingBlock(text=text, signature=signature, provider=provider)
        elif kind == "redacted_thinking":
            yield RedactedThinkingBlock(data=clean(block["data"]), provider=provider)
        else:
            yield ProviderBlock(provider=provider, data=clean(cast("dict[str, JsonValue]", block)))


def _arguments(block: dict[str, Any]) -> dict[str, JsonValue] | str:
    if _UNREAD in block:
        return block[_UNREAD]
    return read_arguments(block.get("input"))


def decode_usage(usage: dict[str, Any]) -> Usage:
    """Read what a reply used: what the provider kept, and keeps from now on, it counts apart from the rest."""
    # Where a reply took several calls of the model, the counts of the whole leave some of them out.
    runs = [run for run in _iterations(usage) if run.get("type") != _ADVICE]
    details: dict[str, Any] = counted(usage).get("output_tokens_details") or {}
    total = sum(map(_count, runs or [usage]), Usage())
    return total.model_copy(update={"requests": 1, "reasoning_tokens": details.get("thinking_tokens") or 0})


def _iterations(usage: dict[str, Any]) -> list[dict[str, Any]]:
    runs = usage.get("iterations")
    return [cast("dict[str, Any]", run) for run in runs if isinstance(run, dict)] if isinstance(runs, list) else []  # pyright: ignore[reportUnknownVariableType]


def _count(usage: dict[str, Any]) -> Usage:
    usage = counted(usage)
    kept = usage.get("cache_read_input_tokens") or 0
    keeping = usage.get("cache_creation_input_tokens") or 0
    return Usage(
        input_tokens=(usage.get("input_tokens") or 0) + kept + keeping,
        output_tokens=usage.get("output_tokens") or 0,
        cache_read_tokens=kept,
        cache_write_tokens=keeping,
    )


def _kept_for_an_hour(usage: dict[str, Any]) -> int:
    written: dict[str, Any] = counted(usage).get("cache_creation") or {}
    return written.get("ephemeral_1h_input_tokens") or 0


def _surcharges(usage: dict[str, Any], provider: str) -> Surcharges:
    advice = [run for run in _iterations(usage) if run.get("type") == _ADVICE]
    runs = [run for run in _iterations(usage) if run.get("type") != _ADVICE] or [usage]
    hour = sum(map(_kept_for_an_hour, runs))
    tools: dict[str, Any] = counted(usage).get("server_tool_use") or {}
    return Surcharges(
        hour_cache_tokens=hour,
        searches=tools.get("web_search_requests") or 0,
        other_models=tuple((f"{provider}/{run.get('model')}", _count(run)) for run in advice),
    )


_FIELDS = {
    "text_delta": ("text", "text"),
    "thinking_delta": ("thinking", "thinking"),
    "signature_delta": ("signature", "signature"),
    "compaction_delta": ("content", "content"),
    "input_json_delta": ("input", "partial_json"),
}
"""The field of a block that a piece continues, and the field of the piece itself."""
_BEGUN = {"text_delta": {"type": "text", "text": ""}, "thinking_delta": {"type": "thinking", "thinking": ""}}
"""The types of blocks by the deltas that continue them, for blocks whose start did not come."""


def _put(block: dict[str, Any], name: str, words: str) -> None:
    if name != "input":
        block[name] = (block.get(name) or "") + words
    elif words.strip():
        arguments = read_arguments(words)
        if isinstance(arguments, dict):
            block["input"] = arguments
        elif block.get("type") == "tool_use":
            block[_UNREAD] = arguments


def _latest(known: dict[str, Any], reported: dict[str, Any]) -> dict[str, Any]:
    """Join what was counted: a count only grows, and what a later event does not say was said before."""
    joined = dict(known)
    for name, value in reported.items():
        before = known.get(name)
        if value is not None:
            joined[name] = max(before, value) if isinstance(before, int) and isinstance(value, int) else value
    return joined


class MessagesDecoder:
    """Reads one stream: shows each event, and joins it to the answer that would have come at once."""

    def __init__(self, settings: LLMSettings) -> None:
        self._settings = settings
        self._reply: dict[str, Any] | None = None
        self._blocks: dict[int, dict[str, Any]] = {}
        self._pieces: dict[tuple[int, str], list[str]] = {}
        self._calls: dict[int, int] = {}
        self._ended = False

    def read(self, event: dict[str, Any]) -> list[Delta]:
        """Decode one event and return its deltas.

        Raises:
            ModelError: The provider gives the reply up.
        """
        kind = event.get("type")
        if kind == "error" or (kind is None and find_error(event)):
            raise refused_in_stream(self._settings, event.get("error") or event)
        if kind == "content_block_start":
            return self._begin(event["index"], event["content_block"])
        if kind == "content_block_delta":
            return self._go_on(event["index"], event["delta"])
        if kind == "message_start":
            self._reply = dict(event["message"])
        elif kind == "message_delta":
            if self._reply is not None:
                self._reply |= {name: value for name, value in event["delta"].items() if value is not None}
                self._reply["usage"] = _latest(self._reply.get("usage") or {}, event.get("usage") or {})
            if words := _explanation(event["delta"]):
                return [RefusalDelta(text=words)]
        elif kind == "message_stop":
            self._ended = True
        return []

    def _begin(self, index: int, block: dict[str, Any]) -> list[Delta]:
        self._blocks[index] = dict(block)
        if block.get("type") == "tool_use":
            self._calls[index] = number = len(self._calls)
            return [ToolCallDelta(index=number, id=block.get("id"), name=clean(block.get("name") or "") or None)]
        text = block.get("text") if block.get("type") == "text" else None
        return [TextDelta(text=clean(text))] if text else []

    def _go_on(self, index: int, delta: dict[str, Any]) -> list[Delta]:
        kind = delta.get("type")
        field = _FIELDS.get(kind or "")
        words = delta.get(field[1]) or "" if field else ""
        if index not in self._blocks and kind in _BEGUN:
            self._blocks[index] = dict(_BEGUN[kind])
        if index in self._blocks and field:
            self._pieces.setdefault((index, field[0]), []).append(words)
        elif index in self._blocks and kind == "citations_delta":
            block = self._blocks[index]
            block["citations"] = [*(block.get("citations") or ()), delta["citation"]]
        if kind == "text_delta":
            return [TextDelta(text=clean(words))]
        if kind == "thinking_delta" and words:
            return [ReasoningDelta(text=clean(words))]
        if kind == "input_json_delta" and index in self._calls and words:
            return [ToolCallDelta(index=self._calls[index], arguments=clean(words))]
        return []

    def answer(self) -> DecodedReply:
        """Return the whole reply.

        Raises:
            ModelConnectionError: The stream ended before its last word.
        """
        return read_reply(self._settings, self.joined())

    def joined(self) -> dict[str, Any]:
        """Return the answer as it would have come at once."""
        if self._reply is None or not self._ended:
            raise stream_truncated(self._settings.model)
        for (index, name), words in self._pieces.items():
            _put(self._blocks[index], name, "".join(words))
        return self._reply | {"content": [self._blocks[index] for index in sorted(self._blocks)]}
