"""The native route: one attempt of one call, over plain HTTP."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import AsyncGenerator, Generator, Sequence
from contextlib import aclosing, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from typing import Any, Self, cast

import anyio
import httpx

from agentcore.errors import AuthenticationError, BadRequest, ModelTimeout, ModelUnavailable
from agentcore.llm.answer import Answer, Reader
from agentcore.llm.catalog import ModelInfo, model_info, priced
from agentcore.llm.deltas import Delta, deltas_of
from agentcore.llm.failures import which_key
from agentcore.llm.model import UNFINISHED, CallContext, DeltaStream
from agentcore.llm.native.chat import ChatWire
from agentcore.llm.native.clients import Answered, clients, read_through
from agentcore.llm.native.failures import broken_connection, refused
from agentcore.llm.native.hosts import HOSTS, find_key, where
from agentcore.llm.native.responses import ResponsesWire
from agentcore.llm.native.sse import EventParser
from agentcore.llm.native.wire import DONE, Call, Wire
from agentcore.llm.reply import Reply
from agentcore.llm.settings import LLMSettings
from agentcore.messages import Message, ToolSchema

__all__ = ["NativeModel"]

_NO_CONTEXT = CallContext()

_LAST_EVENTS = frozenset({"[DONE]", "message_stop", "response.completed", "response.incomplete", "response.failed"})
_END_SECONDS = 0.5
"""How long after its last word a stream may take to end. One that has ended leaves its connection for the next call."""

_MISSHAPEN = (AttributeError, IndexError, KeyError, TypeError, ValueError)
"""What reading raises where an event has not the shape that the interface says."""

_LONGEST_ANSWER = 256 * 1024 * 1024
_LONGEST_REFUSAL = 1024 * 1024


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
        exchange = await _prepare(self.settings, messages, tools, context, streamed=False)
        with anyio.move_on_after(self.settings.timeout):
            return exchange.reply(await exchange.ask())
        raise exchange.too_late("no reply", self.settings.timeout, "timeout")

    @asynccontextmanager
    async def stream(
        self, messages: Sequence[Message], tools: Sequence[ToolSchema] = (), *, context: CallContext | None = None
    ) -> AsyncGenerator[DeltaStream]:
        """Answer, piece by piece."""
        if not self.settings.streaming:
            yield _Told(await self.complete(messages, tools, context=context))
            return
        exchange = await _prepare(self.settings, messages, tools, context, streamed=True)
        stream = _Stream(exchange)
        try:
            await stream.open()
            yield stream
        finally:
            await stream.aclose()


async def _prepare(
    settings: LLMSettings,
    messages: Sequence[Message],
    tools: Sequence[ToolSchema],
    context: CallContext | None,
    *,
    streamed: bool,
) -> _Exchange:
    info = await model_info(settings)
    wire, base_url, key = _reach(settings, info)
    call = Call(settings, messages, tools, context or _NO_CONTEXT, info.features, streamed)
    return _Exchange(
        settings, info, wire, wire.url(base_url), wire.headers(key) | settings.revealed_headers, wire.body(call)
    )


def _reach(settings: LLMSettings, info: ModelInfo) -> tuple[Wire, str, str | None]:
    """Say how the provider is spoken to, where, and with which key."""
    host = HOSTS[settings.provider]
    base_url = where(settings, host)
    if base_url is None:
        raise BadRequest(
            f"{settings.model}: it is not known where this server is. Pass LLM(base_url=...)"
            + (f", or set {host.url_variables[0]}." if host.url_variables else "."),
            model=settings.model,
        )
    key = find_key(settings)
    if key is None and host.needs_key and base_url == host.base_url:
        raise AuthenticationError(f"{settings.model}: {which_key(settings)}", model=settings.model)
    mode = settings.api_mode
    if mode == "auto":
        # What reasons there remembers its reasoning only so.
        thinks = host.responses and base_url == host.base_url and info.features.reasoning
        mode = "responses" if info.features.mode == "responses" or thinks else "chat"
    return (ResponsesWire(host) if mode == "responses" else ChatWire(host)), base_url, key


@dataclass(frozen=True, slots=True)
class _Exchange:
    """One request, and how its answer is read."""

    settings: LLMSettings
    info: ModelInfo
    wire: Wire
    url: str
    headers: dict[str, str]
    body: bytes

    async def send(self) -> Answered:
        """Send it and give the answer, once its head is there and says that there is one."""
        with self.told():
            answered = await (await clients()).post(self.url, self.headers, self.body)
            if answered.response.status_code < 300:
                return answered
            try:
                raise refused(self.settings, answered.response, await _beginning(answered.response))
            finally:
                await answered.aclose()

    async def ask(self) -> Answer:
        """Send it and read an answer that comes at once."""
        answered = await self.send()
        try:
            with self.told():
                body = bytearray()
                async with aclosing(read_through(answered.response)) as chunks:
                    async for chunk in chunks:
                        body += chunk
                        if len(body) > _LONGEST_ANSWER:
                            raise self.unreadable(answered.response, "more bytes than any reply has")
            return self.answer(answered.response, bytes(body))
        finally:
            await answered.aclose()

    @contextmanager
    def told(self) -> Generator[None]:
        """Tell of connections that break in our words."""
        try:
            yield
        except (httpx.TransportError, httpx.StreamError, httpx.DecodingError) as error:
            raise broken_connection(self.settings, error) from error
        except httpx.InvalidURL as error:
            raise BadRequest(
                f"{self.settings.model}: {self.url!r} is no address: {error}", model=self.settings.model
            ) from None

    def answer(self, response: httpx.Response, body: bytes) -> Answer:
        """Read a whole answer."""
        try:
            value: Any = json.loads(body)
        except (ValueError, RecursionError):
            raise self.unreadable(response, _shown(body)) from None
        if not isinstance(value, dict):
            raise self.unreadable(response, _shown(body))
        return self.wire.answer(self.settings, cast("dict[str, Any]", value))

    def reply(self, answer: Answer) -> Reply:
        """Put a price on an answer."""
        provider = f"{self.settings.provider}/"
        return Reply(
            message=answer.message,
            usage=priced(self.info, self.settings, answer.usage, reported=answer.reported_cost),
            stop_reason=answer.stop_reason,
            model=f"{provider}{answer.model.removeprefix(provider)}" if answer.model else self.settings.model,
            provider_id=answer.provider_id,
        )

    def too_late(self, what: str, seconds: float, setting: str) -> ModelTimeout:
        """Say that somebody's patience ended."""
        return ModelTimeout(
            f"{self.settings.model}: {what} within {seconds:g} s. If this model needs longer, set LLM({setting}=...).",
            model=self.settings.model,
        )

    def unreadable(self, response: httpx.Response, what: str) -> ModelUnavailable:
        """Say that an answer is none: a page of a proxy, half a file."""
        kind = response.headers.get("content-type", "no content type")
        return ModelUnavailable(
            f"{self.settings.model}: what {response.url.host} answered can't be read ({kind}): {what}. "
            "Check base_url, and what stands between here and there.",
            model=self.settings.model,
            status=response.status_code,
        )


