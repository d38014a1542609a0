"""A model at a provider: the value that people type, and the way there, over plain HTTP or through litellm.

httpx and what comes with it take longer to import than all of agentcore, so each route is imported when it is first needed,
in a worker thread while the event loop goes on, here and nowhere else.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Self, TypeVar

from pydantic import BaseModel, JsonValue

from agentcore._threads import Threads
from agentcore.errors import BadRequest
from agentcore.llm.model import CallContext, DeltaStream, Features, Model
from agentcore.llm.parsing import parse
from agentcore.llm.providers import HOSTS
from agentcore.llm.reply import Reply
from agentcore.llm.retry import RetryingModel
from agentcore.llm.settings import LLMSettings
from agentcore.llm.wrapper import ModelRequest, RequestModel
from agentcore.messages import Message, ToolSchema

ValueT = TypeVar("ValueT", bound=BaseModel)

_imports = Threads("llm_imports", 1)
_imported: dict[str, Any] = {}


class LLM(LLMSettings):
    """A model at a provider: a frozen value with everything there is to say about it, and a `Model` to talk to.

    It holds no connection; those are kept per event loop, and closed with it.
    """

    @property
    def name(self) -> str:
        """The provider and the model."""
        return self.model

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, context: CallContext | None = None
    ) -> Reply:
        """Answer, all at once; failures that pass are tried again.

        Raises:
            ModelError: The call failed; the class says why.
            MissingExtra: The model is reached through litellm, which is not installed.
        """
        return await self._retried().complete(messages, tools, context=context)

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, context: CallContext | None = None
    ) -> AbstractAsyncContextManager[DeltaStream]:
        """Answer, piece by piece; after a failure in the middle the reply starts over, and a `ResetDelta` says so.

        Raises:
            ModelError: The call failed; the class says why.
            MissingExtra: The model is reached through litellm, which is not installed.
        """
        return self._retried().stream(messages, tools, context=context)

    async def parse(
        self, messages: Sequence[Message], answer: type[ValueT], *, context: CallContext | None = None
    ) -> ValueT:
        """Ask for an answer of a type, and give it as a value of that type; see `agentcore.llm.parse`.

        The provider holds the model to the type's schema where it is known to be able to; else the model is given a tool
        whose arguments are the type's fields.

        Raises:
            StructuredOutputError: The answer does not fit, and neither did the corrected one.
            ModelError: The call failed; the class says why.
            SchemaError: The type can't be described to a language model.
        """
        how = "response_schema" if await supports_response_schema(self) else "tool"
        return await parse(self, messages, answer, context=context, how=how)

    def _retried(self) -> RetryingModel:
        return RetryingModel(RoutedModel(self), self.retry_policy)

    async def get_features(self) -> Features:
        """Return what the model can do, as far as the list of models and the setting `features` say."""
        return await look_up_features(self)

    def record(self) -> dict[str, JsonValue]:
        """Write it down, without keys. `restore_model` makes it again, with the key of the environment."""
        return self.model_dump(mode="json")

    def model_copy(self, *, update: Mapping[str, Any] | None = None, deep: bool = False) -> Self:
        """Make another with some settings changed; they are checked as any are."""
        if not update:
            return super().model_copy(deep=deep)
        given = {name: getattr(self, name) for name in self.model_fields_set}
        return self.__class__.model_validate({**given, **update})


@dataclass(frozen=True, slots=True)
class RoutedModel(RequestModel):
    """A model at a provider, asked once per call, by whichever route it is reached."""

    settings: LLMSettings

    @property
    def name(self) -> str:
        """The provider and the model."""
        return self.settings.model

    async def _complete(self, request: ModelRequest) -> Reply:
        return await request.complete(await self._route())

    @asynccontextmanager
    async def _stream(self, request: ModelRequest) -> AsyncGenerator[DeltaStream]:
        async with request.stream(await self._route()) as deltas:
            yield deltas

    async def _route(self) -> Model:
        """Return the model that makes one attempt of a call.

        Raises:
            BadRequest: The native route is asked for, and the provider has no API that it knows.
        """
        settings = self.settings
        if goes_native(settings):
            if settings.provider not in HOSTS:
                raise BadRequest(
                    f"{settings.model}: {settings.provider!r} is reached through litellm only: leave route='native' out. "
                    f"Reached natively: {', '.join(sorted(HOSTS))}.",
                    model=settings.model,
                )
            route = (await _import("native.model")).NativeModel(settings)
        else:
            route = (await _import("litellm_route.route")).LiteLLMModel(settings)
        if settings.native_tool_calling:
            return route
        return (await _import("text_calls")).TextToolCalls(route)


def goes_native(settings: LLMSettings) -> bool:
    """Return whether a model is reached over plain HTTP and not through litellm."""
    if settings.route != "auto":
        return settings.route == "native"
    # Options that only litellm knows are a wish to go through it.
    return settings.provider in HOSTS and not settings.provider_options


async def supports_response_schema(settings: LLMSettings) -> bool:
    """Return whether the provider is known to enforce a JSON Schema for this model, on the route that is taken."""
    host = HOSTS.get(settings.provider)
    if host is None or host.wire == "anthropic" or not (goes_native(settings) and settings.native_tool_calling):
        return False
    return (await look_up_features(settings)).response_schema is True


async def look_up_features(settings: LLMSettings) -> Features:
    """Return what a model can do, as far as the list of models and the settings say."""
    return (await (await _import("catalog")).model_info(settings)).features


async def _import(name: str) -> Any:
    if name not in _imported:
        _imported[name] = await _imports.run(import_module, f"agentcore.llm.{name}", abandon_on_cancel=True)
    return _imported[name]
