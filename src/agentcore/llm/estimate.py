"""How large a request is, before any provider has counted it."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from agentcore.messages import (
    Block,
    ImageBlock,
    Message,
    ReasoningBlock,
    TextBlock,
    ThinkingBlock,
    ToolCallBlock,
    ToolResultBlock,
    ToolSchema,
)

__all__ = ["estimate_tokens"]

_CHARACTERS_PER_TOKEN: Final = 4
_IMAGE_TOKENS: Final = 1_500
"""About what a picture of a screen costs; its bytes say nothing of it."""
_MESSAGE_TOKENS: Final = 4


def estimate_tokens(messages: Sequence[Message], tools: Sequence[ToolSchema] = ()) -> int:
    """Say about how many tokens a model will read: four characters are one, a picture is 1,500.

    Good to a third or so for English and for code; other scripts take more. What was really read is in `Reply.usage`.
    """
    characters = sum(len(tool.description) + len(json.dumps(tool.parameters)) for tool in tools)
    images = 0
    for message in messages:
        for block in message.content:
            more, pictures = _size(block)
            characters += more
            images += pictures
    return -(-characters // _CHARACTERS_PER_TOKEN) + images * _IMAGE_TOKENS + len(messages) * _MESSAGE_TOKENS


def _size(block: Block) -> tuple[int, int]:
    """Give a block's characters and pictures."""
    match block:
        case TextBlock() | ThinkingBlock():
            return len(block.text), 0
        case ImageBlock():
            return 0, 1
        case ToolCallBlock():
            written = block.arguments if isinstance(block.arguments, str) else json.dumps(block.arguments)
            return len(block.name) + len(written), 0
        case ToolResultBlock():
            return len(block.text), sum(isinstance(part, ImageBlock) for part in block.content)
        case ReasoningBlock():
            return sum(map(len, block.summary)) + len(block.encrypted_content or ""), 0
        case _:
            return 0, 0
