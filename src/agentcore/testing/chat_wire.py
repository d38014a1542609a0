"""Chat Completions as a provider sees it: requests read, replies written. The client's side is in `agentcore.llm`."""

from __future__ import annotations

import json
from typing import Any, cast

from pydantic import JsonValue

from agentcore.llm import Delta, ReasoningDelta, Reply, TextDelta, ToolCallDelta
from agentcore.messages import (
    Block,
    DocumentBlock,
    ImageBlock,
    Message,
    ResultBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSchema,
)
from agentcore.testing.script import Request, arguments_text
from agentcore.usage import Usage

__all__ = ["read_request", "write_chunk", "write_reply", "write_usage"]

_FINISH_REASONS = {"end": "stop", "pause": "stop", "stop_sequence": "stop"}


def read_request(body: dict[str, Any]) -> Request:
    """Read what the client asks."""
    messages: list[Message] = []
    names: dict[str, str] = {}  # of the calls so far, by id: a result names only the id
    for sent in body["messages"]:
        message = _read_message(sent, names)
        names |= {call.id: call.name for call in message.tool_calls}
        messages.append(message)
    return Request(tuple(messages), tuple(_read_tool(tool["function"]) for tool in body.get("tools") or ()))


def _read_tool(function: dict[str, Any]) -> ToolSchema:
    return ToolSchema(
        name=function["name"], description=function.get("description", ""), parameters=function.get("parameters", {})
    )


def _read_message(sent: dict[str, Any], names: dict[str, str]) -> Message:
    content = _read_content(sent.get("content"))
    if sent["role"] == "tool":
        call_id = sent["tool_call_id"]
        result = ToolResultBlock(call_id=call_id, name=names.get(call_id) or sent.get("name") or "", content=content)
        return Message(role="tool", content=(result,))
    thinking = sent.get("reasoning_content")
    calls = [
        ToolCallBlock(
            id=call["id"], name=call["function"]["name"], arguments=_read_arguments(call["function"]["arguments"])
        )
        for call in sent.get("tool_calls") or ()
    ]
    blocks: tuple[Block, ...] = (*([ThinkingBlock(text=thinking)] if thinking else ()), *content, *calls)
    return Message(role="system" if sent["role"] == "developer" else sent["role"], content=blocks)


def _read_content(content: str | list[dict[str, Any]] | None) -> tuple[ResultBlock, ...]:
    if not content:
        return ()
    if isinstance(content, str):
        return (TextBlock(text=content),)
    return tuple(map(_read_part, content))


def _read_part(part: dict[str, Any]) -> ResultBlock:
    if part["type"] == "text":
        return TextBlock(text=part["text"])
    if part["type"] == "file":
        file = part["file"]
        return DocumentBlock.model_validate({"name": file.get("filename"), **_read_address(file["file_data"])})
    return ImageBlock.model_validate(_read_address(part["image_url"]["url"]))


def _read_address(url: str) -> dict[str, str]:
    if not url.startswith("data:"):
        return {"url": url}
    media_type, _, data = url.removeprefix("data:").partition(";base64,")
    return {"data": data, "media_type": media_type}


def _read_arguments(text: str) -> dict[str, JsonValue] | str:
    try:
        arguments = json.loads(text)
    except ValueError:
        return text
    return cast("dict[str, JsonValue]", arguments) if isinstance(arguments, dict) else text


def write_usage(usage: Usage, asked: int) -> dict[str, JsonValue]:
    """Write what a reply used; a script that says nothing of it is taken to mean a token for four bytes asked."""
    read = usage.input_tokens or (0 if usage.total_tokens else asked // 4)
    return {
        "prompt_tokens": read,
        "completion_tokens": usage.output_tokens,
        "total_tokens": read + usage.output_tokens,
        "prompt_tokens_details": {"cached_tokens": usage.cache_read_tokens},
        "completion_tokens_details": {"reasoning_tokens": usage.reasoning_tokens},
    }


def write_reply(reply: Reply, usage: dict[str, JsonValue]) -> dict[str, JsonValue]:
    """Write a reply, whole."""
    said = reply.message
    thinking = "".join(block.text for block in said.content if isinstance(block, ThinkingBlock))
    message: dict[str, JsonValue] = {"role": "assistant", "content": said.text or None}
    if thinking:
        message["reasoning_content"] = thinking
    if said.tool_calls:
        message["tool_calls"] = [
            {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": arguments_text(call)}}
            for call in said.tool_calls
        ]
    choice: JsonValue = {"index": 0, "message": message, "finish_reason": _finish_reason(reply)}
    return {**_envelope(reply, "chat.completion"), "choices": [choice], "usage": usage}


def write_chunk(reply: Reply, delta: Delta | None) -> dict[str, JsonValue]:
    """Write one piece of a reply; None for the last one, which says why it ended."""
    choice: dict[str, JsonValue] = {"index": 0, "delta": _write_delta(delta), "finish_reason": None}
    if delta is None:
        choice["finish_reason"] = _finish_reason(reply)
    return {**_envelope(reply, "chat.completion.chunk"), "choices": [choice]}


def _write_delta(delta: Delta | None) -> dict[str, JsonValue]:
    if isinstance(delta, TextDelta):
        return {"role": "assistant", "content": delta.text}
    if isinstance(delta, ReasoningDelta):
        return {"role": "assistant", "reasoning_content": delta.text}
    if isinstance(delta, ToolCallDelta):
        function: dict[str, JsonValue] = {"arguments": delta.arguments}
        call: dict[str, JsonValue] = {"index": delta.index, "function": function}
        if delta.name is not None:
            function["name"] = delta.name
            call |= {"id": delta.id, "type": "function"}
        return {"role": "assistant", "tool_calls": [call]}
    return {}


def _finish_reason(reply: Reply) -> str:
    return _FINISH_REASONS.get(reply.stop_reason, reply.stop_reason)


def _envelope(reply: Reply, what: str) -> dict[str, JsonValue]:
    return {"id": f"chatcmpl-{reply.provider_id}", "object": what, "created": 1_700_000_000, "model": reply.model}
