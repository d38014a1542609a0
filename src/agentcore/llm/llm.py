"""A model at a provider: the value that people type."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Self, TypeVar

from pydantic import BaseModel, JsonValue

from agentcore.llm.model import CallContext, DeltaStream, Features
from agentcore.llm.parsing import parse
from agentcore.llm.reply import Reply
from agentcore.llm.retry import RetryingModel
from agentcore.llm.route import RoutedModel, look_up_features, supports_response_schema
from agentcore.llm.settings import LLMSettings
from agentcore.messages import Message, ToolSchema

ValueT = TypeVar("ValueT", bound=BaseModel)


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
