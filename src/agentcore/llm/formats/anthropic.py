"""Messages as Anthropic's Messages interface has them: turns of a user and an assistant, each a list of blocks.

Below: `agentcore.messages`. The way back, from what the provider answers, is in `anthropic_reply`. A message is written
without looking at others; `turns` puts the written ones together, whatever they are written as.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Generic, Literal, TypeVar, cast

from pydantic import JsonValue

from agentcore.llm.formats.chat import arguments_object
from agentcore.messages import (
    AudioBlock,
    Block,
    DocumentBlock,
    ImageBlock,
    Message,
    ProviderBlock,
    RedactedThinkingBlock,
    RefusalBlock,
    ResultBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSchema,
)
from agentcore.messages.message import CITED

T = TypeVar("T")

CONTAINER = "container"
"""The type of a block that names the container in which code ran: it is no part of what was said."""

_NOT_IN_NAMES = re.compile(r"[^a-zA-Z0-9_-]")
"""The provider refuses these in ids and names of calls; other providers' ids have them."""
_LONGEST_NAME = 128
_LONGEST_TITLE = 500
_EMBEDDED = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Written(Generic[T]):
    """One message, written."""

    role: Literal["system", "user", "assistant"]
    blocks: tuple[T, ...]
    """The content of the message, except for results of calls."""
    results: tuple[tuple[str, T], ...] = ()
    """The answers to calls, each with the id of its call."""
    calls: tuple[str, ...] = ()
    """The ids of the calls, in order."""


@dataclass(slots=True)
class Turn(Generic[T]):
    """The content of one role, up to the next turn."""

    role: Literal["user", "assistant"]
    blocks: list[T]


def encode_tool(tool: ToolSchema) -> dict[str, JsonValue]:
    """Encode a tool."""
    return {"name": tool.name, "description": tool.description, "input_schema": tool.parameters}


def encode_message(message: Message, provider: str) -> Written[dict[str, JsonValue]]:
    """Write a message for a provider; what only another one can read is left out."""
    if message.role == "assistant":
        calls = tuple(_plain(call.id) for call in message.tool_calls)
        return Written("assistant", tuple(_encode_said(message.content, provider)), calls=calls)
    blocks = tuple(_encode_given(message.content, provider))
    results = [block for block in message.content if isinstance(block, ToolResultBlock)]
    written = tuple((_plain(result.call_id), _encode_result(result)) for result in results)
    return Written("system" if message.role == "system" else "user", blocks, written)


def turns(written: Iterable[Written[T]]) -> tuple[list[T], list[Turn[T]]]:
    """Put messages together: what the system says first of all, and the turns of both sides.

    A turn of the user begins with the answers to the calls before it, in their order: the provider insists.
    """
    system: list[T] = []
    conversation_turns: list[Turn[T]] = []
    last: Turn[T] | None = None
    results: list[tuple[str, T]] = []
    calls: tuple[str, ...] = ()
    for message in written:
        role = message.role
        if role == "system":
            if last is None:
                system.extend(message.blocks)
                continue
            # What it says later stays where it was said: in front of all, it would change what the provider has kept.
            role = "user"
        if not message.blocks and not message.results:
            continue
        if last is None or last.role != role:
            if last is not None and results:
                last.blocks[:0] = _in_order(results, calls)
                results = []
            last = Turn(role, [*message.blocks])
            conversation_turns.append(last)
            if role == "assistant":
                calls = message.calls
        else:
            last.blocks += message.blocks
            calls += message.calls
        if message.results:
            results += message.results
    if last is not None and results:
        last.blocks[:0] = _in_order(results, calls)
    return system, conversation_turns


def _in_order(results: list[tuple[str, T]], calls: tuple[str, ...]) -> list[T]:
    if len(results) > 1:
        order = {call_id: position for position, call_id in reversed(list(enumerate(calls)))}
        results.sort(key=lambda result: order.get(result[0], len(order)))
    return [result for _, result in results]


