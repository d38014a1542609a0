"""Messages as the Chat Completions format has them, which is also what litellm takes for every provider.

Below: `agentcore.messages`. The way back, from what a provider answers, is in `chat_reply`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import cast

from pydantic import JsonValue

from agentcore.llm.providers import provider_of
from agentcore.messages import (
    DocumentBlock,
    ImageBlock,
    Message,
    ProviderBlock,
    RedactedThinkingBlock,
    ResultBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSchema,
)

ChatMessage = dict[str, JsonValue]

EXTRA = "extra_content"
"""The field with the thought signature of Google's OpenAI-compatible interface, which has to be sent back."""
_WANTS_SIGNED_THINKING = frozenset({"anthropic", "bedrock", "vertex_ai", "azure_ai", "databricks", "litellm_proxy"})
"""Providers of models that sign their thinking and want it back."""
WANTS_REASONING = {
    **dict.fromkeys(("cerebras", "groq", "huggingface", "ollama", "ollama_chat"), "reasoning"),
    **dict.fromkeys(
        (
            "dashscope",
            "deepseek",
            "fireworks_ai",
            "hosted_vllm",
            "minimax",
            "moonshot",
            "openrouter",
            "xiaomi_mimo",
            "zai",
        ),
        "reasoning_content",
    ),
}
"""Providers of models that want to read their own thinking again, and in which field; others refuse it, or do not know it."""
_TAKES_MEDIA_IN_RESULTS = frozenset({"anthropic", "bedrock", "gemini", "vertex_ai"})


def encode_tools(tools: Iterable[ToolSchema]) -> list[JsonValue]:
    """Encode the tools."""
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in tools
    ]


def encode_messages(messages: Sequence[Message], model: str) -> list[ChatMessage]:
    """Write messages for a model; the same messages always give the same bytes."""
    provider = provider_of(model)
    encoded: list[ChatMessage] = []
    results: list[ToolResultBlock] = []
    calls: list[str] = []
    for message in messages:
        if message.role == "tool":
            results.extend(block for block in message.content if isinstance(block, ToolResultBlock))
            continue
        encoded.extend(_encode_results(results, calls, provider))
        results = []
        if message.role == "assistant":
            calls = [call.id for call in message.tool_calls]
            encoded.append(_encode_assistant(message, provider))
        elif message.role == "system":
            encoded.append({"role": "system", "content": message.text})
        else:
            encoded.append({"role": "user", "content": _encode_parts(message)})
    encoded.extend(_encode_results(results, calls, provider))
    return encoded


def _encode_assistant(message: Message, provider: str) -> ChatMessage:
    # Null and not "": an empty text besides calls is refused by some.
    encoded: ChatMessage = {"role": "assistant", "content": message.text or (None if message.tool_calls else "")}
    if message.tool_calls:
        encoded["tool_calls"] = list(_encode_calls(message, provider))
    thinking: list[JsonValue] = []
    reasoning: list[str] = []
    for block in message.content:
        if isinstance(block, ThinkingBlock | RedactedThinkingBlock) and block.provider not in {None, provider}:
            continue
        if isinstance(block, ThinkingBlock):
            reasoning.append(block.text)
        if isinstance(block, ThinkingBlock) and block.signature is not None:
            thinking.append({"type": "thinking", "thinking": block.text, "signature": block.signature})
        elif isinstance(block, RedactedThinkingBlock):
            thinking.append({"type": "redacted_thinking", "data": block.data})
        elif isinstance(block, ProviderBlock) and block.provider == provider:
            _join(encoded, block.data)
    if thinking and provider in _WANTS_SIGNED_THINKING:
        encoded["thinking_blocks"] = thinking
    if provider in WANTS_REASONING and "reasoning_details" not in encoded and (words := "".join(reasoning)):
        encoded[WANTS_REASONING[provider]] = words
    return encoded


def _join(encoded: ChatMessage, fragment: JsonValue) -> None:
    """Put back what `chat_reply` took out of a message because only its provider can read it."""
    # What has a type is a part of another interface of the same provider.
    if not isinstance(fragment, dict) or "type" in fragment:
        return
    for name, value in fragment.items():
        present = encoded.get(name)
        if isinstance(present, list) and isinstance(value, list):
            encoded[name] = [*value, *present]
        elif isinstance(present, dict) and isinstance(value, dict):
            encoded[name] = {**present, **value}
        else:
            encoded[name] = value


def _encode_calls(message: Message, provider: str) -> Iterable[JsonValue]:
    extra: JsonValue = None
    for block in message.content:
        if isinstance(block, ToolCallBlock):
            call = _encode_call(block)
            yield call if extra is None else {**call, EXTRA: extra}
            extra = None
        elif isinstance(block, ProviderBlock) and block.provider == provider and isinstance(block.data, dict):
            extra = block.data[EXTRA] if block.data.get("type") == EXTRA else None


def _encode_call(call: ToolCallBlock) -> dict[str, JsonValue]:
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments_json(call)}}


def arguments_json(call: ToolCallBlock) -> str:
    """Write a call's arguments, in an object in any case."""
    return json.dumps(arguments_object(call), ensure_ascii=False)


def arguments_object(call: ToolCallBlock) -> dict[str, JsonValue]:
    """Return a call's arguments. Text that is not a JSON object is wrapped in one, because many providers parse it."""
    return {"malformed": call.arguments} if isinstance(call.arguments, str) else call.arguments


def _encode_results(results: list[ToolResultBlock], calls: list[str], provider: str) -> Iterable[ChatMessage]:
    """Write answers in the order of the calls, which some providers insist on."""
    order = {call_id: position for position, call_id in reversed(list(enumerate(calls)))}
    shown: list[JsonValue] = []
    for result in sorted(results, key=lambda result: order.get(result.call_id, len(order))):
        content: JsonValue = result.text
        media = [block for block in result.content if not isinstance(block, TextBlock)]
        if media and provider in _TAKES_MEDIA_IN_RESULTS:
            content = [_encode_part(block) for block in result.content]
        elif media:
            content = f"{result.text}\n(The {_kinds(media)} in the next message.)".lstrip()
            shown.extend(map(_encode_part, media))
        yield {"role": "tool", "tool_call_id": result.call_id, "content": content}
    if shown:
        yield {"role": "user", "content": shown}


def _kinds(media: Sequence[ResultBlock]) -> str:
    kinds = dict.fromkeys("document" if isinstance(block, DocumentBlock) else "picture" for block in media)
    return f"{' and the '.join(kinds)} of this result {'follows' if len(kinds) == 1 else 'follow'}"


def _encode_parts(message: Message) -> JsonValue:
    blocks = [block for block in message.content if isinstance(block, ResultBlock)]
    if len(blocks) == 1 and isinstance(blocks[0], TextBlock):
        return blocks[0].text
    return [_encode_part(block) for block in blocks]


def _encode_part(block: ResultBlock) -> JsonValue:
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text}
    if isinstance(block, DocumentBlock):
        # Those who fetch a document themselves take its address here.
        return {"type": "file", "file": {"filename": filename(block), "file_data": media_url(block)}}
    return {"type": "image_url", "image_url": {"url": media_url(block)}}


def filename(block: DocumentBlock) -> str:
    """Name a document, as some insist, and so that the name says what it is."""
    name = block.name or "document"
    unsaid = block.media_type == "application/pdf" and not name.lower().endswith(".pdf")
    return f"{name}.pdf" if unsaid else name


def media_url(block: ImageBlock | DocumentBlock) -> str:
    """Write a picture or a document as an address."""
    if block.data is None:
        return cast("str", block.url)
    return f"data:{block.media_type};base64,{block.data}"
