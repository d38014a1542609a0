"""A model that plays a script, in the process."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Self

import anyio.lowlevel

from agentcore.context import Messages
from agentcore.llm import CallContext, Delta, DeltaStream, Features, Reply
from agentcore.llm.model import UNFINISHED
from agentcore.messages import Message, ToolSchema
from agentcore.testing.script import Playback, Request, Script, ScriptLine


class ScriptedLLM:
    """A `Model` that answers what it was told to answer, at once and at no cost.

    `replies` are played in order, or are one function that answers every request. One `ScriptedLLM` in several
    conversations is one script that they share: give each conversation its own where the order matters.
    """

    def __init__(
        self,
        replies: Iterable[ScriptLine] | Callable[[Request], ScriptLine],
        *,
        name: str = "scripted",
        record: bool = True,
        repeat: bool = False,
        features: Features | None = None,
    ) -> None:
        """Make a model of a script.

        Args:
            replies: See `agentcore.testing.script`.
            name: What the model calls itself.
            record: Whether to keep the requests. Those of a conversation share its messages.
            repeat: Whether the script starts over after its last line.
            features: What the model says that it can do.
        """
        self.name = name
        self.requests: list[Request] = []
        """The requests it got, in order."""
        self._script = Script(replies, name=name, repeat=repeat)
        self._record = record
        self._features = features

    def __repr__(self) -> str:
        return f"ScriptedLLM(name={self.name!r}, replies played: {self._script.played})"

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, context: CallContext | None = None
    ) -> Reply:
        """Answer, all at once."""
        await anyio.lowlevel.checkpoint()
        performance = await self._next(messages, tools, context)
        while await performance.next() is not None:
            pass
        return performance.reply

    @asynccontextmanager
    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, context: CallContext | None = None
    ) -> AsyncGenerator[DeltaStream]:
        """Answer, a word at a time."""
        await anyio.lowlevel.checkpoint()
        yield _ScriptedStream(await self._next(messages, tools, context))

    async def get_features(self) -> Features | None:
        """Return what it was told that it can do."""
        await anyio.lowlevel.checkpoint()
        return self._features

    def record(self) -> None:
        """Return None: a script can't be written down."""

    async def _next(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema], context: CallContext | None
    ) -> Playback:
        def request() -> Request:
            # A conversation hands over a snapshot of a list that only grows: copying it each time would be quadratic.
            asked = messages if isinstance(messages, Messages) else tuple(messages)
            return Request(asked, tuple(tools), self._context(context))

        if not self._record:
            return await self._script.next(request)
        asked = request()
        self.requests.append(asked)
        return await self._script.next(lambda: asked)

    def _context(self, context: CallContext | None) -> CallContext | None:
        """Return what is kept of a context: one object for all requests that agree, and no callback, which holds a conversation."""
        if context is not None and context.on_retry is not None:
            context = replace(context, on_retry=None)
        last = self.requests[-1].context if self.requests else None
        return last if context == last else context


class _ScriptedStream:
    def __init__(self, performance: Playback) -> None:
        self._performance = performance
        self._ended = False

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delta:
        await anyio.lowlevel.checkpoint()
        delta = None if self._ended else await self._performance.next()
        if delta is None:
            self._ended = True
            raise StopAsyncIteration
        return delta

    @property
    def reply(self) -> Reply:
        if not self._ended:
            raise RuntimeError(UNFINISHED)
        return self._performance.reply
