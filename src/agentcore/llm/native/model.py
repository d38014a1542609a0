"""The native route: one attempt of one call, over plain HTTP."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import Any, cast

import anyio
import httpx

from agentcore.errors import ModelUnavailable
from agentcore.llm.failures import too_late
from agentcore.llm.formats.decoding import DONE, DecodedReply, StreamDecoder
from agentcore.llm.model import DeltaStream
from agentcore.llm.native.clients import Answered, read_through
from agentcore.llm.native.exchange import DECODE_ERRORS, LONGEST_ANSWER, Exchange, prepare
from agentcore.llm.reply import Reply, deltas_of
from agentcore.llm.settings import LLMSettings
from agentcore.llm.wrapper import BufferedStream, ModelRequest, RequestModel

_LAST_EVENTS = frozenset({"[DONE]", "message_stop", "response.completed", "response.incomplete", "response.failed"})
_SIGNS_OF_LIFE = frozenset({"keepalive", "ping"})
_LONGEST_PING = 256
"""Bytes; of an event that is longer, each piece that comes is progress."""
_NO_EVENTS = (b"{", b"[", b"<")
"""How JSON and pages begin, which are no stream of events whatever they are said to be."""
_BLANKS = b" \t\r\n\xef\xbb\xbf"
"""Bytes that may come before that: white space and the byte order mark of UTF-8."""
_SHOWN = 4_000
LONGEST_EVENT = 64 * 1024 * 1024
"""Bytes of one event. No provider sends such a one; a server that never ends a line would fill the memory."""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
"""With which a text may begin, to say that it is UTF-8."""
_END_SECONDS = 0.5
"""How long after its last word a stream may take to end. One that has ended leaves its connection for the next call."""


def _no_comment(body: bytearray) -> bytes:
    """Return a body without the comments that keep a connection alive."""
    return b"\n".join(line for line in bytes(body).splitlines() if line and not line.startswith(b":"))


class NativeStream(BufferedStream):
    """Deltas as their events arrive."""

    def __init__(self, exchange: Exchange) -> None:
        super().__init__()
        self._exchange = exchange
        self._settings = exchange.settings
        self._reader: StreamDecoder = exchange.wire.decoder(exchange.settings)
        self._answered: Answered | None = None
        self._chunks: AsyncGenerator[bytes] | None = None
        self._events = EventParser()
        self._begins_by = 0.0
        self._silent = 0.0
        """Seconds that were waited since the last event that says something: keep-alives do not count."""
        self._begun = False
        self._any_event = False
        self._looked = False
        """True once the beginning of the body was examined."""
        self._began: float | None = None
        self._last = False
        self._beginning = bytearray()
        """Of the body, as long as there is no event: what is shown where none comes."""
        self._whole: bytearray | None = None
        """The body, where the server sends it at once though it was asked for a stream."""

    async def open(self) -> None:
        """Send the request."""
        self._begins_by = anyio.current_time() + self._settings.timeout
        with anyio.move_on_after(self._settings.timeout):
            self._answered = await self._exchange.send()
        if self._answered is None:
            raise too_late(self._settings, "no reply began", "timeout")
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

    async def _fill(self) -> None:
        chunk = await self._next_chunk()
        if chunk is not None and not self._looked and (beginning := chunk.lstrip(_BLANKS)):
            self._looked = True
            if beginning.startswith(_NO_EVENTS):
                self._whole = bytearray()
        if chunk is not None and not self._any_event and len(self._beginning) < _SHOWN:
            self._beginning += chunk[:_SHOWN]
        if self._whole is not None:
            self._take_whole(chunk)
            return
        for data in self._events.feed(chunk) if chunk is not None else self._events.finish():
            self._any_event = True
            if self._read(data):
                self._note_progress()
            if self._began is None and self._deltas:
                self._began = anyio.current_time()
        if self._events.pending > _LONGEST_PING:
            self._note_progress()
        if chunk is None and not self._any_event and (text := _no_comment(self._beginning)):
            raise self._unreadable(text)
        if chunk is None or self._last:
            self._reply = self._exchange.reply(self._answer(), began=self._began)
            if chunk is not None:
                await self._end()

    def _answer(self) -> DecodedReply:
        try:
            return self._reader.answer()
        except DECODE_ERRORS as error:
            raise self._unreadable(b"") from error

    async def _next_chunk(self) -> bytes | None:
        assert self._chunks is not None
        begun, settings = self._begun, self._settings
        with self._exchange.translate_errors(), anyio.CancelScope() as limit:
            # What the reader of the deltas does in between is no silence of the provider.
            waits = anyio.current_time()
            limit.deadline = waits + settings.stream_idle_timeout - self._silent if begun else self._begins_by
            chunk = await anext(self._chunks, None)
            self._silent += anyio.current_time() - waits
            return chunk
        if begun:
            raise too_late(settings, "nothing more came", "stream_idle_timeout")
        raise too_late(settings, "no reply began", "timeout")

    def _take_whole(self, chunk: bytes | None) -> None:
        assert self._whole is not None
        assert self._answered is not None
        if chunk is not None:
            self._whole += chunk
            if len(self._whole) > LONGEST_ANSWER:
                raise self._unreadable(b"more bytes than any reply has")
            return
        self._reply = self._exchange.reply(self._exchange.answer(self._answered.response, bytes(self._whole)))
        self._deltas.extend(deltas_of(self._reply.message))

    def _note_progress(self) -> None:
        self._begun = True
        self._silent = 0.0

    def _read(self, data: bytes) -> bool:
        """Read one event; whether it is more than a sign of life."""
        if data == b"[DONE]" or data.strip() == b"[DONE]":
            event = DONE
        elif not data.strip():
            return False
        else:
            try:
                event = json.loads(data.decode())
            except (ValueError, RecursionError):
                raise self._unreadable(data) from None
            if not isinstance(event, dict):
                raise self._unreadable(data)
        try:
            self._deltas.extend(self._reader.read(cast("dict[str, Any]", event)))
            kind = cast("dict[str, Any]", event).get("type")
            self._last = self._last or kind in _LAST_EVENTS
            return kind not in _SIGNS_OF_LIFE
        except DECODE_ERRORS as error:
            raise self._unreadable(data) from error

    def _unreadable(self, data: bytes) -> ModelUnavailable:
        assert self._answered is not None
        return self._exchange.unreadable(self._answered.response, data)

    async def _end(self) -> None:
        """Read what comes after the last word, so that the connection can be used again."""
        assert self._chunks is not None
        with suppress(httpx.HTTPError), anyio.move_on_after(_END_SECONDS):
            async for _ in self._chunks:
                pass


class EventParser:
    """Server-sent events (WHATWG HTML, section 9.2), whatever pieces their bytes come in.

    Names, ids and comments are left out: what providers send says in its data what it is.
    """

    def __init__(self) -> None:
        self._rest = bytearray()
        self._searched = 0
        """How much of the rest is known to hold no line end."""
        self._half = False
        """True if the rest ends with what may be half of a line end."""
        self._data: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Take bytes in and return the data of each event that is complete now.

        Raises:
            ModelUnavailable: An event is longer than any that is meant.
        """
        self._rest += chunk
        # A line ends with any of three; one that ends with the last byte may go on with the next.
        if b"\r" in chunk or self._half:
            self._unify_line_ends()
        events = list(self._lines())
        if len(self._rest) + self._size > LONGEST_EVENT:
            raise ModelUnavailable(f"The provider sent an event of more than {LONGEST_EVENT:,} bytes.")
        return events

    @property
    def pending(self) -> int:
        """Bytes of data that wait for the end of their event."""
        return self._size + (len(self._rest) if self._rest.startswith(b"data:") else 0)

    def _lines(self) -> Iterator[bytes]:
        rest, start = self._rest, 0
        while (end := rest.find(b"\n", max(start, self._searched))) >= 0:
            line = bytes(rest[start:end])
            start = end + 1
            event = self._take(line.removesuffix(b"\r"))
            if event is not None:
                yield event
        del rest[:start]
        self._searched = len(rest)

    def _unify_line_ends(self) -> None:
        rest = self._rest
        # Half of "\r\n" may be here: what it is shows with the next byte.
        self._half = rest.endswith(b"\r")
        whole = bytes(rest[:-1] if self._half else rest).replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        rest[:] = whole + (b"\r" if self._half else b"")
        self._searched = 0

    def _take(self, line: bytes) -> bytes | None:
        if not line:
            data, self._data, self._size = self._data, [], 0
            return b"\n".join(data) if data else None
        if line.startswith(b"data:"):
            value = line[6:] if line[5:6] == b" " else line[5:]
            self._data.append(value)
            self._size += len(value)
        elif line == b"data":
            self._data.append(b"")
        elif line.startswith(_BYTE_ORDER_MARK):
            return self._take(line.removeprefix(_BYTE_ORDER_MARK))
        return None

    def finish(self) -> Iterator[bytes]:
        """Yield an event that the end of the stream cut off: some servers leave out its last blank line."""
        last = bytes(self._rest).removesuffix(b"\r")
        # A lone "\r" that was held back is the blank line itself.
        for line in (last, b"") if self._rest else (b"",):
            event = self._take(line)
            if event is not None:
                yield event
        self._rest.clear()


@dataclass(frozen=True, slots=True)
class NativeModel(RequestModel):
    """A model at a provider, asked once per call, without retries."""

    settings: LLMSettings

    @property
    def name(self) -> str:
        """The provider and the model."""
        return self.settings.model

    async def _complete(self, request: ModelRequest) -> Reply:
        exchange = await prepare(self.settings, request, streamed=False)
        with anyio.move_on_after(self.settings.timeout):
            return exchange.reply(await exchange.ask())
        raise too_late(self.settings, "no reply", "timeout")

    @asynccontextmanager
    async def _stream(self, request: ModelRequest) -> AsyncGenerator[DeltaStream]:
        if not self.settings.streaming:
            yield BufferedStream.of_reply(await self._complete(request))
            return
        exchange = await prepare(self.settings, request, streamed=True)
        stream = NativeStream(exchange)
        try:
            await stream.open()
            yield stream
        finally:
            await stream.aclose()
