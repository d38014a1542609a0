"""Messages as Google's generateContent interface has them: contents of a user and a model, each a list of parts.

Below: `agentcore.messages`. The way back, from what the provider answers, is in `gemini_reply`. What only the provider can
read stands in blocks of its own, each with a type: `PART` is sent back as it came, `SIGNATURE` belongs to the block after
it, `SIGNED_TEXT` to the text before it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, Literal, cast

from pydantic import JsonValue

from agentcore.llm.formats.chat import arguments_object
from agentcore.messages import (
    AudioBlock,
    Block,
    DocumentBlock,
    ImageBlock,
    Message,
    ProviderBlock,
    RefusalBlock,
    ResultBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSchema,
)

Part = dict[str, JsonValue]

PART = "part"
"""The type of a block that holds a part as it came: code that was run, a search, a file."""
SIGNATURE = "signature"
"""The type of a block that holds the thought signature of the call, picture or recording after it."""
SIGNED_TEXT = "signed_text"
"""The type of a block that says how the text before it was cut into parts, and which of them are signed."""

_UNSIGNED = "skip_thought_signature_validator"
"""Stands for the signature of a call that another model made: https://ai.google.dev/gemini-api/docs/thought-signatures."""

_VERSION = re.compile(r"gemini-(\d+)(?:\.(\d+))?")
_EMBEDDED = re.compile(r"data:([^;,]+);base64,(.*)", re.DOTALL)
_KINDS = {
    "gif": "image/gif",
    "heic": "image/heic",
    "jpeg": "image/jpeg",
    "jpg": "image/jpeg",
    "png": "image/png",
    "webp": "image/webp",
}
"""The kind of a picture by the end of its address: the provider wants to know it beforehand."""


def version_of(model: str) -> tuple[int, int]:
    """Return the version in a model's name; (0, 0) where it says none."""
    found = _VERSION.search(model)
    return (int(found[1]), int(found[2] or 0)) if found else (0, 0)


def encode_declaration(tool: ToolSchema) -> Part:
    """Build the declaration of a tool."""
    return {"name": tool.name, "description": tool.description, "parametersJsonSchema": tool.parameters}


def system_parts(messages: Iterable[Message]) -> list[JsonValue]:
    """Build the parts of the system instruction."""
    return [{"text": message.text} for message in messages if message.text]


def run_start(messages: Sequence[Message]) -> int:
    """Return where the last run of messages begins that become contents together.

    What comes before it is written the same way whatever follows.
    """
    start = max(len(messages) - 1, 0)
    while start and (messages[start].role == "tool" or _side(messages[start]) == _side(messages[start - 1])):
        start -= 1
    return start


def encode_contents(messages: Sequence[Message], model: str, provider: str) -> list[JsonValue]:
    """Build the contents for messages; system messages among them become words of the user."""
    strict = version_of(model) >= (3, 0)
    contents: list[tuple[str, list[JsonValue]]] = []
    calls: list[str] = []
    results: list[ToolResultBlock] = []
    for message in messages:
        side = _side(message)
        if side == "results":
            results += [block for block in message.content if isinstance(block, ToolResultBlock)]
            continue
        if results:
            contents.append(("results", _encode_results(results, calls, nested=strict)))
            results = []
        if side == "model":
            parts = list(_encode_said(message.content, provider))
            if strict:
                _sign_first_call(parts)
            # Two replies in a row are one content, with the calls of both.
            in_a_row = bool(contents) and contents[-1][0] == "model"
            made = [call.id for call in message.tool_calls]
            calls = [*calls, *made] if in_a_row else made
        else:
            parts = [
                part for block in message.content if isinstance(block, ResultBlock) for part in _encode_shown(block)
            ]
        if not parts:
            continue
        if contents and contents[-1][0] == side:
            contents[-1][1].extend(parts)
        else:
            contents.append((side, cast("list[JsonValue]", parts)))
    if results:
        contents.append(("results", _encode_results(results, calls, nested=strict)))
    return [{"role": "model" if side == "model" else "user", "parts": parts} for side, parts in contents]


def _side(message: Message) -> Literal["model", "results", "user"]:
    return "model" if message.role == "assistant" else "results" if message.role == "tool" else "user"


