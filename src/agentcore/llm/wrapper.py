"""Bases of models that ask other models: the two methods of `Model` in terms of one request."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import NamedTuple

from agentcore.llm.estimate import estimate_tokens
from agentcore.llm.features import Features
from agentcore.llm.model import CallContext, DeltaStream, Model, describe_unrecorded, model_features
from agentcore.llm.reply import Reply
from agentcore.messages import DocumentBlock, ImageBlock, Message, ToolResultBlock, ToolSchema


class ModelRequest(NamedTuple):
    """One call of a model: the arguments of `complete` and `stream` in one value."""

    messages: Sequence[Message]
    tools: Sequence[ToolSchema] = ()
    context: CallContext | None = None

    async def complete(self, model: Model) -> Reply:
        """Ask a model for the whole reply."""
        return await model.complete(self.messages, self.tools, context=self.context)

    def stream(self, model: Model) -> AbstractAsyncContextManager[DeltaStream]:
        """Ask a model for the reply as a stream."""
        return model.stream(self.messages, self.tools, context=self.context)

    @property
    def estimated_tokens(self) -> int:
        """About how many tokens the model would read."""
        return estimate_tokens(self.messages, self.tools)

    @property
    def has_images(self) -> bool:
        """True if a message or a tool result holds a picture."""
        return self._has(ImageBlock)

    @property
    def has_documents(self) -> bool:
        """True if a message or a tool result holds a document."""
        return self._has(DocumentBlock)

    def _has(self, kind: type[ImageBlock | DocumentBlock]) -> bool:
        blocks = [block for message in self.messages for block in message.content]
        results = [block for block in blocks if isinstance(block, ToolResultBlock)]
        return any(isinstance(block, kind) for block in [*blocks, *(b for r in results for b in r.content)])


class RequestModel:
    """A model whose subclasses answer a `ModelRequest`, in `_complete` and `_stream`."""

    __slots__ = ()

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, context: CallContext | None = None
    ) -> Reply:
        """Answer, all at once."""
        return await self._complete(ModelRequest(messages, tools, context))

    def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, context: CallContext | None = None
    ) -> AbstractAsyncContextManager[DeltaStream]:
        """Answer, piece by piece."""
        return self._stream(ModelRequest(messages, tools, context))

    async def _complete(self, request: ModelRequest) -> Reply:
        raise NotImplementedError

    def _stream(self, request: ModelRequest) -> AbstractAsyncContextManager[DeltaStream]:
        raise NotImplementedError


class WrapperModel(RequestModel):
    """A model around another one that changes one thing about it."""

    __slots__ = ()

    model: Model
    """The model inside."""

    @property
    def name(self) -> str:
        """The name of the model inside."""
        return self.model.name

    async def _complete(self, request: ModelRequest) -> Reply:
        return await request.complete(self.model)

    def _stream(self, request: ModelRequest) -> AbstractAsyncContextManager[DeltaStream]:
        return request.stream(self.model)

    async def get_features(self) -> Features | None:
        """Return what the model inside can do."""
        return await model_features(self.model)

    def describe_unrecorded(self) -> str:
        """Name the part of the model inside that cannot be recorded."""
        return describe_unrecorded(self.model)
