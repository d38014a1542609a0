"""The native route: one attempt of one call, over plain HTTP."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import anyio

from agentcore.llm.catalog import model_info
from agentcore.llm.features import Features
from agentcore.llm.model import CallContext, DeltaStream
from agentcore.llm.native.exchange import prepare
from agentcore.llm.native.stream import NativeStream
from agentcore.llm.reply import Reply
from agentcore.llm.settings import LLMSettings
from agentcore.llm.told import ToldStream
from agentcore.messages import Message, ToolSchema

__all__ = ["NativeModel"]


@dataclass(frozen=True, slots=True)
class NativeModel:
    """A model at a provider, asked once per call, without retries."""

    settings: LLMSettings

    @property
    def name(self) -> str:
        """The provider and the model."""
        return self.settings.model

    async def complete(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, context: CallContext | None = None
    ) -> Reply:
        """Answer, all at once."""
        exchange = await prepare(self.settings, messages, tools, context, streamed=False)
        with anyio.move_on_after(self.settings.timeout):
            return exchange.reply(await exchange.ask())
        raise exchange.too_late("no reply", self.settings.timeout, "timeout")

    @asynccontextmanager
    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, context: CallContext | None = None
    ) -> AsyncGenerator[DeltaStream]:
        """Answer, piece by piece."""
        if not self.settings.streaming:
            yield ToldStream(await self.complete(messages, tools, context=context))
            return
        exchange = await prepare(self.settings, messages, tools, context, streamed=True)
        stream = NativeStream(exchange)
        try:
            await stream.open()
            yield stream
        finally:
            await stream.aclose()

    async def get_features(self) -> Features:
        """Return what the model can do, as far as the list of models and the setting `features` say."""
        return (await model_info(self.settings)).features

    def record(self) -> None:
        """Return None: an `LLM` is what is written down."""
