"""The route to providers through litellm: one attempt of one call."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream

from agentcore.errors import ModelTimeout
from agentcore.llm.catalog import ModelInfo, model_info, priced
from agentcore.llm.features import Features
from agentcore.llm.formats.decoding import DecodedReply, StreamDecoder, as_reported
from agentcore.llm.litellm_route import library
from agentcore.llm.litellm_route.failures import as_model_error
from agentcore.llm.litellm_route.wires import ChatWire, ResponsesWire, Wire
from agentcore.llm.media import check_media, without_unseen
from agentcore.llm.model import DeltaStream
from agentcore.llm.reply import Reply
from agentcore.llm.settings import LLMSettings
from agentcore.llm.streams import BufferedStream
from agentcore.llm.wrapper import ModelRequest, RequestModel

_BUFFERED_EVENTS = 64


@dataclass(frozen=True, slots=True)
class LiteLLMModel(RequestModel):
    """A model at a provider, asked once per call, without retries."""

    settings: LLMSettings

    @property
    def name(self) -> str:
        """The provider and the model."""
        return self.settings.model

    async def _complete(self, request: ModelRequest) -> Reply:
        litellm = await library.litellm()
        info = await model_info(self.settings)
        messages = without_unseen(request.messages, info.features)
        check_media(messages, self.settings, info.features)
        wire = _wire(self.settings, info.features)
        options = wire.options(self.settings, messages, request.tools, request.context, info.features)
        times = _Times()

        async def call() -> dict[str, Any]:
            response = await wire.call(litellm)(**options)
            return response.model_dump(warnings=False)  # it types loosely what providers send

        with anyio.move_on_after(self.settings.timeout) as limit:
            try:
                return _reply(self.settings, info, wire.answer(self.settings, await library.apart(call)), times)
            except Exception as error:
                raise as_model_error(error, self.settings) from error
        assert limit.cancelled_caught
        raise _too_late(self.settings, "no reply", self.settings.timeout, "timeout")

    @asynccontextmanager
    async def _stream(self, request: ModelRequest) -> AsyncGenerator[DeltaStream]:
        if not self.settings.streaming:
            yield BufferedStream.of_reply(await self._complete(request))
            return
        litellm = await library.litellm()
        info = await model_info(self.settings)
        messages = without_unseen(request.messages, info.features)
        check_media(messages, self.settings, info.features)
        wire = _wire(self.settings, info.features)
        options = wire.options(self.settings, messages, request.tools, request.context, info.features)
        send, receive = anyio.create_memory_object_stream[dict[str, Any]](_BUFFERED_EVENTS)

        async def call() -> None:
            async with send:
                await wire.events(await wire.call(litellm)(**options, stream=True), send.send)

        task = library.start(call)
        try:
            with receive:
                yield _Stream(self.settings, info, wire.decoder(self.settings), receive, task)
        finally:
            with anyio.move_on_after(library.END_SECONDS, shield=True):
                await library.end(task)

    async def get_features(self) -> Features:
        """Return what the model can do, as far as the list of models and the setting `features` say."""
        return (await model_info(self.settings)).features

    def record(self) -> None:
        """Return None: an `LLM` is what is written down."""


class _Times:
    """When a request was made and when something came of it, by the event loop's clock."""

    def __init__(self) -> None:
        self._begin = anyio.current_time()
        self.first: float | None = None
        """Seconds until the first delta."""

    def so_far(self) -> float:
        return anyio.current_time() - self._begin

    def note(self) -> None:
        if self.first is None:
            self.first = self.so_far()


def _reply(settings: LLMSettings, info: ModelInfo, answer: DecodedReply, times: _Times) -> Reply:
    provider = f"{settings.provider}/"
    return Reply(
        message=answer.message,
        usage=priced(info, settings, answer.usage, reported=answer.reported_cost, surcharges=answer.surcharges),
        stop_reason=answer.stop_reason,
        model=f"{provider}{answer.model.removeprefix(provider)}" if answer.model else settings.model,
        provider_id=answer.provider_id,
        latency=times.so_far(),
        time_to_first_token=times.first,
        reported_usage=as_reported(answer.reported_usage),
        service_tier=answer.service_tier,
        logprobs=answer.logprobs,
    )


def _too_late(settings: LLMSettings, what: str, seconds: float, setting: str) -> ModelTimeout:
    return ModelTimeout(
        f"{settings.model}: {what} within {seconds:g} s. If this model needs longer, set LLM({setting}=...).",
        model=settings.model,
    )


def _wire(settings: LLMSettings, features: Features) -> Wire:
    mode = settings.api_mode
    if mode == "auto":
        mode = "responses" if features.mode == "responses" else "chat"
    return ResponsesWire() if mode == "responses" else ChatWire()


class _Stream(BufferedStream):
    """Deltas as they come from the task that makes the call."""

    def __init__(
        self,
        settings: LLMSettings,
        info: ModelInfo,
        decoder: StreamDecoder,
        events: MemoryObjectReceiveStream[dict[str, Any]],
        call: library.Call[None],
    ) -> None:
        super().__init__()
        self._settings = settings
        self._info = info
        self._times = _Times()
        self._reader = decoder
        self._events = events
        self._call = call
        self._begun = False

    async def _fill(self) -> None:
        settings = self._settings
        begun = self._begun
        seconds = settings.stream_idle_timeout if begun else settings.timeout
        with anyio.move_on_after(seconds) as limit:
            await self._take_in()
        if limit.cancelled_caught and begun:
            raise _too_late(settings, "nothing more came", seconds, "stream_idle_timeout")
        if limit.cancelled_caught:
            raise _too_late(settings, "no reply began", seconds, "timeout")

    async def _take_in(self) -> None:
        try:
            event = await self._events.receive()
        except anyio.EndOfStream:
            event = None
        # Not inside the handler: what is raised there loses the context it came with, which tells what it means.
        try:
            if event is None:
                await library.result(self._call)
                self._reply = _reply(self._settings, self._info, self._reader.answer(), self._times)
            else:
                self._begun = True
                self._deltas.extend(self._reader.read(event))
                if self._deltas:
                    self._times.note()
        except Exception as error:
            raise as_model_error(error, self._settings) from error