def _encode_said(content: tuple[Block, ...], provider: str) -> Iterator[Part]:
    signature: JsonValue = None
    for position, block in enumerate(content):
        part: Part | None = None
        if isinstance(block, TextBlock):
            yield from _encode_text(block.text, _pieces(content[position + 1 :], provider))
        elif isinstance(block, RefusalBlock):
            part = {"text": block.text}
        elif isinstance(block, ThinkingBlock):
            if block.provider == provider:
                signed: Part = {} if block.signature is None else {"thoughtSignature": block.signature}
                yield {"text": block.text, "thought": True, **signed}
        elif isinstance(block, ToolCallBlock):
            part = {"functionCall": {"id": block.id, "name": block.name, "args": arguments_object(block)}}
        elif isinstance(block, ImageBlock | AudioBlock) and block.data is not None:
            part = {"inlineData": {"mimeType": block.media_type, "data": block.data}}
        elif isinstance(block, AudioBlock) and block.transcript:
            part = {"text": block.transcript}
        elif isinstance(block, ProviderBlock) and block.provider == provider and isinstance(block.data, dict):
            if block.data.get("type") == PART:
                yield cast("Part", block.data["part"])
            elif block.data.get("type") == SIGNATURE:
                signature = block.data["signature"]
                continue
        if part is not None:
            yield part if signature is None else {**part, "thoughtSignature": signature}
        signature = None


def _pieces(after: tuple[Block, ...], provider: str) -> list[dict[str, Any]]:
    """Return how a text was cut, by the provider's blocks behind it."""
    for block in after:
        if not isinstance(block, ProviderBlock) or block.provider != provider or not isinstance(block.data, dict):
            break
        if block.data.get("type") == SIGNED_TEXT:
            return cast("list[dict[str, Any]]", block.data["parts"])
    return []


def _encode_text(text: str, pieces: list[dict[str, Any]]) -> Iterator[Part]:
    # A text that has another length now is another text; its signatures still stand for what was thought.
    if sum(piece["length"] for piece in pieces) != len(text):
        pieces = [{"length": len(text)}, *({**piece, "length": 0} for piece in pieces if "signature" in piece)]
    start = 0
    for piece in pieces:
        end = start + piece["length"]
        signed: Part = {"thoughtSignature": piece["signature"]} if "signature" in piece else {}
        if end > start or signed:
            yield {"text": text[start:end], **signed}
        start = end


def _sign_first_call(parts: list[Part]) -> None:
    """Mark the first call, if nothing signs it: newer models refuse calls that seem to be theirs and are not signed."""
    for position, part in enumerate(parts):
        if "functionCall" in part:
            if "thoughtSignature" not in part:
                parts[position] = {**part, "thoughtSignature": _UNSIGNED}
            return


def _encode_results(results: list[ToolResultBlock], calls: list[str], *, nested: bool) -> list[JsonValue]:
    """Build the answers to calls, in their order. Pictures stand in the answer, or behind all where that is not known."""
    order = {call_id: position for position, call_id in reversed(list(enumerate(calls)))}
    parts: list[JsonValue] = []
    behind: list[JsonValue] = []
    for result in sorted(results, key=lambda result: order.get(result.call_id, len(order))):
        words = result.text
        media: list[JsonValue] = [
            part for block in result.content if not isinstance(block, TextBlock) for part in _encode_shown(block)
        ]
        response: Part = {"id": result.call_id, "name": result.name}
        if nested and media and all("inlineData" in cast("Part", part) for part in media):
            response["parts"] = media
        elif media:
            behind += media
            words = f"{words}\n(What else this tool shows follows.)".lstrip()
        response["response"] = {"error" if result.is_error else "output": words}
        parts.append({"functionResponse": response})
    return parts + behind


def _encode_shown(block: ResultBlock) -> Iterator[Part]:
    if isinstance(block, TextBlock):
        if block.text:
            yield {"text": block.text}
        return
    if block.data is not None:
        yield {"inlineData": {"mimeType": block.media_type, "data": block.data}}
    elif embedded := _EMBEDDED.fullmatch(block.url or ""):
        yield {"inlineData": {"mimeType": embedded[1], "data": embedded[2]}}
    else:
        end = (block.url or "").partition("?")[0].rpartition(".")[2].lower()
        kind = block.media_type if isinstance(block, DocumentBlock) else block.media_type or _KINDS.get(end)
        file: Part = {"fileUri": block.url}
        yield {"fileData": {**file, "mimeType": kind} if kind else file}
