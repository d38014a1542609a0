"""The Responses interface over plain HTTP."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from agentcore.llm.answer import Answer, Reader
from agentcore.llm.formats.responses import encode_function_tools, encode_items
from agentcore.llm.formats.responses_reply import ResponsesReader, read_response
from agentcore.llm.native.hosts import Host
from agentcore.llm.native.kept import Kept
from agentcore.llm.native.wire import Call, body_of, to_json
from agentcore.llm.settings import LLMSettings
from agentcore.messages import Message, ToolSchema

__all__ = ["ResponsesWire"]

_messages: dict[str, Kept[Message, bytes]] = {}
"""What messages were written as, by provider."""


def _encode_tool(tool: ToolSchema) -> bytes:
    return to_json(encode_function_tools([tool])[0])


_tools = Kept(_encode_tool)


@dataclass(frozen=True, slots=True)
class ResponsesWire:
    """Speaks it. Nothing of a conversation is kept at the provider: reasoning comes and goes encrypted."""

    host: Host

    def url(self, base_url: str) -> str:
        """Give the address to post to."""
        return base_url if base_url.endswith("/responses") else f"{base_url}/responses"

    def headers(self, key: str | None) -> dict[str, str]:
        """Give the headers of a request."""
        headers = {"content-type": "application/json"}
        if key is not None:
            headers["authorization"] = f"Bearer {key}"
        return headers

    def body(self, call: Call) -> bytes:
        """Write a request."""
        instructions, items = _written(call.messages, call.settings.model)
        ready = {"input": b"[" + b",".join(items) + b"]"}
        if call.tools:
            ready["tools"] = b"[" + b",".join(map(_tools, call.tools)) + b"]"
        return body_of(_options(call, instructions), **ready)

    def answer(self, settings: LLMSettings, response: dict[str, Any]) -> Answer:
        """Read an answer that came at once."""
        return read_response(settings, response)

    def reader(self, settings: LLMSettings) -> Reader:
        """Read an answer that comes as a stream."""
        return ResponsesReader(settings)


def _options(call: Call, instructions: str | None) -> dict[str, Any]:
    settings, reasons = call.settings, call.features.reasoning
    options: dict[str, Any] = {"model": settings.model.removeprefix(f"{settings.provider}/"), "store": False}
    if instructions is not None:
        options["instructions"] = instructions
    if call.streamed:
        options["stream"] = True
    if settings.max_output_tokens is not None:
        options["max_output_tokens"] = settings.max_output_tokens
    if settings.reasoning_effort is not None and not (settings.drop_params and reasons is False):
        options["reasoning"] = {"effort": settings.reasoning_effort, "summary": "auto"}
    if reasons or "reasoning" in options:
        # Models that do not reason refuse to be asked for it.
        options["include"] = ["reasoning.encrypted_content"]
    if not (settings.drop_params and reasons):
        # Models that reason refuse both.
        sampling = {"temperature": settings.temperature, "top_p": settings.top_p}
        options |= {name: value for name, value in sampling.items() if value is not None}
    if call.context.prompt_cache_key is not None and settings.base_url is None:
        options["prompt_cache_key"] = call.context.prompt_cache_key
    if (schema := call.context.response_schema) is not None:
        options["text"] = {
            "format": {"type": "json_schema", "name": schema.name, "schema": schema.schema, "strict": False}
        }
    return options | settings.extra_body


def _written(messages: Sequence[Message], model: str) -> tuple[str | None, list[bytes]]:
    """Give the instructions, which are the system messages at the beginning, and what each other message is written as."""
    provider = model.partition("/")[0]
    kept = _messages.get(provider)
    if kept is None:
        kept = _messages[provider] = Kept(partial(_encode_message, model=f"{provider}/"))
    instructions: list[str] = []
    items: list[bytes] = []
    for message in messages:
        if message.role == "system" and not items:
            instructions.append(message.text)
        elif written := kept(message):
            items.append(written)
    return "\n\n".join(instructions) or None, items


def _encode_message(message: Message, model: str) -> bytes:
    if message.role == "system":
        # Not at the beginning: there it is an item like others.
        return to_json({"type": "message", "role": "system", "content": [{"type": "input_text", "text": message.text}]})
    return b",".join(map(to_json, encode_items([message], model)[1]))
