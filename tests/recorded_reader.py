"""What a recorded answer says, read by the book and in the plainest way: an opinion to compare ours with.

It shares no code with what it judges, and knows the interfaces from their documentation only.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from agentcore.errors import BadRequest, ModelError, ModelUnavailable
from agentcore.llm import Reply
from agentcore.messages import (
    ImageBlock,
    ProviderBlock,
    ReasoningBlock,
    RedactedThinkingBlock,
    RefusalBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
)
from recorded_traffic import Recording

__all__ = ["Piece", "Refused", "Said", "said_by", "said_in"]

Piece = tuple[Any, ...]


@dataclass(frozen=True)
class Said:
    """A reply, without anybody's classes."""

    pieces: list[Piece]
    """In order: thinking, text, call, reasoning, own (a block that only the provider can read). Texts are joined."""
    cited: list[tuple[str, Any]] = field(default_factory=list[tuple[str, Any]])
    """Texts for which something is cited, each with what is cited."""
    stop: str = "end"
    usage: tuple[int, int, int, int, int] = (0, 0, 0, 0, 0)
    """Read, written, read from the cache, written to the cache, reasoning."""
    model: str = ""
    id: str | None = None
    signatures: list[str] = field(default_factory=list[str])
    """What only the provider can read and has no block of its own: it has to be somewhere in the reply."""


@dataclass(frozen=True)
class Refused:
    """An error instead of a reply."""

    kind: type[ModelError]
    status: int | None
    sentence: str


def said_in(recording: Recording) -> Said | Refused:
    """Read a recording."""
    events = [] if recording.sse is None else list(_events(recording.sse))
    error = _error(recording, events)
    if error is not None:
        return error
    read = {"chat": _chat, "anthropic": _anthropic, "responses": _responses, "gemini": _gemini}[recording.wire]
    said = read(recording.response, events)
    return replace(said, pieces=_joined(said.pieces), model=f"{recording.provider}/{said.model}")


def said_by(reply: Reply) -> Said:
    """Put a reply of ours in the same form."""
    pieces: list[Piece] = []
    cited: list[tuple[str, Any]] = []
    picture: str | None = None
    for block in reply.message.content:
        if isinstance(block, ImageBlock):
            picture = block.data
        if isinstance(block, TextBlock | RefusalBlock):
            pieces.append(("text", block.text))
        elif isinstance(block, ThinkingBlock):
            pieces.append(("thinking", block.text, block.signature))
        elif isinstance(block, RedactedThinkingBlock):
            pieces.append(("redacted", block.data))
        elif isinstance(block, ReasoningBlock):
            pieces.append(("reasoning", block.id, "".join(block.summary), block.encrypted_content))
        elif isinstance(block, ToolCallBlock):
            pieces.append(("call", block.id, block.name, block.arguments))
        elif isinstance(block, ProviderBlock):
            data: Any = block.data
            kind = data.get("type") if block.provider == "gemini" else None
            if data.get("type") == "image_generation_call" and picture is not None:
                data = {**data, "result": picture}
            if data.get("type") == "cited_text":
                cited += _cited(pieces[-1][1], data)
            elif kind == "part":
                # An empty part is there for its signature alone, which is looked for elsewhere.
                pieces += [("own", data["part"])] if data["part"].keys() - {"text", "thoughtSignature"} else []
            elif block.provider != "gemini":
                # Signatures have a check of their own, and so has what is said of sources.
                pieces.append(("own", data))
    used = reply.usage
    counts = (
        used.input_tokens,
        used.output_tokens,
        used.cache_read_tokens,
        used.cache_write_tokens,
        used.reasoning_tokens,
    )
    return Said(_joined(pieces), cited, reply.stop_reason, counts, reply.model, reply.provider_id)


def _cited(text: str, data: Any) -> Iterator[tuple[str, Any]]:
    start = 0
    for part in data["parts"]:
        end = start + part["length"]
        if part.get("citations"):
            yield text[start:end], part["citations"]
        start = end


def _joined(pieces: list[Piece]) -> list[Piece]:
    joined: list[Piece] = []
    for piece in pieces:
        if piece[0] == "text" and joined and joined[-1][0] == "text":
            joined[-1] = ("text", joined[-1][1] + piece[1])
        elif piece != ("text", ""):
            joined.append(piece)
    return joined


def _events(sse: str) -> Iterator[dict[str, Any]]:
    for event in sse.replace("\r\n", "\n").split("\n\n"):
        data = "\n".join(line[5:].lstrip() for line in event.split("\n") if line.startswith("data:"))
        if data and data != "[DONE]":
            yield json.loads(data)


