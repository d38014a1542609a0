"""Messages as the Responses interface has them: a list of items rather than messages. Both ways.

Reasoning is sent back where it came encrypted, or in words to those who want to read it again: nothing of a conversation
is kept at the provider (`store=False`), so its ids alone mean nothing there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, cast

from pydantic import JsonValue

from agentcore._text import replace_lone_surrogates as clean
from agentcore.llm.formats.chat import WANTS_REASONING, arguments_json, filename, media_url
from agentcore.llm.formats.decoding import counted, read_arguments
from agentcore.llm.providers import provider_of
from agentcore.messages import (
    AudioBlock,
    Block,
    DocumentBlock,
    ImageBlock,
    Message,
    ProviderBlock,
    ReasoningBlock,
    RefusalBlock,
    ResultBlock,
    TextBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSchema,
)
from agentcore.messages.message import CITED
from agentcore.usage import Usage

_PICTURE = "image_generation_call"
_OTHER = "content_part"
"""The type of a block that holds a part of a message that nobody here knows: it is kept, and not sent back."""


def encode_function_tools(tools: Iterable[ToolSchema]) -> list[JsonValue]:
    """Encode the tools."""
    return [
        {
            "type": "function",
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
            # Strict mode takes a part of JSON Schema only, and refuses the rest.
            "strict": False,
        }
        for tool in tools
    ]


def encode_items(messages: Sequence[Message], model: str) -> tuple[str | None, list[JsonValue]]:
    """Write messages: the instructions, which are the system messages they begin with, and the items."""
    provider = provider_of(model)
    instructions: list[str] = []
    items: list[JsonValue] = []
    for message in messages:
        if message.role == "system" and not items:
            instructions.append(message.text)
        elif message.role == "assistant":
            items.extend(_encode_said(message, provider))
        elif message.role == "tool":
            items.extend(_encode_result(block) for block in message.content if isinstance(block, ToolResultBlock))
        else:
            parts = [block for block in message.content if isinstance(block, ResultBlock)]
            items.append({"type": "message", "role": message.role, "content": [_encode_part(part) for part in parts]})
    return "\n\n".join(instructions) or None, items


def _encode_said(message: Message, provider: str) -> Iterator[JsonValue]:
    for position, block in enumerate(message.content):
        if isinstance(block, TextBlock):
            after = message.content[position + 1] if position + 1 < len(message.content) else None
            yield _encode_text(block.text, after, provider)
        elif isinstance(block, RefusalBlock):
            part: JsonValue = {"type": "refusal", "refusal": block.text}
            yield {"type": "message", "role": "assistant", "content": [part]}
        elif isinstance(block, AudioBlock):
            if block.transcript:
                yield _encode_text(block.transcript, None, provider)
        elif isinstance(block, ToolCallBlock):
            arguments = arguments_json(block)
            yield {"type": "function_call", "call_id": block.id, "name": block.name, "arguments": arguments}
        elif isinstance(block, ReasoningBlock) and block.provider in {None, provider}:
            yield from _encode_reasoning(block, provider)
        elif isinstance(block, ProviderBlock) and block.provider == provider and _is_item(block.data):
            yield _with_picture(cast("dict[str, JsonValue]", block.data), message.content[:position])


def _with_picture(item: dict[str, JsonValue], before: tuple[Block, ...]) -> JsonValue:
    """Put a picture back into the item that it came in."""
    last = before[-1] if before else None
    if item.get("type") == _PICTURE and "result" not in item and isinstance(last, ImageBlock):
        return {**item, "result": last.data}
    return item


def _encode_text(text: str, after: Block | None, provider: str) -> JsonValue:
    item: dict[str, JsonValue] = {"type": "message", "role": "assistant"}
    parts: list[dict[str, JsonValue]] = []
    if isinstance(after, ProviderBlock) and after.provider == provider and _is_how_it_was_said(after.data):
        data = cast("dict[str, JsonValue]", after.data)
        item |= {name: value for name, value in data.items() if name == "phase"}
        parts = cast("list[dict[str, JsonValue]]", data["parts"])
    # A text that has another length now is another text: nothing says what was cited for it.
    if sum(cast("int", part["length"]) for part in parts) != len(text):
        parts = [{"length": len(text)}]
    start = 0
    content: list[JsonValue] = []
    for part in parts:
        end = start + cast("int", part["length"])
        content.append({"type": "output_text", "text": text[start:end], "annotations": part.get("citations") or []})
        start = end
    return {**item, "content": content}


def _encode_reasoning(block: ReasoningBlock, provider: str) -> Iterator[JsonValue]:
    if block.encrypted_content is None and not (provider in WANTS_REASONING and block.summary):
        return
    item: dict[str, JsonValue] = {"type": "reasoning", "id": block.id} if block.id else {"type": "reasoning"}
    kind = "reasoning_text" if block.in_words else "summary_text"
    words: list[JsonValue] = [{"type": kind, "text": text} for text in block.summary]
    item |= {"summary": [], "content": words} if block.in_words else {"summary": words}
    yield item if block.encrypted_content is None else {**item, "encrypted_content": block.encrypted_content}


def _is_item(data: JsonValue) -> bool:
    kind = data.get("type") if isinstance(data, dict) else None
    return isinstance(kind, str) and kind not in {CITED, _OTHER}


def _is_how_it_was_said(data: JsonValue) -> bool:
    return isinstance(data, dict) and data.get("type") == CITED


def _encode_result(result: ToolResultBlock) -> JsonValue:
    output: JsonValue = result.text
    if not all(isinstance(block, TextBlock) for block in result.content):
        output = [_encode_part(block) for block in result.content]
    return {"type": "function_call_output", "call_id": result.call_id, "output": output}


def _encode_part(block: ResultBlock) -> JsonValue:
    if isinstance(block, TextBlock):
        return {"type": "input_text", "text": block.text}
    if isinstance(block, DocumentBlock):
        # Only what is fetched goes by address; there it has its name from that.
        address = media_url(block)
        if not address.startswith("data:"):
            return {"type": "input_file", "file_url": address}
        return {"type": "input_file", "filename": filename(block), "file_data": address}
    return {"type": "input_image", "image_url": media_url(block), "detail": "auto"}


def decode_items(items: Iterable[dict[str, Any]], provider: str) -> Message:
    """Read what a model answered."""
    blocks: list[Block] = []
    for item in items:
        kind = item.get("type")
        if kind == "message":
            blocks.extend(_decode_text(item, provider))
        elif kind == "function_call":
            arguments = read_arguments(item.get("arguments"))
            call_id = clean(item.get("call_id") or item["id"])
            blocks.append(ToolCallBlock(id=call_id, name=clean(item["name"]), arguments=arguments))
        elif kind == "reasoning":
            blocks.append(_decode_reasoning(item, provider))
        elif kind == _PICTURE and isinstance(item.get("result"), str):
            blocks.extend(_decode_picture(item, provider))
        else:
            blocks.append(ProviderBlock(provider=provider, data=clean(item)))
    return Message(role="assistant", content=tuple(blocks))


def _decode_text(item: dict[str, Any], provider: str) -> Iterator[Block]:
    text = ""
    parts: list[JsonValue] = []
    own: dict[str, JsonValue] = {}
    if phase := item.get("phase"):
        # Whether it is said on the way or at the end: models that say so want to read it again.
        own["phase"] = phase
    refusals: list[str] = []
    others: list[JsonValue] = []
    for part in item.get("content") or ():
        if part.get("refusal"):
            refusals.append(clean(part["refusal"]))
            continue
        if "text" not in part:
            others.append(clean(part))
            continue
        words = clean(part.get("text") or "")
        text += words
        parts.append({"length": len(words)})
        if annotations := part.get("annotations"):
            parts[-1] = {"length": len(words), "citations": clean(annotations)}
            own["parts"] = parts
    if text:
        yield TextBlock(text=text)
        if own:
            yield ProviderBlock(provider=provider, data={"type": CITED, "parts": parts, **own})
    yield from (RefusalBlock(text=refusal) for refusal in refusals)
    yield from (ProviderBlock(provider=provider, data={"type": _OTHER, "part": part}) for part in others)


def _decode_picture(item: dict[str, Any], provider: str) -> Iterator[Block]:
    yield ImageBlock(data=item["result"], media_type=f"image/{item.get('output_format') or 'png'}")
    # It goes back together with the picture, which is kept once.
    rest = {name: value for name, value in item.items() if name != "result"}
    yield ProviderBlock(provider=provider, data=clean(rest))


def _decode_reasoning(item: dict[str, Any], provider: str) -> ReasoningBlock:
    # Open models give the thinking itself; what OpenAI's give is a summary of it.
    summary: list[dict[str, Any]] = item.get("summary") or []
    texts = [part.get("text") or "" for part in summary or item.get("content") or ()]
    return ReasoningBlock(
        id=clean(item.get("id") or ""),
        summary=tuple(clean(text) for text in texts if text),
        in_words=not summary and any(texts),
        encrypted_content=_clean_or_none(item.get("encrypted_content")),
        provider=provider,
    )


def _clean_or_none(text: str | None) -> str | None:
    return None if text is None else clean(text)


def decode_response_usage(usage: dict[str, Any]) -> Usage:
    """Read what a reply used."""
    usage = counted(usage)
    read: dict[str, Any] = usage.get("input_tokens_details") or {}
    written_details: dict[str, Any] = usage.get("output_tokens_details") or {}
    return Usage(
        requests=1,
        input_tokens=usage.get("input_tokens") or 0,
        output_tokens=usage.get("output_tokens") or 0,
        cache_read_tokens=read.get("cached_tokens") or 0,
        cache_write_tokens=read.get("cache_write_tokens") or 0,
        reasoning_tokens=written_details.get("reasoning_tokens") or 0,
    )