def _encode_said(content: tuple[Block, ...], provider: str) -> Iterator[dict[str, JsonValue]]:
    for position, block in enumerate(content):
        if isinstance(block, TextBlock):
            after = content[position + 1] if position + 1 < len(content) else None
            yield from _encode_text(block, after, provider)
        elif isinstance(block, RefusalBlock | AudioBlock):
            words = block.text if isinstance(block, RefusalBlock) else block.transcript
            yield from _encode_shown(TextBlock(text=words))
        elif isinstance(block, ToolCallBlock):
            name = _plain(block.name)[:_LONGEST_NAME]
            yield {"type": "tool_use", "id": _plain(block.id), "name": name, "input": arguments_object(block)}
        elif isinstance(block, ThinkingBlock) and block.provider in {None, provider}:
            # What is not signed, the provider does not take for its own.
            if block.signature is not None:
                yield {"type": "thinking", "thinking": block.text, "signature": block.signature}
        elif isinstance(block, RedactedThinkingBlock) and block.provider in {None, provider}:
            yield {"type": "redacted_thinking", "data": block.data}
        elif isinstance(block, ProviderBlock):
            yield from _encode_own(block, provider)


def last_container(messages: Sequence[Message], provider: str) -> str | None:
    """Return the id of the container in which code ran last, unless it has expired."""
    for message in reversed(messages):
        for block in message.content if message.role == "assistant" else ():
            if isinstance(block, ProviderBlock) and block.provider == provider and _type_of(block) == CONTAINER:
                data = cast("dict[str, JsonValue]", block.data)
                named = data.get("id")
                return named if isinstance(named, str) and not _has_passed(data.get("expires_at")) else None
    return None


def _has_passed(moment: JsonValue) -> bool:
    try:
        return datetime.fromisoformat(str(moment)) <= datetime.now(UTC)
    except (ValueError, TypeError):
        return False


def _encode_given(content: tuple[Block, ...], provider: str) -> Iterator[dict[str, JsonValue]]:
    for block in content:
        if isinstance(block, ResultBlock):
            yield from _encode_shown(block)
        elif isinstance(block, ProviderBlock):
            yield from _encode_own(block, provider)


def _encode_text(block: TextBlock, after: Block | None, provider: str) -> Iterator[dict[str, JsonValue]]:
    if isinstance(after, ProviderBlock) and after.provider == provider and _type_of(after) == CITED:
        parts = cast("list[dict[str, JsonValue]]", cast("dict[str, JsonValue]", after.data)["parts"])
        # A text that has another length now is another text: nothing says what was cited for it.
        if sum(cast("int", part["length"]) for part in parts) == len(block.text):
            yield from _cut(block.text, parts)
            return
    yield from _encode_shown(block)


def _cut(text: str, parts: list[dict[str, JsonValue]]) -> Iterator[dict[str, JsonValue]]:
    start = 0
    for part in parts:
        end = start + cast("int", part["length"])
        for piece in _encode_shown(TextBlock(text=text[start:end])):
            yield {**piece, "citations": part["citations"]} if part.get("citations") else piece
        start = end


def _encode_own(block: ProviderBlock, provider: str) -> Iterator[dict[str, JsonValue]]:
    # Without a type, it is a part of another interface of the same provider.
    if block.provider == provider and _type_of(block) not in {None, CITED, CONTAINER}:
        yield cast("dict[str, JsonValue]", block.data)


def _type_of(block: ProviderBlock) -> str | None:
    kind = block.data.get("type") if isinstance(block.data, dict) else None
    return kind if isinstance(kind, str) else None


def _encode_result(result: ToolResultBlock) -> dict[str, JsonValue]:
    content: list[JsonValue] = [part for block in result.content for part in _encode_shown(block)]
    encoded: dict[str, JsonValue] = {"type": "tool_result", "tool_use_id": _plain(result.call_id)}
    if result.is_error:
        encoded["is_error"] = True
        # An error without words is refused.
        encoded["content"] = content or "The tool failed and said nothing."
    elif content:
        encoded["content"] = content
    return encoded


def _encode_shown(block: ResultBlock) -> Iterator[dict[str, JsonValue]]:
    if isinstance(block, ImageBlock):
        yield {"type": "image", "source": _encode_source(block)}
    elif isinstance(block, DocumentBlock):
        document: dict[str, JsonValue] = {"type": "document", "source": _encode_source(block)}
        yield {**document, "title": block.name[:_LONGEST_TITLE]} if block.name else document
    elif block.text and not block.text.isspace():
        # A text that says nothing is refused.
        yield {"type": "text", "text": block.text}


def _encode_source(media: ImageBlock | DocumentBlock) -> dict[str, JsonValue]:
    if media.data is not None:
        return {"type": "base64", "media_type": media.media_type, "data": media.data}
    if embedded := _EMBEDDED.fullmatch(media.url or ""):
        return {"type": "base64", "media_type": embedded[1], "data": embedded[2]}
    return {"type": "url", "url": media.url}


def _plain(name: str) -> str:
    return _NOT_IN_NAMES.sub("_", name) or "_"
