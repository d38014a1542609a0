"""Calls of the Chat Completions interface, which litellm offers for every provider."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import Any

from agentcore.llm.answer import Answer, Reader, broken_off
from agentcore.llm.deltas import Delta
from agentcore.llm.failures import no_reply
from agentcore.llm.features import Features
from agentcore.llm.formats.chat import encode_messages, encode_tools
from agentcore.llm.formats.chat_reply import answered, logprobs_in
from agentcore.llm.formats.chat_stream import DeltaReader, assemble
from agentcore.llm.litellm_route.wire import common_options
from agentcore.llm.model import CallContext
from agentcore.llm.settings import LLMSettings
from agentcore.messages import Message, ToolSchema

__all__ = ["ChatWire"]

_WANTS_CACHE_MARKS = frozenset({"anthropic", "bedrock", "vertex_ai", "databricks", "openrouter"})
_TAKES_CACHE_KEY = frozenset({"openai", "azure"})


class ChatWire:
    """The wire of `agentcore.llm.chat`."""

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
        """Give litellm's function."""

        def complete(*, stream: bool = False, **options: Any) -> Awaitable[Any]:
            if stream:
                options |= {"stream": True, "stream_options": {"include_usage": True}}
            return litellm.acompletion(**options)

        return complete

    def answer(self, settings: LLMSettings, response: dict[str, Any]) -> Answer:
        """Read an answer that came at once."""
        choices: list[dict[str, Any]] = response.get("choices") or []
        if not choices:
            raise no_reply(settings, response)
        return answered(
            settings,
            choices[0]["message"],
            choices[0].get("finish_reason") or "stop",
            [response.get("usage") or {}],
            response,
            logprobs=logprobs_in(choices[0]),
        )

    def reader(self, settings: LLMSettings) -> Reader:
        """Read an answer that comes as a stream."""
        return _ChatReader(settings)

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
    """Whether a stream of Google's said that it ended: litellm takes each of its pieces for the last one."""

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


class _ChatReader:
    def __init__(self, settings: LLMSettings) -> None:
        self._settings = settings
        self._deltas = DeltaReader()
        self._choices: list[dict[str, Any]] = []
        self._last: dict[str, Any] = {}
        self._end: dict[str, Any] = {}

    def read(self, event: dict[str, Any]) -> Iterator[Delta]:
        """Take one event in and show what it says."""
        if "usages" in event:
            self._end = event
            return
        self._last = event
        for choice in event.get("choices") or ():
            if not choice.get("index"):
                self._choices.append(choice)
                yield from self._deltas.read(choice)

    def answer(self) -> Answer:
        """Give the whole."""
        reason = self._end.get("finish_reason")
        if not reason or not self._choices:
            raise broken_off(self._settings.model)
        logprobs = [said for choice in self._choices for said in logprobs_in(choice)]
        return answered(
            self._settings, assemble(self._choices), reason, self._end["usages"], self._last, logprobs=logprobs
        )
