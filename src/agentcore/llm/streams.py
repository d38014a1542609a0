"""Streams around replies and other streams."""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from typing import Self

import anyio

from agentcore.errors import ModelError
from agentcore.llm.model import UNFINISHED, DeltaStream
from agentcore.llm.reply import Delta, Reply, ResetDelta, deltas_of


class ToldStream:
    """The deltas of a reply that is there already: one for each block that can be watched."""

    def __init__(self, reply: Reply) -> None:
        self._whole = reply
        self._deltas = deque(deltas_of(reply.message))

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delta:
        if not self._deltas:
            raise StopAsyncIteration
        return self._deltas.popleft()

    @property
    def reply(self) -> Reply:
        if self._deltas:
            raise RuntimeError(UNFINISHED)
        return self._whole


class WatchedStream:
    """Passes a stream on, and tells how it ended: who reads it may keep that to himself.

    Of one that is left early nothing is told.
    """

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
            # Once, however often it is asked for more.
            told, self._ended = self._ended, None
            if told is not None:
                told(self._inner.reply)
            raise
        except ModelError as error:
            if self._failed is not None:
                self._failed(error)
            raise

    @property
    def reply(self) -> Reply:
        """The reply of the stream inside."""
        return self._inner.reply


_CLOSE_SECONDS = 5.0


class Attempts:
    """One stream after the other, as a context and as the stream that it gives.

    When deltas were shown already, the next one after a failure is a `ResetDelta`.
    """

    def __init__(
        self,
        open_next: Callable[[], Awaitable[AbstractAsyncContextManager[DeltaStream]]],
        failed: Callable[[ModelError], Awaitable[None]],
    ) -> None:
        """Make it, without asking anybody yet.

        Args:
            open_next: Gives the next stream, when it is its time.
            failed: Is told what became of one; raises where no other one follows.
        """
        self._open_next = open_next
        self._told = failed
        self._shown = False
        self._open = AsyncExitStack()
        """What the present one has to close."""
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
                self._inner = await self._open.enter_async_context(stream)
                return self._inner
            except ModelError as error:
                await self._failed(error)

    async def _failed(self, error: ModelError) -> None:
        await self._close()
        await self._told(error)

    async def _close(self) -> None:
        self._inner = None
        await self._open.aclose()

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
                    # Told before the next one begins: who watches should not look at void words for a minute.
                    self._shown = False
                    return ResetDelta(reason=str(error))
            else:
                # After a stream's own reset nothing is shown that ours would have to void.
                self._shown = not isinstance(delta, ResetDelta)
                return delta

    @property
    def reply(self) -> Reply:
        """The reply of the stream that ended well."""
        if self._reply is None:
            raise RuntimeError(UNFINISHED)
        return self._reply
