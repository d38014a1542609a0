"""The interfaces that litellm is asked through."""

from __future__ import annotations

import os
from base64 import b64decode
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from agentcore.llm.formats.chat import encode_messages, encode_tools
from agentcore.llm.formats.chat_reply import answered, read_reply
from agentcore.llm.formats.chat_stream import ChatPieces
from agentcore.llm.formats.decoding import DecodedReply, stream_truncated
from agentcore.llm.formats.responses import encode_function_tools, encode_items
from agentcore.llm.formats.responses_reply import ResponsesDecoder, read_response
from agentcore.llm.keys import find_key
from agentcore.llm.model import CallContext, Features
from agentcore.llm.reply import Delta
from agentcore.llm.settings import LLMSettings
from agentcore.messages import Message, ToolSchema


def common_options(settings: LLMSettings) -> dict[str, Any]:
    """Make the arguments that every call has."""
    options: dict[str, Any] = {
        **settings.provider_options,
        "model": settings.model,
        "api_base": settings.base_url,
        "api_key": _api_key(settings),
        "temperature": settings.temperature,
        "top_p": settings.top_p,
        "extra_headers": settings.revealed_headers or None,
        "service_tier": settings.service_tier,
        "extra_body": settings.extra_body or None,
        # Retries of this library are reported to the caller and bounded by its settings.
        "max_retries": 0,
        "num_retries": 0,
        "timeout": max(settings.timeout, settings.stream_idle_timeout),
    }
    return {name: value for name, value in options.items() if value is not None} | {"drop_params": settings.drop_params}


def _api_key(settings: LLMSettings) -> str | None:
    if settings.api_key is not None:
        # An empty one says that there is none: litellm is not to look for another.
        return find_key(settings) or (None if settings.base_url is None else "none")
    if settings.base_url is not None and settings.provider == "openai" and not os.environ.get("OPENAI_API_KEY"):
        return "none"  # servers of one's own mostly want no key; the client insists on one
    return None


_WANTS_CACHE_MARKS = frozenset({"anthropic", "bedrock", "vertex_ai", "databricks", "openrouter"})
_TAKES_CACHE_KEY = frozenset({"openai", "azure"})


class _ChatDecoder:
    def __init__(self, settings: LLMSettings) -> None:
        self._settings = settings
        self._pieces = ChatPieces()
        self._last: dict[str, Any] = {}
        self._end: dict[str, Any] = {}

    def read(self, event: dict[str, Any]) -> list[Delta]:
        if "usages" in event:
            self._end = event
            return []
        self._last = event
        choices = [choice for choice in event.get("choices") or () if not choice.get("index")]
        return [delta for choice in choices for delta in self._pieces.read(choice)]

    def answer(self) -> DecodedReply:
        reason = self._end.get("finish_reason")
        if not reason or not self._pieces.begun:
            raise stream_truncated(self._settings.model)
        message, logprobs = self._pieces.message(), self._pieces.logprobs
        return answered(self._settings, message, reason, self._end["usages"], self._last, logprobs=logprobs)


