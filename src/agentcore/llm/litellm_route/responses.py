"""Calls of the Responses interface, which OpenAI's newer models have, some of them nothing else."""

from __future__ import annotations

from base64 import b64decode
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from agentcore.llm.answer import Answer, Reader
from agentcore.llm.features import Features
from agentcore.llm.formats.responses import encode_function_tools, encode_items
from agentcore.llm.formats.responses_reply import ResponsesReader, read_response
from agentcore.llm.litellm_route.wire import common_options
from agentcore.llm.model import CallContext
from agentcore.llm.settings import LLMSettings
from agentcore.messages import Message, ToolSchema

__all__ = ["ResponsesWire"]


class ResponsesWire:
    """The wire of `agentcore.llm.responses`."""

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
        """Give litellm's function."""
        return litellm.aresponses

    def answer(self, settings: LLMSettings, response: dict[str, Any]) -> Answer:
        """Read an answer that came at once."""
        return _unpacked(read_response(settings, response))

    def reader(self, settings: LLMSettings) -> Reader:
        """Read an answer that comes as a stream."""
        return _Reader(settings)

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


class _Reader(ResponsesReader):
    def answer(self) -> Answer:
        """Give the whole."""
        return _unpacked(super().answer())


def _unpacked(answer: Answer) -> Answer:
    """Put the provider's id back, which litellm packs into one of its own."""
    return replace(answer, provider_id=_own_id(answer.provider_id))


def _own_id(response_id: str | None) -> str | None:
    try:
        packed = b64decode((response_id or "").removeprefix("resp_"), validate=True).decode()
    except ValueError:
        return response_id
    return packed.rpartition("response_id:")[2] or response_id
