"""A look at the pictures and documents of a request before it is made.

What is sure to be refused is refused here, in plain words. What only decoding would tell (how many pages a document
has, how large a picture is on the screen) is left to the provider.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from operator import is_
from typing import Any

from agentcore.errors import BadRequest
from agentcore.llm.caches import IdentityCache
from agentcore.llm.model import Features
from agentcore.llm.settings import LLMSettings
from agentcore.messages import DocumentBlock, ImageBlock, Message, TextBlock, ToolResultBlock

_MIB = 1024 * 1024
_BASE64 = 4 / 3
"""Characters per byte."""


@dataclass(frozen=True, slots=True)
class _Limits:
    """Characters of base64 text, which is how media are sent; and the kinds of pictures that are taken."""

    picture: int
    all: int
    """Of a document, and of everything together."""
    kinds: frozenset[str]


_USUAL = frozenset({"image/gif", "image/jpeg", "image/png", "image/webp"})
_ANYWHERE = _USUAL | {"application/pdf", "image/bmp", "image/heic", "image/heif", "image/tiff"}
"""Media types that at least one provider accepts."""
_OPENAI = _Limits(picture=int(20 * _MIB * _BASE64), all=int(50 * _MIB * _BASE64), kinds=_USUAL)
_LIMITS = {
    # It measures the text itself, and the whole request.
    "anthropic": _Limits(picture=5 * _MIB, all=32 * _MIB, kinds=_USUAL),
    "azure": _OPENAI,
    # ai.google.dev/gemini-api/docs/image-understanding and .../file-input-methods
    "gemini": _Limits(
        picture=100 * _MIB,
        all=100 * _MIB,
        kinds=frozenset({"image/heic", "image/heif", "image/jpeg", "image/png", "image/webp"}),
    ),
    "openai": _OPENAI,
}
_PDF = "application/pdf"


def check_media(messages: Sequence[Message], settings: LLMSettings, features: Features) -> None:
    """Refuse pictures and documents that the model can't take. What is unknown of a model passes.

    It looks at no word and decodes nothing, so that it may be asked before each request of a long history.

    Raises:
        BadRequest: It names the picture or the document, by the number of its message, and what to do.
    """
    # A server of one's own that speaks as OpenAI's does has limits of its own.
    limits = _LIMITS.get(settings.provider) if settings.base_url is None else None
    total = 0
    for number, block in _media(messages):
        if isinstance(block, ImageBlock):
            what, problem = "picture", _picture_problem(block, settings, features, limits)
        else:
            what = f"document {block.name!r}" if block.name else "document"
            problem = _document_problem(block, settings, features, limits)
        if problem is not None:
            raise BadRequest(f"{settings.model}: the {what} in message {number} {problem}", model=settings.model)
        total += len(block.data or "")
    if limits is not None and total > limits.all:
        raise BadRequest(
            f"{settings.model}: the pictures and documents of this request are too large together: {_shown(total)} as "
            f"base64 text, and {settings.provider} takes {_shown(limits.all)}. Leave some out.",
            model=settings.model,
        )


def _picture_problem(
    image: ImageBlock, settings: LLMSettings, features: Features, limits: _Limits | None
) -> str | None:
    if features.vision is False:
        return (
            "can't be sent: this model takes no pictures. Choose one that does, leave the picture out, or, if this one "
            "does take them, say so: LLM(features={'vision': True})."
        )
    if image.data is None:
        return None if image.url else _NOTHING
    kinds = limits.kinds if limits is not None else _ANYWHERE
    if image.media_type not in kinds and (limits is not None or settings.base_url is None):
        return f"is {image.media_type!r}, which can't be sent. Convert it to one of: {', '.join(sorted(kinds))}."
    if limits is not None and len(image.data) > limits.picture:
        return f"{_too_large(image.data, settings, limits.picture)}. Make it smaller."
    return None


def _document_problem(
    document: DocumentBlock, settings: LLMSettings, features: Features, limits: _Limits | None
) -> str | None:
    if features.pdf is False:
        return (
            "can't be sent: this model takes no PDF. Convert it to text or to pictures, choose a model that takes it, "
            "or, if this one does, say so: LLM(features={'pdf': True})."
        )
    chat = limits is _OPENAI and _speaks_chat(settings, features)
    if document.data is None:
        if not document.url:
            return _NOTHING
        if chat and not document.url.startswith("data:"):
            return (
                "is given by its address, which the Chat Completions interface does not take. Give its data (`read_media` "
                "reads a file), or take the other interface: LLM(api_mode='responses')."
            )
        return None
    # Others take some more, each its own; what a provider's own interface does not take is known.
    if document.media_type != _PDF and (chat or settings.provider == "anthropic") and limits is not None:
        return (
            f"is {document.media_type!r}, which can't be sent. Convert it to {_PDF}, or put its words into the message."
        )
    if limits is not None and len(document.data) > limits.all:
        return f"{_too_large(document.data, settings, limits.all)} in a request. Split it, or put its words into the message."
    return None


def without_unseen(messages: Sequence[Message], features: Features) -> Sequence[Message]:
    """Put words in the place of media that the model is known not to take, where they are not sent now.

    They may be of a time when another model listened, or a tool's: a conversation has to go on with them. What the last
    message brings is left for `check_media`, which tells its sender.
    """
    if features.vision is not False and features.pdf is not False:
        return messages
    kept = _in_words.get((features.vision is False, features.pdf is False))
    if kept is None:
        blind, paperless = features.vision is False, features.pdf is False
        kept = IdentityCache[Message, Message](partial(_say, pictures=blind, documents=paperless))
        _in_words[blind, paperless] = kept
    last = len(messages) - 1
    return [
        message if position == last and message.role == "user" else kept(message)
        for position, message in enumerate(messages)
    ]


_in_words: dict[tuple[bool, bool], IdentityCache[Message, Message]] = {}
"""Messages without their media, as long as those with them live: the same message always gives the same one."""


def _say(message: Message, *, pictures: bool, documents: bool) -> Message:
    def say(block: Any) -> Any:
        if pictures and isinstance(block, ImageBlock):
            return TextBlock(text="(Here is a picture, which this model can't see.)")
        if documents and isinstance(block, DocumentBlock):
            return TextBlock(text=f"(Here is the document {block.name or ''!r}, which this model can't read.)")
        if isinstance(block, ToolResultBlock) and any(say(part) is not part for part in block.content):
            return block.model_copy(update={"content": tuple(map(say, block.content))})
        return block

    content = tuple(map(say, message.content))
    same = all(map(is_, content, message.content))
    return message if same else message.model_copy(update={"content": content})


_NOTHING = "has neither `data` nor `url`. Give one of them."


def _speaks_chat(settings: LLMSettings, features: Features) -> bool:
    """Return whether OpenAI is certainly asked by its older interface."""
    if settings.api_mode == "auto":
        return features.mode != "responses" and not features.reasoning
    return settings.api_mode == "chat"


def _media(messages: Sequence[Message]) -> Iterator[tuple[int, ImageBlock | DocumentBlock]]:
    """Return the pictures and documents, each with the number of its message, from 1."""
    for number, message in enumerate(messages, 1):
        if message.role == "user":
            for block in message.content:
                if isinstance(block, ImageBlock | DocumentBlock):
                    yield number, block
        elif message.role == "tool":
            for block in message.content:
                # One block of words is what nearly all tools answer with.
                if isinstance(block, ToolResultBlock):
                    for part in block.content:
                        if isinstance(part, ImageBlock | DocumentBlock):
                            yield number, part


def _too_large(data: str, settings: LLMSettings, limit: int) -> str:
    return f"is too large: {_shown(len(data))} as base64 text, and {settings.provider} takes {_shown(limit)}"


def _shown(size: int) -> str:
    return f"{size / _MIB:.1f} MiB"