async def _beginning(response: httpx.Response) -> bytes:
    """Read what an error says; nobody reads a megabyte of it."""
    body = bytearray()
    async with aclosing(read_through(response)) as chunks:
        async for chunk in chunks:
            body += chunk
            if len(body) > _LONGEST_REFUSAL:
                break
    return bytes(body[:_LONGEST_REFUSAL])


def _shown(body: bytes) -> str:
    text = " ".join(body[:400].decode("utf-8", "replace").split())
    return repr(text[:200]) if text else "nothing"


class _Stream:
    """Deltas as their events arrive."""

    def __init__(self, exchange: _Exchange) -> None:
        self._exchange = exchange
        self._settings = exchange.settings
        self._reader: Reader = exchange.wire.reader(exchange.settings)
        self._answered: Answered | None = None
        self._chunks: AsyncGenerator[bytes] | None = None
        self._events = EventParser()
        self._deltas: deque[Delta] = deque()
        self._begins_by = 0.0
        self._begun = False
        self._last = False
        self._whole: bytearray | None = None
        """The body, where the server sends it at once though it was asked for a stream."""
        self._reply: Reply | None = None

    async def open(self) -> None:
        """Send the request."""
        self._begins_by = anyio.current_time() + self._settings.timeout
        with anyio.move_on_after(self._settings.timeout):
            self._answered = await self._exchange.send()
        if self._answered is None:
            raise self._exchange.too_late("no reply began", self._settings.timeout, "timeout")
        response = self._answered.response
        self._chunks = read_through(response)
        if "json" in response.headers.get("content-type", ""):
            self._whole = bytearray()

    async def aclose(self) -> None:
        """End the call."""
        if self._chunks is not None:
            await self._chunks.aclose()
        if self._answered is not None:
            await self._answered.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Delta:
        while not self._deltas:
            if self._reply is not None:
                raise StopAsyncIteration
            await self._take_in()
        return self._deltas.popleft()

    async def _take_in(self) -> None:
        chunk = await self._next_chunk()
        if self._whole is not None:
            self._take_whole(chunk)
            return
        for data in self._events.feed(chunk) if chunk is not None else self._events.finish():
            self._begun = True
            self._read(data)
        if chunk is None or self._last:
            self._reply = self._exchange.reply(self._reader.answer())
            if chunk is not None:
                await self._end()

    async def _next_chunk(self) -> bytes | None:
        assert self._chunks is not None
        begun, settings = self._begun, self._settings
        with self._exchange.told(), anyio.CancelScope() as limit:
            limit.deadline = anyio.current_time() + settings.stream_idle_timeout if begun else self._begins_by
            return await anext(self._chunks, None)
        if begun:
            raise self._exchange.too_late("nothing more came", settings.stream_idle_timeout, "stream_idle_timeout")
        raise self._exchange.too_late("no reply began", settings.timeout, "timeout")

    def _take_whole(self, chunk: bytes | None) -> None:
        assert self._whole is not None
        assert self._answered is not None
        if chunk is not None:
            self._whole += chunk
            return
        self._reply = self._exchange.reply(self._exchange.answer(self._answered.response, bytes(self._whole)))
        self._deltas.extend(deltas_of(self._reply.message))

    def _read(self, data: bytes) -> None:
        if data == b"[DONE]":
            event = DONE
        else:
            try:
                event = json.loads(data)
            except (ValueError, RecursionError):
                raise self._unreadable(data) from None
            if not isinstance(event, dict):
                raise self._unreadable(data)
        try:
            self._deltas.extend(self._reader.read(cast("dict[str, Any]", event)))
        except _MISSHAPEN as error:
            raise self._unreadable(data) from error
        self._last = self._last or cast("dict[str, Any]", event).get("type") in _LAST_EVENTS

    def _unreadable(self, data: bytes) -> ModelUnavailable:
        assert self._answered is not None
        return self._exchange.unreadable(self._answered.response, _shown(data))

    async def _end(self) -> None:
        """Read what comes after the last word, so that the connection can be used again."""
        assert self._chunks is not None
        with suppress(httpx.HTTPError), anyio.move_on_after(_END_SECONDS):
            async for _ in self._chunks:
                pass

    @property
    def reply(self) -> Reply:
        if self._reply is None or self._deltas:
            raise RuntimeError(UNFINISHED)
        return self._reply


class _Told:
    """The deltas of a reply that came at once."""

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
