"""Calls of the Responses interface, which OpenAI's newer models have, some of them nothing else."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import suppress
from typing import Any

from agentcore.errors import ModelUnavailable
from agentcore.llm.answer import Answer, Reader, broken_off
from agentcore.llm.deltas import Delta, ReasoningDelta, TextDelta, ToolCallDelta
from agentcore.llm.formats.responses import decode_items, decode_response_usage, encode_function_tools, encode_items
from agentcore.llm.formats.text import clean
from agentcore.llm.litellm_route.wire import common_options
from agentcore.llm.model import CallContext
from agentcore.llm.settings import LLMSettings
from agentcore.messages import Message, ToolSchema

__all__ = ["ResponsesWire"]

_TEXT = frozenset({"response.output_text.delta", "response.refusal.delta"})
_REASONING = frozenset({"response.reasoning_summary_text.delta", "response.reasoning_text.delta"})
_LAST = frozenset({"response.completed", "response.incomplete"})
_STOP_REASONS = {"max_output_tokens": "length"}


class ResponsesWire:
    """The wire of `agentcore.llm.responses`."""

    def options(
        self,
        settings: LLMSettings,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema],
        context: CallContext | None,
        known: dict[str, Any],
    ) -> dict[str, Any]:
        """Make the arguments of a call."""
        instructions, items = encode_items(messages, settings.model)
        options = common_options(settings) | {"input": items, "store": False}
        if instructions is not None:
            options["instructions"] = instructions
        if tools:
            options["tools"] = encode_function_tools(tools)
        if settings.max_output_tokens is not None:
            options["max_output_tokens"] = settings.max_output_tokens
        if settings.reasoning_effort is not None:
            options["reasoning"] = {"effort": settings.reasoning_effort, "summary": "auto"}
        if settings.reasoning_effort is not None or known.get("supports_reasoning"):
            # Models that do not reason refuse to be asked for it.
            options["include"] = ["reasoning.encrypted_content"]
        if context is not None and context.prompt_cache_key is not None and settings.base_url is None:
            options["prompt_cache_key"] = context.prompt_cache_key
        return options

    def call(self, litellm: Any) -> Callable[..., Awaitable[Any]]:
        """Give litellm's function."""
        return litellm.aresponses

    def answer(self, settings: LLMSettings, response: dict[str, Any]) -> Answer:
        """Read an answer that came at once."""
        if response.get("status") == "failed":
            raise _failed(settings, response.get("error") or {})
        message = decode_items(response.get("output") or (), settings.provider)
        incomplete: dict[str, Any] = response.get("incomplete_details") or {}
        reason = incomplete.get("reason") or ("tool_calls" if message.tool_calls else "end")
        return Answer(
            message=message,
            usage=decode_response_usage(response.get("usage") or {}),
            stop_reason=_STOP_REASONS.get(reason, reason),
            model=response.get("model"),
            provider_id=_own_id(response.get("id")),
        )

    def reader(self, settings: LLMSettings) -> Reader:
        """Read an answer that comes as a stream."""
        return _ResponsesReader(self, settings)

    async def events(self, stream: Any, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        """Pass a stream's events on."""

        def unlogged() -> None:
            # Otherwise it copies the whole reply for its logs, with warnings on the way.
            return

        stream._handle_logging_completed_response = unlogged
        try:
            async for event in stream:
                await send(event.model_dump(mode="json", warnings=False))
        finally:
            response = getattr(stream, "response", None)
            if response is not None:
                with suppress(Exception):
                    await response.aclose()


class _ResponsesReader:
    def __init__(self, wire: ResponsesWire, settings: LLMSettings) -> None:
        self._wire = wire
        self._settings = settings
        self._calls: list[int] = []
        self._items: dict[int, dict[str, Any]] = {}
        self._last: dict[str, Any] | None = None

    def read(self, event: dict[str, Any]) -> Iterator[Delta]:
        """Take one event in and show what it says."""
        kind = event.get("type")
        if kind in _TEXT:
            yield TextDelta(text=clean(event["delta"]))
        elif kind in _REASONING:
            yield ReasoningDelta(text=clean(event["delta"]))
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
            raise _failed(self._settings, event["response"].get("error") or {})
        elif kind == "error":
            raise _failed(self._settings, event)

    def answer(self) -> Answer:
        """Give the whole."""
        if self._last is None:
            raise broken_off(self._settings.model)
        # Some servers leave the items out of the last event because they sent each of them before.
        items = self._last.get("output") or [self._items[index] for index in sorted(self._items)]
        return self._wire.answer(self._settings, {**self._last, "output": items})


def _own_id(response_id: str | None) -> str | None:
    """Give the provider's id, which litellm packs into one of its own."""
    try:
        packed = b64decode((response_id or "").removeprefix("resp_"), validate=True).decode()
    except ValueError:
        return response_id
    return packed.rpartition("response_id:")[2] or response_id


def _failed(settings: LLMSettings, error: dict[str, Any]) -> ModelUnavailable:
    said = error.get("message") or error.get("code") or "without saying why"
    return ModelUnavailable(f"{settings.model}: the provider gave the reply up ({said})", model=settings.model)