class ChatWire:
    """Chat Completions."""

    def options(
        self,
        settings: LLMSettings,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema],
        context: CallContext | None,
        features: Features,
    ) -> dict[str, Any]:
        """Make the arguments of a call."""
        del features
        options = common_options(settings) | {"messages": encode_messages(messages, settings.model)}
        if tools:
            options["tools"] = encode_tools(tools)
        if settings.max_output_tokens is not None:
            options["max_tokens"] = settings.max_output_tokens
        if settings.reasoning_effort is not None:
            options["reasoning_effort"] = settings.reasoning_effort
        if settings.prompt_caching and settings.provider in _WANTS_CACHE_MARKS and "claude" in settings.model:
            options["cache_control_injection_points"] = [
                {"location": "message", "role": "system"},
                {"location": "message", "index": -1},
            ]
        if settings.logprobs is not None:
            options |= {"logprobs": True} | ({"top_logprobs": settings.logprobs} if settings.logprobs else {})
        if context is not None and context.stop:
            options["stop"] = list(context.stop)
        key = context.prompt_cache_key if context is not None else None
        if key is not None and settings.provider in _TAKES_CACHE_KEY and settings.base_url is None:
            options["prompt_cache_key"] = key
        return options

    def call(self, litellm: Any) -> Callable[..., Awaitable[Any]]:

        def complete(*, stream: bool = False, **options: Any) -> Awaitable[Any]:
            if stream:
                options |= {"stream": True, "stream_options": {"include_usage": True}}
            return litellm.acompletion(**options)

        return complete

    answer = staticmethod(read_reply)
    decoder = _ChatDecoder

    async def events(self, stream: Any, send: Callable[[dict[str, Any]], Awaitable[None]]) -> None:
        """Pass a stream's events on; the last one says how it ended, in litellm's words."""

        async def ended(**_: Any) -> None:
            # Otherwise it puts the reply together itself, counts its tokens, logs it, and makes up a reason to stop.
            raise StopAsyncIteration

        stream._finalize_completed_stream = ended
        # Of a broken one it counts the tokens too, with megabytes of tables read on the event loop.
        stream._record_partial_usage_for_failure = lambda: None
        google = _GoogleEnd(stream)
        try:
            async for chunk in stream:
                await send(chunk.model_dump(warnings=False))
            await send(
                {
                    # Reasons and counts are held back from the chunks it gives.
                    "finish_reason": (
                        (stream.received_finish_reason or stream.intermittent_finish_reason) if google.came else None
                    ),
                    "usages": [
                        usage.model_dump() for chunk in stream.chunks if (usage := getattr(chunk, "usage", None))
                    ],
                }
            )
        finally:
            await stream.aclose()


class _GoogleEnd:
    """True if a stream of Google's reported its end: litellm takes each of its pieces for the last one."""

    def __init__(self, stream: Any) -> None:
        self.came = True
        make = getattr(stream, "make_call", None)
        if make is None or getattr(stream, "custom_llm_provider", None) not in _GOOGLE:
            return

        async def make_watched(*given: Any, **named: Any) -> Any:
            pieces = await make(*given, **named)
            parse = getattr(pieces, "chunk_parser", None)
            if parse is not None:
                self.came = False

                def parse_watched(chunk: dict[str, Any]) -> Any:
                    self.came = self.came or _is_last(chunk)
                    return parse(chunk)

                pieces.chunk_parser = parse_watched
            return pieces

        stream.make_call = make_watched


_GOOGLE = frozenset({"gemini", "vertex_ai", "vertex_ai_beta"})


def _is_last(chunk: dict[str, Any]) -> bool:
    feedback: dict[str, Any] = chunk.get("promptFeedback") or {}
    return bool(
        feedback.get("blockReason") or any(candidate.get("finishReason") for candidate in chunk.get("candidates") or ())
    )


class _ResponsesDecoder(ResponsesDecoder):
    def answer(self) -> DecodedReply:
        return _unpacked(super().answer())


class ResponsesWire:
    """The Responses interface."""

    def options(
        self,
        settings: LLMSettings,
        messages: Sequence[Message],
        tools: Sequence[ToolSchema],
        context: CallContext | None,
        features: Features,
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
        if settings.reasoning_effort is not None or features.reasoning:
            # Models that do not reason refuse to be asked for it.
            options["include"] = ["reasoning.encrypted_content"]
        if context is not None and context.prompt_cache_key is not None and settings.base_url is None:
            options["prompt_cache_key"] = context.prompt_cache_key
        return options

    def call(self, litellm: Any) -> Callable[..., Awaitable[Any]]:
        return litellm.aresponses

    def answer(self, settings: LLMSettings, response: dict[str, Any]) -> DecodedReply:
        return _unpacked(read_response(settings, response))

    decoder = _ResponsesDecoder

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


def _unpacked(answer: DecodedReply) -> DecodedReply:
    """Put the provider's id back, which litellm packs into one of its own."""
    return replace(answer, provider_id=_own_id(answer.provider_id))


def _own_id(response_id: str | None) -> str | None:
    try:
        packed = b64decode((response_id or "").removeprefix("resp_"), validate=True).decode()
    except ValueError:
        return response_id
    return packed.rpartition("response_id:")[2] or response_id
