"""How large a request is, before any provider has counted it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from agentcore.messages import (
    AudioBlock,
    Block,
    DocumentBlock,
    ImageBlock,
    Message,
    ReasoningBlock,
    RefusalBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSchema,
)

_CHARACTERS_PER_TOKEN: Final = 4
_IMAGE_TOKENS: Final = 1_500
"""About what a picture of a screen costs; its bytes say nothing of it."""
_PAGE_TOKENS: Final = 2_000
_PAGE_CHARACTERS: Final = 80_000
"""Of base64 text, where the pages are not counted of a document: words take less, and scans more."""
_MOST_PAGES: Final = 100
"""Scans are large; a request that seems larger than any model reads is of no use."""
_UNSEEN_PAGES: Final = 10
"""Of a document that only the provider has seen."""
_MESSAGE_TOKENS: Final = 4


def estimate_tokens(messages: Sequence[Message], tools: Sequence[ToolSchema] = ()) -> int:
    """Estimate how many tokens a model will read: four characters are one, a picture is 1,500, a page of a PDF 2,000.

    Good to a third or so for English and for code; other scripts take more. The pages of a PDF are guessed by its size.
    What was really read is in `Reply.usage`.
    """
    characters = sum(len(tool.description) + len(json.dumps(tool.parameters)) for tool in tools)
    media = 0
    for message in messages:
        for block in message.content:
            more, tokens = _size(block)
            characters += more
            media += tokens
    return -(-characters // _CHARACTERS_PER_TOKEN) + media + len(messages) * _MESSAGE_TOKENS


def _size(block: Block) -> tuple[int, int]:
    """Return a block's characters, and the tokens of its pictures and documents."""
    match block:
        case TextBlock() | ThinkingBlock() | RefusalBlock():
            return len(block.text), 0
        case AudioBlock():
            return len(block.transcript), 0  # its words are what goes back
        case ImageBlock():
            return 0, _IMAGE_TOKENS
        case DocumentBlock():
            pages = _UNSEEN_PAGES if block.data is None else -(-len(block.data) // _PAGE_CHARACTERS)
            return 0, min(pages, _MOST_PAGES) * _PAGE_TOKENS
        case ToolCallBlock():
            written = block.arguments if isinstance(block.arguments, str) else json.dumps(block.arguments)
            return len(block.name) + len(written), 0
        case ToolResultBlock():
            return len(block.text), sum(_size(part)[1] for part in block.content)
        case ReasoningBlock():
            return sum(map(len, block.summary)) + len(block.encrypted_content or ""), 0
        case _:
            return 0, 0
