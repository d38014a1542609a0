"""Choosing a model for each call."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import Any, Self, cast

from pydantic import JsonValue

from agentcore.llm.features import Features, common_features
from agentcore.llm.model import CallContext, DeltaStream, Model, describe_unrecorded, model_features, record_model
from agentcore.llm.reply import Reply
from agentcore.llm.selectors import KnownSelector, ModelRequest, Selector, restore_selector
from agentcore.messages import Message, ToolSchema

__all__ = ["RouterLLM"]


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

    async def get_features(self) -> Features | None:
        """Return what can be asked of it: what the selector sends to a model that takes it, else what all of them can do."""
        features = {key: await model_features(model) for key, model in self.models.items()}
        common = common_features(list(features.values()))
        return self.select.improve(common, features) if isinstance(self.select, KnownSelector) else common

    def record(self) -> dict[str, JsonValue] | None:
        """Write down the models, and the selector where it is one of ours."""
        models = {key: record_model(model) for key, model in self.models.items()}
        if None in models.values() or not isinstance(self.select, KnownSelector):
            return None
        return {
            "kind": "router",
            "models": cast("dict[str, JsonValue]", models),
            "select": self.select.model_dump(mode="json"),
        }

    def describe_unrecorded(self) -> str:
        """Name what can't be written down: a model, or a selector of the program's own."""
        unrecorded = [describe_unrecorded(model) for model in self.models.values() if record_model(model) is None]
        own = [] if isinstance(self.select, KnownSelector) else [f"the selector of RouterLLM {self.name!r}"]
        return ", ".join(unrecorded + own)

    @classmethod
    def from_record(cls, recorded: Mapping[str, Any], restore: Callable[[Mapping[str, Any]], Model]) -> Self:
        """Make it again of what `record` gave."""
        models = {key: restore(model) for key, model in recorded["models"].items()}
        return cls(models, restore_selector(recorded["select"]))

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
