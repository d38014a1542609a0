"""Which model of a router is asked: by what the request holds, by its length, by lot, or by a function of yours."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

import random
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypeAlias

from pydantic import Field

from agentcore._value import Value
from agentcore.llm.estimate import estimate_tokens
from agentcore.llm.features import Features
from agentcore.llm.model import CallContext
from agentcore.messages import DocumentBlock, ImageBlock, Message, ToolResultBlock, ToolSchema

__all__ = ["KnownSelector", "ModelRequest", "Selector", "at_random", "by_length", "by_media", "restore_selector"]


class ModelRequest(NamedTuple):
    """What a selector chooses by: what the model is asked."""

    messages: Sequence[Message]
    tools: Sequence[ToolSchema] = ()
    context: CallContext | None = None

    @property
    def estimated_tokens(self) -> int:
        """About how many tokens the model would read."""
        return estimate_tokens(self.messages, self.tools)

    @property
    def has_images(self) -> bool:
        """Whether there is a picture in it, sent by a person or shown by a tool."""
        return self._has(ImageBlock)

    @property
    def has_documents(self) -> bool:
        """Whether there is a document in it, sent by a person or shown by a tool."""
        return self._has(DocumentBlock)

    def _has(self, kind: type[ImageBlock | DocumentBlock]) -> bool:
        blocks = [block for message in self.messages for block in message.content]
        results = [block for block in blocks if isinstance(block, ToolResultBlock)]
        return any(isinstance(block, kind) for block in [*blocks, *(b for r in results for b in r.content)])


Selector: TypeAlias = Callable[[ModelRequest], str | Awaitable[str]]
"""Gives the key of the model to ask; may be async."""


class KnownSelector(Value):
    """A selector that a log can hold, so that a router with it is made again."""

    def __call__(self, request: ModelRequest) -> str:
        """Choose the key of a model."""
        raise NotImplementedError

    def improve(self, common: Features | None, features: Mapping[str, Features | None]) -> Features | None:  # noqa: ARG002 others choose by them
        """Return what the router can do, of what all models can and what each can."""
        return common


class _ByMedia(KnownSelector):
    by: Literal["media"] = "media"
    text: str
    multimodal: str

    def __call__(self, request: ModelRequest) -> str:
        return self.multimodal if request.has_images or request.has_documents else self.text

    def improve(self, common: Features | None, features: Mapping[str, Features | None]) -> Features | None:
        looks = features.get(self.multimodal)
        if looks is None:
            return common
        return (common or Features()).model_copy(update={"vision": looks.vision, "pdf": looks.pdf})


class _ByLength(KnownSelector):
    by: Literal["length"] = "length"
    short: str
    long: str
    tokens: int

    def __call__(self, request: ModelRequest) -> str:
        return self.short if request.estimated_tokens <= self.tokens else self.long

    def improve(self, common: Features | None, features: Mapping[str, Features | None]) -> Features | None:
        reads = features.get(self.long)
        if reads is None:
            return common
        return (common or Features()).model_copy(update={"context_window": reads.context_window})


class _AtRandom(KnownSelector):
    by: Literal["random"] = "random"
    keys: Annotated[tuple[str, ...], Field(min_length=1)]
    seed: str = ""

    def __call__(self, request: ModelRequest) -> str:
        conversation = None if request.context is None else request.context.conversation_id
        # A text seeds by its digest, which is the same in every process.
        draw = random.random() if conversation is None else random.Random(f"{self.seed}/{conversation}").random()  # noqa: S311 - deals out load; nothing depends on it
        return self.keys[int(draw * len(self.keys))]


_KINDS: dict[str, type[KnownSelector]] = {"media": _ByMedia, "length": _ByLength, "random": _AtRandom}


def restore_selector(recorded: Mapping[str, Any]) -> KnownSelector:
    """Make a selector again of what was recorded.

    Raises:
        ValueError: it describes none.
    """
    kind = _KINDS.get(recorded["by"])
    if kind is None:
        raise ValueError(f"A router's selector of the kind {recorded['by']!r} is not known here.")
    return kind.model_validate(recorded)


def by_media(*, text: str, multimodal: str) -> Selector:
    """Choose `multimodal` where there is a picture or a document in the request, else `text`."""
    return _ByMedia(text=text, multimodal=multimodal)


def by_length(*, short: str, long: str, tokens: int) -> Selector:
    """Choose `short` while the request is estimated at no more than so many tokens, then `long`."""
    return _ByLength(short=short, long=long, tokens=tokens)


def at_random(*keys: str, seed: str = "") -> Selector:
    """Choose one of the keys by lot: the same one throughout a conversation, and again when it is resumed.

    Args:
        keys: A key that is given twice is chosen twice as often.
        seed: Another one deals the conversations out otherwise.

    Raises:
        ValueError: there is no key.
    """
    if not keys:
        raise ValueError("at_random() has nothing to choose from: give it keys.")
    return _AtRandom(keys=keys, seed=seed)
