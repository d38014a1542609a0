"""Going on with another model when one can't answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Final

from agentcore.errors import (
    AuthenticationError,
    ModelConnectionError,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    RateLimited,
)
from agentcore.llm.attempts import Attempts
from agentcore.llm.model import CallContext, DeltaStream, Model, RetryReport
from agentcore.llm.reply import Reply
from agentcore.messages import Message, ToolSchema

__all__ = ["MOVES_ON", "FallbackLLM"]

MOVES_ON: Final[tuple[type[ModelError], ...]] = (
    AuthenticationError,
    RateLimited,
    ModelTimeout,
    ModelUnavailable,
    ModelConnectionError,
)
"""The errors that are about a provider, and that another one need not have. What is about the messages stays with whoever
sent them: a conversation is condensed when it has grown too long, and a model that refuses it is told so."""


class FallbackLLM:
    """A model, and others that are asked the same, one after the other, when it can't answer.

    Each model's own retries come first; give those with successors few. A model that failed is asked again in the next
    call. `CallContext.on_retry` is told of each step on (`RetryReport.next_model`); when deltas were shown already, the
    next one is a `ResetDelta`. `Reply.model` says who answered. Where nobody did, the last error is raised, with the
    ones before it as its notes.
    """

    def __init__(self, primary: Model, *others: Model, on: Iterable[type[ModelError]] = MOVES_ON) -> None:
        """Put models in the order in which they are asked.

        Args:
            primary: Asked first.
            others: Asked when those before have failed.
            on: The errors after which the next one is asked; `(*MOVES_ON, ContentPolicy)` adds one.
        """
        self.models: tuple[Model, ...] = (primary, *others)
        """All of them, in order."""
        self.on = tuple(on)
        """The errors after which the next one is asked."""

    def __repr__(self) -> str:
        return f"FallbackLLM({', '.join(map(repr, self.models))})"

    @property
    def name(self) -> str:
        """The name of the first model."""
        return self.models[0].name

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, context: CallContext | None = None
    ) -> Reply:
        """Answer, all at once."""
        turns = _Turns(self, context)
        while True:
            try:
                return await turns.model.complete(messages, tools, context=context)
            except ModelError as error:
                await turns.move_on(error)

    @asynccontextmanager
    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, context: CallContext | None = None
    ) -> AsyncGenerator[DeltaStream]:
        """Answer, piece by piece."""
        turns = _Turns(self, context)

        async def open_next() -> AbstractAsyncContextManager[DeltaStream]:
            return turns.model.stream(messages, tools, context=context)

        async with Attempts(open_next, turns.move_on) as stream:
            yield stream


class _Turns:
    """Whose turn it is in one call, and what those before said."""

    def __init__(self, outer: FallbackLLM, context: CallContext | None) -> None:
        self._outer = outer
        self._context = context
        self._failed: list[tuple[Model, ModelError]] = []

    @property
    def model(self) -> Model:
        return self._outer.models[len(self._failed)]

    async def move_on(self, error: ModelError) -> None:
        """Give the turn to the next model, or raise the error where it is the last word."""
        last = len(self._failed) + 1 == len(self._outer.models)
        if last or not isinstance(error, self._outer.on):
            for model, earlier in self._failed:
                error.add_note(f"Asked before, {model.name!r}: {type(earlier).__name__}: {earlier}")
            raise error
        self._failed.append((self.model, error))
        if self._context is not None and self._context.on_retry is not None:
            await self._context.on_retry(
                RetryReport(len(self._failed), error, delay=0.0, next_model=self.model.name),
            )
