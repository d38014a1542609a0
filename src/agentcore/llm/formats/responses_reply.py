"""Answers in the Responses format, whole or as a stream.

The way there, and its items, are in `responses`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from agentcore._text import replace_lone_surrogates as clean
from agentcore.errors import BadRequest
from agentcore.llm.error_bodies import find_error
from agentcore.llm.failures import no_reply, refused_in_stream
from agentcore.llm.formats.chat_reply import read_logprobs
from agentcore.llm.formats.decoding import DecodedReply, stream_truncated
from agentcore.llm.formats.responses import decode_items, decode_response_usage
from agentcore.llm.reply import Delta, ReasoningDelta, RefusalDelta, TextDelta, ToolCallDelta
from agentcore.llm.settings import LLMSettings

_REASONING = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_NOT_YET = frozenset({"queued", "in_progress"})
_LAST = frozenset({"response.completed", "response.incomplete"})
_STOP_REASONS = {"max_output_tokens": "length", "max_tool_calls": "length"}


def read_response(settings: LLMSettings, response: dict[str, Any]) -> DecodedReply:
    """Read an answer that came at once.

    Raises:
        ModelError: The provider gave it up.
    """
    if response.get("status") in {"failed", "cancelled"} or (response.get("error") and not response.get("output")):
        raise refused_in_stream(settings, response.get("error") or {"message": f"the reply was {response['status']}"})
    if response.get("status") in _NOT_YET:
        raise BadRequest(
            f"{settings.model}: the provider answers in the background, where it is not looked for. Leave 'background' "
            "out of LLM(extra_body=...).",
            model=settings.model,
        )
    if not isinstance(response.get("output"), list):
        raise no_reply(settings, response)
    message = decode_items(response["output"], settings.provider)
    incomplete: dict[str, Any] = response.get("incomplete_details") or {}
    reason = incomplete.get("reason")
    if not reason and response.get("status") == "incomplete":
        reason = "length"
    reason = reason or ("tool_calls" if message.tool_calls else "end")
    usage: dict[str, Any] = response.get("usage") or {}
    # OpenRouter says what it charged; others who say "cost" mean other things.
    cost = usage.get("cost") if settings.provider == "openrouter" else None
    return DecodedReply(
        message=message,
        usage=decode_response_usage(usage),
        reported_cost=cost if isinstance(cost, int | float) else None,
        reported_usage=usage,
        service_tier=response.get("service_tier"),
        logprobs=read_logprobs(_logprobs(response["output"])),
        stop_reason=_STOP_REASONS.get(reason, reason),
        model=response.get("model"),
        provider_id=response.get("id"),
    )


def _logprobs(items: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [
        entry
        for item in items
        if item.get("type") == "message"
        for part in item.get("content") or ()
        for entry in part.get("logprobs") or ()
    ]


class ResponsesDecoder:
    """Reads one stream."""

    def __init__(self, settings: LLMSettings) -> None:
        self._settings = settings
        self._calls: list[int] = []
        self._items: dict[int, dict[str, Any]] = {}
        self._last: dict[str, Any] | None = None

    def read(self, event: dict[str, Any]) -> Iterator[Delta]:
        """Decode one event and yield its deltas."""
        kind = event.get("type")
        if kind == "response.output_text.delta":
            yield TextDelta(text=clean(event.get("delta") or ""))
        elif kind == "response.refusal.delta":
            yield RefusalDelta(text=clean(event.get("delta") or ""))
        elif kind == "response.reasoning_summary_part.added" and event.get("summary_index"):
            yield ReasoningDelta(text="\n\n")
        elif kind in _REASONING:
            yield ReasoningDelta(text=clean(event.get("delta") or ""))
        elif kind == "response.output_item.added" and event["item"].get("type") == "function_call":
            self._calls.append(event["output_index"])
            item: dict[str, Any] = event["item"]
            yield ToolCallDelta(index=len(self._calls) - 1, id=item.get("call_id"), name=item.get("name"))
        elif kind == "response.function_call_arguments.delta" and event["output_index"] in self._calls:
            yield ToolCallDelta(index=self._calls.index(event["output_index"]), arguments=clean(event["delta"]))
        elif kind == "response.output_item.done":
            self._items[event["output_index"]] = event["item"]
        elif kind in _LAST:
            self._last = event["response"]
        elif kind == "response.failed":
            raise refused_in_stream(self._settings, event["response"].get("error"))
        elif kind == "error" or (kind is None and find_error(event)):
            raise refused_in_stream(self._settings, event.get("error") or event)

    def answer(self) -> DecodedReply:
        """Return the whole reply."""
        if self._last is None:
            raise stream_truncated(self._settings.model)
        # Some servers leave the items out of the last event because they sent each of them before.
        items = self._last.get("output") or [self._items[index] for index in sorted(self._items)]
        if items:
            return read_response(self._settings, {**self._last, "output": items})
        return read_response(self._settings, self._last)
