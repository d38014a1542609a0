"""Choose a model for each call."""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

import inspect
import random
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Annotated, Any, Literal, Self, TypeAlias, cast

from pydantic import Field, JsonValue

from agentcore._value import Value
from agentcore.llm.model import (
    DeltaStream,
    Features,
    Model,
    common_features,
    describe_unrecorded,
    model_features,
    record_model,
)
from agentcore.llm.reply import Reply
from agentcore.llm.wrapper import ModelRequest, RequestModel

Selector: TypeAlias = Callable[[ModelRequest], str | Awaitable[str]]
"""Returns the key of the model to ask; may be async."""


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


class RouterLLM(RequestModel):
    """Models by key, and a function that chooses one for each call. A key without a model raises `LookupError`.

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

    async def _complete(self, request: ModelRequest) -> Reply:
        return await request.complete(await self._choose(request))

    @asynccontextmanager
    async def _stream(self, request: ModelRequest) -> AsyncGenerator[DeltaStream]:
        async with request.stream(await self._choose(request)) as deltas:
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

    async def _choose(self, request: ModelRequest) -> Model:
        key = self.select(request)
        if inspect.isawaitable(key):
            key = await key
        if key not in self.models:
            there = ", ".join(map(repr, self.models))
            raise LookupError(f"The selector chose {key!r}, and there is no such model. The keys there are: {there}.")
        return self.models[key]
