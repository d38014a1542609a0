"""A look at the pictures of a request before it is made: what is sure to be refused is refused here, in plain words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agentcore.errors import BadRequest
from agentcore.llm.features import Features
from agentcore.llm.settings import LLMSettings
from agentcore.messages import ImageBlock, Message, ToolResultBlock

__all__ = ["check_media"]

_MIB = 1024 * 1024
_BASE64 = 4 / 3
"""Characters per byte."""


@dataclass(frozen=True, slots=True)
class _Limits:
    """Characters of base64 text, which is how pictures are sent; and the kinds of pictures that are taken."""

    each: int
    all: int
    kinds: frozenset[str]


_USUAL = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
_ANYWHERE = _USUAL | {"application/pdf", "image/bmp", "image/heic", "image/heif", "image/tiff"}
"""What at least one provider takes."""
_OPENAI = _Limits(each=int(20 * _MIB * _BASE64), all=int(50 * _MIB * _BASE64), kinds=_USUAL)
_LIMITS = {
    # It measures the text itself, and the whole request.
    "anthropic": _Limits(each=5 * _MIB, all=32 * _MIB, kinds=_USUAL),
    "azure": _OPENAI,
    "openai": _OPENAI,
}


def check_media(messages: Sequence[Message], settings: LLMSettings, features: Features) -> None:
    """Refuse pictures that the model can't take. What nobody knows of a model passes.

    It looks at no word and decodes nothing, so that it may be asked before each request of a long history.

    Raises:
        BadRequest: It names the picture, by the number of its message, and what to do.
    """
    # A server of one's own that speaks as OpenAI's does has limits of its own.
    limits = _LIMITS.get(settings.provider) if settings.base_url is None else None
    kinds = limits.kinds if limits is not None else _ANYWHERE
    total = 0
    for number, image in _images(messages):
        where = f"{settings.model}: the picture in message {number}"
        if features.vision is False:
            raise BadRequest(
                f"{where} can't be sent: this model takes no pictures. Choose one that does, leave the picture out, or, "
                "if this one does take them, say so: LLM(features={'vision': True}).",
                model=settings.model,
            )
        if image.data is None:
            continue
        if image.media_type not in kinds and (limits is not None or settings.base_url is None):
            raise BadRequest(
                f"{where} is {image.media_type!r}, which can't be sent. Convert it to one of: {', '.join(sorted(kinds))}.",
                model=settings.model,
            )
        size = len(image.data)
        total += size
        if limits is not None and size > limits.each:
            raise BadRequest(
                f"{where} is too large: {_shown(size)} as base64 text, and {settings.provider} takes "
                f"{_shown(limits.each)}. Make it smaller.",
                model=settings.model,
            )
    if limits is not None and total > limits.all:
        raise BadRequest(
            f"{settings.model}: the pictures of this request are too large together: {_shown(total)} as base64 text, "
            f"and {settings.provider} takes {_shown(limits.all)}. Leave some out.",
            model=settings.model,
        )


def _images(messages: Sequence[Message]) -> Iterator[tuple[int, ImageBlock]]:
    """Give the pictures, each with the number of its message, from 1."""
    for number, message in enumerate(messages, 1):
        if message.role == "user":
            for block in message.content:
                if isinstance(block, ImageBlock):
                    yield number, block
        elif message.role == "tool":
            for block in message.content:
                # One block of words is what nearly all tools answer with.
                if isinstance(block, ToolResultBlock):
                    for part in block.content:
                        if isinstance(part, ImageBlock):
                            yield number, part


def _shown(size: int) -> str:
    return f"{size / _MIB:.1f} MiB"
