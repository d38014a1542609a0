"""Going on with another model when one can't answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, Final, Self, cast

from pydantic import JsonValue

from agentcore import errors
from agentcore._arguments import MODEL, check_arguments
from agentcore.errors import (
    AuthenticationError,
    ModelConnectionError,
    ModelError,
    ModelTimeout,
    ModelUnavailable,
    RateLimited,
)
from agentcore.llm.model import (
    CallContext,
    DeltaStream,
    Features,
    Model,
    RetryReport,
    common_features,
    describe_unrecorded,
    model_features,
    record_model,
)
from agentcore.llm.reply import Reply
from agentcore.llm.wrapper import FailoverStream, ModelRequest, RequestModel

FALLBACK_ERRORS: Final[tuple[type[ModelError], ...]] = (
    AuthenticationError,
    RateLimited,
    ModelTimeout,
    ModelUnavailable,
    ModelConnectionError,
)
"""Errors that concern one provider, so that another may answer. Errors that concern the messages are raised: the
conversation handles them."""


class FallbackLLM(RequestModel):
    """A model, and others that are asked the same, one after the other, when it can't answer.

    Each model's own retries come first; give those with successors few. A model that failed is asked again in the next
    call. `CallContext.on_retry` is called at each change of the model (`RetryReport.next_model`); when deltas were shown already, the
    next one is a `ResetDelta`. `Reply.model` is the model that answered. If none did, the last error is raised, with the
    ones before it as its notes.
    """

    def __init__(self, primary: Model, *others: Model, on: Iterable[type[ModelError]] = FALLBACK_ERRORS) -> None:
        """Put models in the order in which they are asked.

        Args:
            primary: Asked first.
            others: Asked when those before have failed.
            on: The errors after which the next one is asked; `(*FALLBACK_ERRORS, ContentPolicy)` adds one.
        """
        for model in (primary, *others):
            check_arguments({"model": MODEL}, model=model)
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

    async def _complete(self, request: ModelRequest) -> Reply:
        progress = _Fallback(self, request.context)
        while True:
            try:
                return await request.complete(progress.model)
            except ModelError as error:
                await progress.advance(error)

    @asynccontextmanager
    async def _stream(self, request: ModelRequest) -> AsyncGenerator[DeltaStream]:
        progress = _Fallback(self, request.context)

        async def open_next() -> AbstractAsyncContextManager[DeltaStream]:
            return request.stream(progress.model)

        async with FailoverStream(open_next, progress.advance) as stream:
            yield stream

    async def get_features(self) -> Features | None:
        """Return what all of the models can do."""
        return common_features([await model_features(model) for model in self.models])

    def record(self) -> dict[str, JsonValue] | None:
        """Write down the models, and the errors by name."""
        models = [record_model(model) for model in self.models]
        if None in models or self._own_errors():
            return None
        return {
            "kind": "fallback",
            "models": cast("list[JsonValue]", models),
            "on": [error.__name__ for error in self.on],
        }

    def describe_unrecorded(self) -> str:
        """Name what can't be written down: a model, or an error of the program's own."""
        unrecorded = [describe_unrecorded(model) for model in self.models if record_model(model) is None]
        own = [f"{error.__name__} in `on` of FallbackLLM {self.name!r}" for error in self._own_errors()]
        return ", ".join(unrecorded + own)

    def _own_errors(self) -> list[type[ModelError]]:
        return [error for error in self.on if getattr(errors, error.__name__, None) is not error]

    @classmethod
    def from_record(cls, recorded: Mapping[str, Any], restore: Callable[[Mapping[str, Any]], Model]) -> Self:
        """Make it again of what `record` gave."""
        on = [getattr(errors, name, None) for name in recorded["on"]]
        if not all(isinstance(error, type) and issubclass(error, ModelError) for error in on):
            raise ValueError(f"Not all of {recorded['on']!r} are errors of a model.")
        return cls(*map(restore, recorded["models"]), on=cast("list[type[ModelError]]", on))


class _Fallback:
    """Which model one call has come to, and the errors of those before."""

    def __init__(self, outer: FallbackLLM, context: CallContext | None) -> None:
        self._outer = outer
        self._context = context
        self._failed: list[tuple[Model, ModelError]] = []

    @property
    def model(self) -> Model:
        return self._outer.models[len(self._failed)]

    async def advance(self, error: ModelError) -> None:
        """Move on to the next model, or raise the error where it is final."""
        last = len(self._failed) + 1 == len(self._outer.models)
        if last or not isinstance(error, self._outer.on):
            for model, earlier in self._failed:
                error.add_note(f"Asked before, {model.name!r}: {type(earlier).__name__}: {earlier}")
            raise error
        self._failed.append((self.model, error))
        if self._context is not None and self._context.on_retry is not None:
            await self._context.on_retry(RetryReport(len(self._failed), error, delay=0.0, next_model=self.model.name))
