"""The route to providers through litellm: one attempt of one call."""

from __future__ import annotations

import json
import re
from ast import literal_eval
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import anyio
from anyio.streams.memory import MemoryObjectReceiveStream

from agentcore.errors import BadRequest, MissingExtra, ModelError
from agentcore.llm.catalog import ModelInfo, model_info
from agentcore.llm.error_bodies import delay_in_body, extract_embedded_message, extract_message, seconds_to_wait
from agentcore.llm.failures import ProviderError, model_error, no_connection, too_late
from agentcore.llm.formats.decoding import StreamDecoder
from agentcore.llm.litellm_route import library
from agentcore.llm.litellm_route.wires import ChatWire, ResponsesWire
from agentcore.llm.media import check_media, without_unseen
from agentcore.llm.model import DeltaStream
from agentcore.llm.providers import PROVIDERS
from agentcore.llm.reply import Reply
from agentcore.llm.settings import LLMSettings
from agentcore.llm.wrapper import BufferedStream, ModelRequest, RequestModel

_BUFFERED_EVENTS = 64
_PREFIXES = re.compile(r"^(?:(?:litellm\.)?\w*(?:Error|Exception|Timeout)\w*(?::| -)\s*)+")
_MORE = re.compile(
    r"(?:\s*Original exception: |\s*Traceback \(most recent call last\)| LiteLLM Retried: | Received Model Group=).*",
    re.DOTALL,
)

_BYTES = re.compile(r"b'.*'|b\".*\"", re.DOTALL)

_NO_PROVIDER = "LLM Provider NOT provided"

_CONNECTION = frozenset(
    {"ConnectError", "ReadError", "WriteError", "NetworkError", "RemoteProtocolError", "CloseError"}
)


@dataclass(frozen=True, slots=True)
class LiteLLMModel(RequestModel):
    """A model at a provider, asked once per call, without retries."""

    settings: LLMSettings

    @property
    def name(self) -> str:
        """The provider and the model."""
        return self.settings.model

    async def _complete(self, request: ModelRequest) -> Reply:
        litellm, info, wire, options = await self._prepare(request)
        began = anyio.current_time()

        async def call() -> dict[str, Any]:
            response = await wire.call(litellm)(**options)
            return response.model_dump(warnings=False)  # it types loosely what providers send

        with anyio.move_on_after(self.settings.timeout) as limit:
            try:
                answer = wire.answer(self.settings, await library.apart(call))
                return answer.priced(self.settings, info, latency=anyio.current_time() - began, first=None)
            except Exception as error:
                raise as_model_error(error, self.settings) from error
        assert limit.cancelled_caught
        raise too_late(self.settings, "no reply", "timeout")

    async def _prepare(self, request: ModelRequest) -> tuple[Any, ModelInfo, ChatWire | ResponsesWire, dict[str, Any]]:
        """Return litellm, facts about the model, the wire, and the arguments of the call."""
        try:
            litellm = await library.litellm()
        except MissingExtra as error:
            if self.settings.provider in PROVIDERS:
                raise MissingExtra(f"The model {self.settings.model!r}", error.extra) from None
            # Installing it would not help.
            unknown = f"{self.settings.model}: {_no_provider(self.settings)}"
            raise BadRequest(unknown, model=self.settings.model) from None
        info = await model_info(self.settings)
        messages = without_unseen(request.messages, info.features)
        check_media(messages, self.settings, info.features)
        mode = self.settings.api_mode
        if mode == "auto":
            mode = "responses" if info.features.mode == "responses" else "chat"
        wire = ResponsesWire() if mode == "responses" else ChatWire()
        options = wire.options(self.settings, messages, request.tools, request.context, info.features)
        return litellm, info, wire, options

    @asynccontextmanager
    async def _stream(self, request: ModelRequest) -> AsyncGenerator[DeltaStream]:
        if not self.settings.streaming:
            yield BufferedStream.of_reply(await self._complete(request))
            return
        litellm, info, wire, options = await self._prepare(request)
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
        self._began = anyio.current_time()
        self._first: float | None = None
        """Seconds until the first delta."""
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
            raise too_late(settings, "nothing more came", "stream_idle_timeout")
        if limit.cancelled_caught:
            raise too_late(settings, "no reply began", "timeout")

    async def _take_in(self) -> None:
        try:
            event = await self._events.receive()
        except anyio.EndOfStream:
            event = None
        # Not inside the handler: what is raised there loses the context it came with, which tells what it means.
        try:
            if event is None:
                await library.result(self._call)
                latency = anyio.current_time() - self._began
                self._reply = self._reader.answer().priced(
                    self._settings, self._info, latency=latency, first=self._first
                )
            else:
                self._begun = True
                self._deltas.extend(self._reader.read(event))
                if self._deltas and self._first is None:
                    self._first = anyio.current_time() - self._began
        except Exception as error:
            raise as_model_error(error, self._settings) from error


