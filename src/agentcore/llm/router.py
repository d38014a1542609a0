"""Choosing a model for each call."""

from __future__ import annotations

import inspect
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import NamedTuple

from agentcore.llm.estimate import estimate_tokens
from agentcore.llm.model import CallContext, DeltaStream, Model
from agentcore.llm.reply import Reply
from agentcore.messages import DocumentBlock, ImageBlock, Message, ToolResultBlock, ToolSchema

__all__ = ["ModelRequest", "RouterLLM", "Selector", "at_random", "by_length", "by_media"]


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


Selector = Callable[[ModelRequest], str | Awaitable[str]]
"""Gives the key of the model to ask; may be async."""


class RouterLLM:
    """Models by key, and a function that chooses one for each call.

    Providers keep what they read of a conversation for its next call: a selector that goes back and forth within one
    pays for reading it again.
    """

    def __init__(self, models: Mapping[str, Model], select: Selector) -> None:
        """Put models behind a selector.

        Args:
            models: By the key that `select` gives.
            select: `by_media`, `by_length`, `at_random`, or a function of your own.

        Raises:
            ValueError: there is no model.
        """
        if not models:
            raise ValueError("RouterLLM has no models to choose from: give it one per key.")
        self.models = dict(models)
        """By key."""
        self.select = select

    def __repr__(self) -> str:
        return f"RouterLLM({self.models!r})"

    @property
    def name(self) -> str:
        """The names of the models, in order. `Reply.model` says which of them answered."""
        return " | ".join(model.name for model in self.models.values())

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, context: CallContext | None = None
    ) -> Reply:
        """Answer, all at once.

        Raises:
            LookupError: the selector gave a key that there is no model for.
        """
        model = await self._chosen(messages, tools, context)
        return await model.complete(messages, tools, context=context)

    @asynccontextmanager
    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, context: CallContext | None = None
    ) -> AsyncGenerator[DeltaStream]:
        """Answer, piece by piece.

        Raises:
            LookupError: the selector gave a key that there is no model for.
        """
        model = await self._chosen(messages, tools, context)
        async with model.stream(messages, tools, context=context) as deltas:
            yield deltas

    async def _chosen(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema], context: CallContext | None
    ) -> Model:
        key = self.select(ModelRequest(messages, tools, context))
        if inspect.isawaitable(key):
            key = await key
        if key not in self.models:
            there = ", ".join(map(repr, self.models))
            raise LookupError(f"The selector chose {key!r}, and there is no such model. The keys there are: {there}.")
        return self.models[key]


def by_media(*, text: str, multimodal: str) -> Selector:
    """Choose `multimodal` where there is a picture or a document in the request, else `text`."""
    return lambda request: multimodal if request.has_images or request.has_documents else text


def by_length(*, short: str, long: str, tokens: int) -> Selector:
    """Choose `short` while the request is estimated at no more than so many tokens, then `long`."""
    return lambda request: short if request.estimated_tokens <= tokens else long


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

    def select(request: ModelRequest) -> str:
        conversation = None if request.context is None else request.context.conversation_id
        # A text seeds by its digest, which is the same in every process.
        draw = random.random() if conversation is None else random.Random(f"{seed}/{conversation}").random()  # noqa: S311 - deals out load; nothing depends on it
        return keys[int(draw * len(keys))]

    return select
