"""The streams of one conversation: who watches it, what comes next for them, and who wakes them.

Above: the endpoints. Below: `Watched`, a log that grows. Two tasks of the hub's run while somebody watches: one wakes
many watchers when the head has moved, the other collects deltas.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from itertools import count
from time import monotonic
from typing import Any, Protocol

import anyio

import agentcore
from agentcore.conversation import DeltaCursor, StreamDelta
from agentcore.logs import get_logger
from agentcore.wire import Hello
from agentcore_serve.streams.cursor import birth_of
from agentcore_serve.streams.deltas import RecentDeltas
from agentcore_serve.streams.encode import EncodedEvents, WireFormat
from agentcore_serve.streams.fanout import FanOut
from agentcore_serve.streams.timing import Timing
from agentcore_serve.streams.watched import Watched
from agentcore_serve.streams.watcher import Payload, Position, Watcher, dismiss_all

_log = get_logger(__name__)

_WRITE_BYTES = 64 * 1024
"""A write ends with the event that reaches this."""

_MEMO = 4
"""Payloads that are kept for the next watcher at the same position: most are at the head."""

_FEW = 8
"""So many watchers are woken at once, without the task that wakes more of them in slices."""

_numbers = count(1)


class StreamServices(Protocol):
    """The services that the streams of a conversation have from the hub of all streams."""

    @property
    def timing(self) -> Timing: ...
    @property
    def encoded(self) -> EncodedEvents: ...
    def start(self, task: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        """Run a task beside the others."""
        ...

    def join(self, streams: ConversationStreams) -> None:
        """Note that somebody watches.

        Raises:
            Refused: The server ends.
        """
        ...

    def leave(self, streams: ConversationStreams) -> None:
        """Note that nobody watches any more."""
        ...


class ConversationStreams:
    """The watchers of a conversation. Made by `StreamHub.of`."""

    def __init__(self, watched: Watched, services: StreamServices) -> None:
        self._watched = watched
        self._services = services
        self._number = next(_numbers)
        self._watchers: dict[Watcher, None] = {}
        self._fan_out = FanOut()
        self._deltas = RecentDeltas()
        self._cursor: DeltaCursor | None = None
        self._held: list[StreamDelta] = []
        self._delta_watchers = 0
        self._scope: anyio.CancelScope | None = None
        self._end_listening: Callable[[], None] | None = None
        self._moved = anyio.Event()
        self._delta_scope: anyio.CancelScope | None = None
        self._ended = False
        self.end_code = "closed"
        """The code of the `bye` that ends a stream when the conversation closes."""
        # What comes behind a position is the same for all who are there, until the log or the deltas grow.
        self._memo: dict[tuple[Position, WireFormat], Payload | None] = {}
        self._memo_head = -1

    def __len__(self) -> int:
        return len(self._watchers)

    @property
    def watched(self) -> Watched:
        """The log that is followed."""
        return self._watched

    @property
    def ended(self) -> bool:
        """True if nothing more will come."""
        return self._ended or self._watched.head_signal.closed

    def hello(self) -> Hello:
        """Return the first frame of a stream."""
        state = self._watched.state
        return Hello(
            conversation=state.conversation_id, birth=birth_of(state), head=state.head, version=agentcore.__version__
        )

    @contextmanager
    def watch(self, seq: int, wire: WireFormat, *, deltas: bool) -> Generator[Watcher]:
        """Add a watcher behind `seq`, for as long as the context lasts.

        Raises:
            Refused: The server ends (503).
        """
        self._services.join(self)
        watcher = Watcher(self, wire, Position(seq, self._deltas.end if deltas else None))
        self._watchers[watcher] = None
        self._delta_watchers += deltas
        try:
            self._start_tasks()
            yield watcher
        finally:
            del self._watchers[watcher]
            watcher.ended.set()
            self._delta_watchers -= deltas
            self._stop_tasks()

    async def bye(self, code: str) -> None:
        """Send `bye` to all who watch, and wait for them to end; those that do not within a bound are cut."""
        await dismiss_all(self._watchers, code, self._services.timing.goodbye)

    @property
    def watchers(self) -> tuple[Watcher, ...]:
        """All who watch."""
        return tuple(self._watchers)

    def payload_behind(self, position: Position, wire: WireFormat) -> Payload | None:
        """Return what comes next for a watcher at this position, the deltas first; None where it has everything."""
        head = self._watched.state.head
        if self._memo_head != head:
            # Pieces of a reply go before the event that ends it.
            self._collect()
            self._memo_head = head
            self._memo.clear()
        if position.seq == head and (position.deltas is None or position.deltas == self._deltas.end):
            return None
        key = (position, wire)
        if key not in self._memo:
            if len(self._memo) >= _MEMO:
                self._memo.clear()
            self._memo[key] = self._build(position, wire)
        return self._memo[key]

    def _build(self, position: Position, wire: WireFormat) -> Payload | None:
        parts: list[bytes] = []
        seq, deltas = position
        if deltas is not None and deltas < self._deltas.end:
            parts.extend(map(wire.frame, self._deltas.since(deltas)))
            deltas = self._deltas.end
        state, encoded = self._watched.state, self._services.encoded
        size, head = 0, state.head
        birth = birth_of(state)
        while seq < head and size < _WRITE_BYTES:
            event = state.events[seq]
            seq += 1
            frame = encoded.get(self._number, event, state.group_of(seq))
            size += len(frame)
            parts.append(wire.event(frame, birth, seq))
        return Payload(b"".join(parts), Position(seq, deltas)) if parts else None

    def _start_tasks(self) -> None:
        if self._scope is None:
            self._scope = anyio.CancelScope()
            scope = self._scope
            self._end_listening = self._watched.head_signal.listen(self._on_head)
            self._services.start(lambda: self._guard(scope, self._follow_head), "follow the head of a watched log")
        if self._delta_watchers and self._delta_scope is None and (cursor := self._watched.deltas()) is not None:
            self._cursor = cursor
            self._delta_scope = anyio.CancelScope()
            delta_scope = self._delta_scope
            self._services.start(lambda: self._guard(delta_scope, lambda: self._follow_deltas(cursor)), "follow deltas")

    def _stop_tasks(self) -> None:
        if not self._delta_watchers and self._delta_scope is not None:
            self._delta_scope.cancel("nobody watches")
            self._delta_scope = self._cursor = None
            self._held.clear()
            self._deltas.clear()
        if not self._watchers and self._scope is not None:
            self._scope.cancel("nobody watches")
            self._scope = None
            if self._end_listening is not None:
                self._end_listening()
                self._end_listening = None
            self._memo.clear()
            self._services.leave(self)

    async def _guard(self, scope: anyio.CancelScope, task: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Run a task that must not end the server: what fails is this conversation's."""
        try:
            with scope:
                await task()
        except Exception as error:
            _log.error("stream failed", conversation=self._watched.state.conversation_id, error=type(error).__name__)
            self._ended = True
            for watcher in self._watchers:
                watcher.dismiss("failed")

    def _on_head(self) -> None:
        if len(self._watchers) <= _FEW and not self._watched.head_signal.closed:
            # Waking the task, for it to wake them a turn of the event loop later, would be most of the work for one.
            for watcher in self._watchers:
                watcher.wake()
        else:
            self._moved.set()

    async def _follow_head(self) -> None:
        while True:
            # Who reads more than one event behind gets all of them at once: what comes during a fan-out is joined.
            await self._fan_out.wake(self._watchers)
            if self._watched.head_signal.closed:
                return
            await self._moved.wait()
            self._moved = anyio.Event()

    async def _follow_deltas(self, cursor: DeltaCursor) -> None:
        timing = self._services.timing
        due = 0.0
        async for piece in cursor:
            self._held.append(piece)
            if (wait := due - monotonic()) > 0:
                await anyio.sleep(wait)
            self._collect()
            took = await self._fan_out.wake([each for each in self._watchers if each.wants_deltas])
            due = monotonic() + max(timing.deltas, 3 * took)

    def _collect(self) -> None:
        """Move the deltas that are there to where watchers read them."""
        if self._cursor is None:
            return
        pieces = [*self._held, *self._cursor.take()]
        self._held.clear()
        if pieces:
            self._deltas.add(pieces)
            self._memo.clear()