def as_model_error(error: BaseException, settings: LLMSettings) -> ModelError:
    """Return the error that a failed call means. A `ModelError` is returned as it is."""
    if isinstance(error, ModelError):
        return error
    error = getattr(error, "original_exception", None) or error
    if cause := _broken_connection(error):
        # litellm makes a 500 of it, which nobody sent.
        return no_connection(settings, cause)
    return model_error(
        ProviderError(
            status=_status(error),
            message=_message(error, settings),
            codes=_codes(error),
            retry_after=_retry_after(error),
            timed_out="Timeout" in type(error).__name__,
            lacks_package=isinstance(error, ImportError),
        ),
        settings,
    )


def _status(error: BaseException) -> int | None:
    for candidate in (getattr(error, "status_code", None), getattr(error, "code", None)):
        if isinstance(candidate, int) or (isinstance(candidate, str) and candidate.isdigit()):
            return int(candidate)
    return None


def _message(error: BaseException, settings: LLMSettings) -> str:
    message = extract_embedded_message(_passed_on(error)) or type(error).__name__
    if _NO_PROVIDER not in message:
        return message
    return _no_provider(settings)  # its own words are for those who call it


def _no_provider(settings: LLMSettings) -> str:
    near = get_close_matches(settings.provider, PROVIDERS, 1)
    hint = f" Did you mean {near[0]!r}?" if near else " For a server of your own, say where it is: LLM(base_url=...)."
    return f"there is no provider {settings.provider!r}.{hint}"


def _passed_on(error: BaseException) -> str:
    """Return the provider's message without litellm's text around it: often the body as it came."""
    words = _PREFIXES.sub("", _MORE.sub("", str(error))).strip()
    if _BYTES.fullmatch(words):
        # Of streams it shows the bytes as Python writes them.
        with suppress(ValueError, SyntaxError):
            return literal_eval(words).decode("utf-8", "replace").strip()
    return words


def _codes(error: BaseException) -> str:
    codes = [getattr(link, name, None) for link in _chain(error) for name in ("code", "type")]
    with suppress(ValueError):
        codes.append(extract_message(json.loads(_passed_on(error)))[1])
    return " ".join(code for code in codes if isinstance(code, str))


def _chain(error: BaseException | None) -> Iterator[BaseException]:
    seen: set[int] = set()
    while error is not None and id(error) not in seen:
        seen.add(id(error))
        yield error
        error = error.__cause__ or error.__context__


def _broken_connection(error: BaseException) -> str | None:
    """Return the innermost reason of a failed or broken connection; None if there was an answer."""
    broken = [link for link in _chain(error) if type(link).__name__ in _CONNECTION or isinstance(link, ConnectionError)]
    if not broken:
        return None
    return next((str(link) for link in reversed(broken) if str(link)), type(broken[-1]).__name__)


def _retry_after(error: BaseException) -> float | None:
    for link in _chain(error):
        for headers in (
            getattr(link, "litellm_response_headers", None),
            getattr(getattr(link, "response", None), "headers", None),
        ):
            if headers and (seconds := seconds_to_wait(headers)) is not None:
                return seconds
    with suppress(ValueError):
        return delay_in_body(json.loads(_passed_on(error)))
    return None