def _error(recording: Recording, events: list[dict[str, Any]]) -> Refused | None:
    if recording.status >= 400:
        return _refused(recording.status, recording.response["error"])
    if recording.wire == "chat":
        for event in events:
            if error := event.get("error"):
                return _refused(error["status_code"], error)
    if recording.wire == "responses" and recording.response and recording.response["status"] == "queued":
        return Refused(BadRequest, None, "in the background")
    return None


def _refused(status: int, error: dict[str, Any]) -> Refused:
    # Groq did not like a call that the model made: that is the dice's fault, not the request's.
    kind = ModelUnavailable if error.get("code") == "tool_use_failed" else BadRequest
    return Refused(kind, status, error["message"])


def _chat(response: Any, events: list[dict[str, Any]]) -> Said:
    if events:
        response = _chat_whole(events)
    choice = response["choices"][0]
    message = choice["message"]
    pieces: list[Piece] = []
    if thought := message.get("reasoning_content") or message.get("reasoning"):
        pieces.append(("thinking", thought, None))
    if text := message.get("content") or message.get("refusal"):
        if text.startswith("<think>"):
            thought, text = text.removeprefix("<think>").split("</think>")
            pieces.append(("thinking", thought, None))
        pieces.append(("text", text))
    for call in message.get("tool_calls") or ():
        pieces.append(("call", call["id"], call["function"]["name"], json.loads(call["function"]["arguments"])))
    if details := message.get("reasoning_details"):
        pieces.append(("own", {"reasoning_details": details}))
    usage: dict[str, Any] = response.get("usage") or {}
    asked: dict[str, Any] = usage.get("prompt_tokens_details") or {}
    answered: dict[str, Any] = usage.get("completion_tokens_details") or {}
    cached = (asked.get("cached_tokens"), usage.get("cached_tokens"), usage.get("num_cached_tokens"))
    return Said(
        pieces,
        stop="end" if choice["finish_reason"] == "stop" else choice["finish_reason"],
        usage=(
            usage["prompt_tokens"],
            usage["completion_tokens"],
            next(filter(None, cached), 0),
            asked.get("cache_write_tokens") or 0,
            answered.get("reasoning_tokens") or 0,
        ),
        model=response["model"],
        id=response["id"],
    )


def _chat_whole(events: list[dict[str, Any]]) -> dict[str, Any]:
    message: dict[str, Any] = {}
    calls: dict[int, dict[str, Any]] = {}
    finish: str | None = None
    usage: dict[str, Any] = {}
    for event in events:
        usage = event.get("usage") or usage
        for choice in event["choices"]:
            finish = choice.get("finish_reason") or finish
            delta = choice["delta"]
            for name in ("content", "reasoning", "reasoning_content"):
                message[name] = message.get(name, "") + (delta.get(name) or "")
            message.setdefault("reasoning_details", []).extend(delta.get("reasoning_details") or ())
            for part in delta.get("tool_calls") or ():
                call = calls.setdefault(
                    part["index"], {"id": part.get("id"), "function": {"name": "", "arguments": ""}}
                )
                for name, words in part["function"].items():
                    call["function"][name] += words or ""
    message["tool_calls"] = [calls[index] for index in sorted(calls)]
    first = events[0]
    return {
        "choices": [{"message": message, "finish_reason": finish}],
        "usage": usage,
        "id": first["id"],
        "model": first["model"],
    }


def _anthropic(response: Any, events: list[dict[str, Any]]) -> Said:
    if events:
        response = _anthropic_whole(events)
    pieces: list[Piece] = []
    cited: list[tuple[str, Any]] = []
    for block in response["content"]:
        match block["type"]:
            case "text":
                pieces.append(("text", block["text"]))
                if block.get("citations"):
                    cited.append((block["text"], block["citations"]))
            case "thinking":
                pieces.append(("thinking", block["thinking"], block["signature"]))
            case "redacted_thinking":
                pieces.append(("redacted", block["data"]))
            case "tool_use":
                pieces.append(("call", block["id"], block["name"], block["input"]))
            case _:
                pieces.append(("own", block))
    if response.get("container"):
        pieces.append(("own", {"type": "container", **response["container"]}))
    usage: dict[str, Any] = response["usage"]
    details: dict[str, Any] = usage.get("output_tokens_details") or {}
    thought = details.get("thinking_tokens", 0)
    own = [run for run in usage.get("iterations") or () if run["type"] != "advisor_message"] or [usage]
    fresh, read, wrote, written = (
        sum(run[name] for run in own)
        for name in ("input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens")
    )
    stop = {"end_turn": "end", "tool_use": "tool_calls", "max_tokens": "length"}[response["stop_reason"]]
    counts = (fresh + read + wrote, written, read, wrote, thought)
    return Said(pieces, cited, stop, counts, response["model"], response["id"])


