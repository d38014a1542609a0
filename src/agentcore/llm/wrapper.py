"""Bases of models that ask other models: `Model` in terms of one request, and streams around replies and other streams."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import NamedTuple, Self

import anyio
from pydantic import JsonValue

from agentcore.errors import ModelError
from agentcore.llm.estimate import estimate_tokens
from agentcore.llm.model import (
    UNFINISHED,
    CallContext,
    DeltaStream,
    Features,
    Model,
    describe_unrecorded,
    model_features,
)
from agentcore.llm.reply import Delta, Reply, ResetDelta, deltas_of
from agentcore.messages import DocumentBlock, ImageBlock, Message, ToolResultBlock, ToolSchema

_CLOSE_SECONDS = 5.0


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

    async def get_features(self) -> Features | None:
        """Return None: they are not known."""
        return None

    def record(self) -> dict[str, JsonValue] | None:
        """Return None: it cannot be recorded."""
        return None


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


class BufferedStream:
    """A stream whose deltas wait in a queue. With a reply it ends after them; subclasses extend it in `_fill`."""

    def __init__(self, reply: Reply | None = None, deltas: Iterable[Delta] = ()) -> None:
        self._reply = reply
        """The reply, once no more deltas will be added."""
        self._deltas = deque(deltas)

    @classmethod
    def of_reply(cls, reply: Reply) -> Self:
        """Return the stream of a reply that is complete, with one delta per block that has one."""
        return cls(reply, deltas_of(reply.message))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delta:
        while not self._deltas:
            if self._reply is not None:
                raise StopAsyncIteration
            await self._fill()
        return self._deltas.popleft()

    async def _fill(self) -> None:
        """Add deltas, or set the reply. Called again while there is neither."""
        raise NotImplementedError

    @property
    def reply(self) -> Reply:
        """The whole reply, once all deltas were read."""
        if self._reply is None or self._deltas:
            raise RuntimeError(UNFINISHED)
        return self._reply


class ObservedStream:
    """A stream that reports how it ended to callbacks. A stream that is left early reports nothing."""

    def __init__(
        self, inner: DeltaStream, *, ended: Callable[[Reply], None], failed: Callable[[ModelError], None] | None = None
    ) -> None:
        self._inner = inner
        self._ended: Callable[[Reply], None] | None = ended
        self._failed = failed

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delta:
        try:
            return await anext(self._inner)
        except StopAsyncIteration:
            # Once, however often another delta is asked for.
            ended, self._ended = self._ended, None
            if ended is not None:
                ended(self._inner.reply)
            raise
        except ModelError as error:
            if self._failed is not None:
                self._failed(error)
            raise

    @property
    def reply(self) -> Reply:
        """The reply of the stream inside."""
        return self._inner.reply


class FailoverStream:
    """A stream that goes on with another one when one fails; both the context and the stream that it yields.

    When deltas were shown already, the next one after a failure is a `ResetDelta`.
    """

    def __init__(
        self,
        open_next: Callable[[], Awaitable[AbstractAsyncContextManager[DeltaStream]]],
        failed: Callable[[ModelError], Awaitable[None]],
    ) -> None:
        """Make a stream that opens nothing yet.

        Args:
            open_next: Returns the next stream, when it is needed.
            failed: Called with the error of a stream; raises where no other stream follows.
        """
        self._open_next = open_next
        self._on_failure = failed
        self._shown = False
        self._exits = AsyncExitStack()
        """Closes the present stream."""
        self._inner: DeltaStream | None = None
        self._reply: Reply | None = None

    async def __aenter__(self) -> Self:
        try:
            await self._start()
        except BaseException:
            with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
                await self._close()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        with anyio.move_on_after(_CLOSE_SECONDS, shield=True):
            await self._close()

    async def _start(self) -> DeltaStream:
        """Open streams until one is open."""
        while True:
            stream = await self._open_next()
            try:
                self._inner = await self._exits.enter_async_context(stream)
                return self._inner
            except ModelError as error:
                await self._failed(error)

    async def _failed(self, error: ModelError) -> None:
        await self._close()
        await self._on_failure(error)

    async def _close(self) -> None:
        self._inner = None
        await self._exits.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delta:
        while True:
            inner = self._inner or await self._start()
            try:
                delta = await anext(inner)
            except StopAsyncIteration:
                self._reply = inner.reply
                raise
            except ModelError as error:
                await self._failed(error)
                if self._shown:
                    # Before the next stream begins, so that void text is not displayed for a minute.
                    self._shown = False
                    return ResetDelta(reason=str(error))
            else:
                # After a stream's own reset nothing is shown that another reset would have to void.
                self._shown = not isinstance(delta, ResetDelta)
                return delta

    @property
    def reply(self) -> Reply:
        """The reply of the stream that ended well."""
        if self._reply is None:
            raise RuntimeError(UNFINISHED)
        return self._reply
