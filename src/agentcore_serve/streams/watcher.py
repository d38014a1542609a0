"""One connection that watches a conversation: a place in the log, and no queue. What it has not been sent is in the log.

Above: SSE and WebSocket, which say how frames look and how they are sent. Below: `ConversationStreams`, which knows what is
next and wakes it. `await send` is the back-pressure; the hub's sweeper cuts a send that takes too long.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from time import monotonic
from typing import Final, NamedTuple, Protocol

import anyio
from anyio.lowlevel import checkpoint
from starlette.websockets import WebSocketDisconnect

from agentcore.wire import Bye, Frame, Hello, Ping, Problem
from agentcore_serve.streams.encode import WireFormat

_LOST: Final = (OSError, RuntimeError, WebSocketDisconnect)
"""The errors that servers raise from a send after the other side has gone. Some raise nothing."""

Send = Callable[[bytes], Awaitable[None]]
"""Sends encoded frames. It may wait for as long as the other side does not read."""


class Position(NamedTuple):
    """The place up to which a watcher has been sent everything."""

    seq: int
    deltas: int | None
    """The position in the deltas; None for a watcher that did not ask for them."""


class Payload(NamedTuple):
    """The bytes of one write, and where the watcher is then."""

    data: bytes
    position: Position


class Source(Protocol):
    """The log that a watcher follows."""

    def hello(self) -> Hello:
        """Return the first frame."""
        ...

    def payload_behind(self, position: Position, wire: WireFormat) -> Payload | None:
        """Return what comes next; None where the watcher has everything."""
        ...

    @property
    def ended(self) -> bool:
        """True if nothing more will come."""
        ...

    @property
    def end_code(self) -> str:
        """The code of the `bye` for that."""
        ...


class Watcher:
    """A connection that watches."""

    def __init__(self, source: Source, wire: WireFormat, position: Position) -> None:
        self._source = source
        self._wire = wire
        self._position = position
        self._send: Send | None = None
        self._news: anyio.Event | None = None
        self._extra: list[Frame] = []
        self._bye: Bye | None = None
        self.said_bye = False
        """True once `bye` was sent."""
        self.ended = anyio.Event()
        """Set when it watches no more."""
        self._scope = anyio.CancelScope()
        self._busy_since: float | None = None
        self._sent_at = monotonic()

    @property
    def wants_deltas(self) -> bool:
        """True if it is sent deltas."""
        return self._position.deltas is not None

    @property
    def position(self) -> Position:
        """The place up to which it has been sent everything."""
        return self._position

    @property
    def bye(self) -> Bye | None:
        """Its last frame, once that is known; the frame may not have been sent."""
        return self._bye

    def wake(self) -> None:
        """Go and look what is new."""
        if self._news is not None:
            self._news.set()

    def add(self, frames: Sequence[Frame]) -> None:
        """Send these frames too, before the next event."""
        self._extra.extend(frames)
        self.wake()

    def dismiss(self, code: str, problem: Problem | None = None) -> None:
        """Send `bye` as soon as what is being sent is sent, and end. The first dismissal counts."""
        if self._bye is None:
            self._bye = Bye(code=code, problem=problem)
        self.wake()

    def cut(self, code: str) -> None:
        """End now, without `bye`: the other side does not read, or is gone."""
        self.dismiss(code)
        self._scope.cancel(code)

    def sweep(self, now: float, *, ping: float, stall: float) -> None:
        """Send a ping into a silence, and end a send that takes too long."""
        if self._busy_since is not None:
            if now - self._busy_since >= stall:
                self.cut("slow")
        elif now - self._sent_at >= ping and not self._extra:
            self.add([Ping()])

    async def run(self, send: Send) -> None:
        """Send until the conversation closes, the watcher is dismissed, or the connection is lost."""
        with self._scope:
            self._send = send
            await self._put(self._wire.frame(self._source.hello()))
            just_sent = False
            while self._bye is None:
                payload = self._next()
                if payload is not None:
                    if just_sent:
                        # A send that need not wait lets nobody else run, and there may be 10,000 events to come.
                        await checkpoint()
                    await self._put(payload.data)
                    self._position = payload.position
                    just_sent = True
                elif self._source.ended:
                    self.dismiss(self._source.end_code)
                else:
                    just_sent = False
                    self._news = anyio.Event()
                    await self._news.wait()
            await self._put(self._wire.frame(self._bye))
            self.said_bye = True

    def _next(self) -> Payload | None:
        if self._extra:
            frames, self._extra = self._extra, []
            return Payload(b"".join(map(self._wire.frame, frames)), self._position)
        return self._source.payload_behind(self._position, self._wire)

    async def _put(self, data: bytes) -> None:
        assert self._send is not None
        self._busy_since = monotonic()
        try:
            await self._send(data)
        except _LOST:
            self.cut("gone")
            await checkpoint()
        self._sent_at, self._busy_since = self._busy_since, None


async def dismiss_all(watchers: Iterable[Watcher], code: str, seconds: float) -> None:
    """Have all of them send `bye`, and wait until they have ended; those that take longer are cut."""
    dismissed = tuple(watchers)
    for watcher in dismissed:
        watcher.dismiss(code)
    with anyio.move_on_after(seconds) as bound:
        await checkpoint()
        for watcher in dismissed:
            await watcher.ended.wait()
    if bound.cancelled_caught:
        for watcher in dismissed:
            watcher.cut(code)