def _anthropic_whole(events: list[dict[str, Any]]) -> dict[str, Any]:
    message: dict[str, Any] = {}
    blocks: list[dict[str, Any]] = []
    written = ""
    for event in events:
        match event["type"]:
            case "message_start":
                message = event["message"]
            case "content_block_start":
                blocks.append(dict(event["content_block"]))
                written = ""
            case "content_block_delta":
                delta, block = event["delta"], blocks[-1]
                match delta["type"]:
                    case "input_json_delta":
                        written += delta["partial_json"]
                    case "citations_delta":
                        block["citations"] = (block.get("citations") or []) + [delta["citation"]]
                    case "compaction_delta":
                        block["content"] = (block.get("content") or "") + (delta["content"] or "")
                    case kind:
                        name = kind.removesuffix("_delta")
                        block[name] = block.get(name, "") + delta[name]
            case "content_block_stop" if written:
                blocks[-1]["input"] = json.loads(written)
            case "message_delta":
                message = {**message, **event["delta"], "usage": {**message["usage"], **event["usage"]}}
            case _:
                pass
    return {**message, "content": blocks}


def _responses(response: Any, events: list[dict[str, Any]]) -> Said:
    if events:
        response = next(event["response"] for event in events if event["type"] == "response.completed")
    pieces: list[Piece] = []
    cited: list[tuple[str, Any]] = []
    stop = "end"
    for item in response["output"]:
        match item["type"]:
            case "message":
                for part in item["content"]:
                    pieces.append(("text", part.get("text") or part.get("refusal")))
                    if part.get("annotations"):
                        cited.append((part["text"], part["annotations"]))
            case "function_call":
                pieces.append(("call", item["call_id"], item["name"], json.loads(item["arguments"])))
                stop = "tool_calls"
            case "reasoning":
                words = "".join(part["text"] for part in [*item["summary"], *(item.get("content") or ())])
                pieces.append(("reasoning", item["id"], words, item.get("encrypted_content")))
            case _:
                pieces.append(("own", item))
    usage: dict[str, Any] = response.get("usage") or {}
    read: dict[str, Any] = usage.get("input_tokens_details") or {}
    said: dict[str, Any] = usage.get("output_tokens_details") or {}
    counts = (
        usage.get("input_tokens", 0),
        usage.get("output_tokens", 0),
        read.get("cached_tokens", 0),
        read.get("cache_write_tokens", 0),
        said.get("reasoning_tokens", 0),
    )
    return Said(pieces, cited, stop, counts, response["model"], response["id"])


def _gemini(response: Any, events: list[dict[str, Any]]) -> Said:
    pieces: list[Piece] = []
    usage: dict[str, Any] = {}
    last: dict[str, Any] = {}
    signatures: list[str] = []
    for last in events or [response]:
        usage = last.get("usageMetadata") or usage
        part: dict[str, Any]
        for part in last["candidates"][0].get("content", {}).get("parts", ()):
            if signature := part.get("thoughtSignature"):
                signatures.append(signature)
            if "functionCall" in part:
                pieces.append(("call", None, part["functionCall"]["name"], part["functionCall"].get("args") or {}))
            elif part.get("thought"):
                pieces.append(("thinking", part["text"], None))
            elif "text" in part:
                pieces.append(("text", part["text"]))
            elif "inlineData" not in part:
                pieces.append(("own", part))
    calls = any(piece[0] == "call" for piece in pieces)
    reason = last["candidates"][0]["finishReason"]
    thought = usage.get("thoughtsTokenCount", 0)
    counts = (
        usage["promptTokenCount"] + usage.get("toolUsePromptTokenCount", 0),
        usage.get("candidatesTokenCount", 0) + thought,
        usage.get("cachedContentTokenCount", 0),
        0,
        thought,
    )
    stop = "tool_calls" if calls else {"STOP": "end", "MAX_TOKENS": "length"}[reason]
    grounding: dict[str, Any] = last["candidates"][0].get("groundingMetadata") or {}
    cited = [
        (support["segment"]["text"], [grounding["groundingChunks"][at] for at in support["groundingChunkIndices"]])
        for support in grounding.get("groundingSupports") or ()
    ]
    return Said(pieces, cited, stop, counts, last["modelVersion"], last["responseId"], signatures)
