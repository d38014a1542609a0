"""Deltas: pieces of replies and the progress of tools while they come, for people who watch.

Not events: nothing here is kept. A subscriber that does not keep up loses pieces and gets a gap instead; what counts is
in the log.
"""

from __future__ import annotations

from collections import deque
from typing import Literal, Self
from weakref import WeakSet

import anyio
from anyio.lowlevel import checkpoint

from agentcore._delta import StreamDelta
from agentcore.conversation.guards import LoopAffinity
from agentcore.secrets import SecretRegistry, StreamMasker

_ROOM = 1024
"""Deltas that a subscriber may be behind before it loses the oldest."""


class DeltaCursor:
    """Deltas from now on. An object without a scope or a task; it ends when the conversation closes."""

    def __init__(self, home: LoopAffinity) -> None:
        self._home = home
        self._pieces: deque[StreamDelta] = deque()
        self._lost = 0
        self._news = anyio.Event()
        self._closed = False

    def push(self, delta: StreamDelta) -> None:
        """Add a piece; the oldest goes when there is no room."""
        if len(self._pieces) >= _ROOM:
            self._pieces.popleft()
            self._lost += 1
        self._pieces.append(delta)
        self._news.set()

    def close(self) -> None:
        """Add nothing more."""
        self._closed = True
        self._news.set()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> StreamDelta:
        await checkpoint()
        while not self._pieces:
            if self._closed or self._home.loop_closed:
                raise StopAsyncIteration
            self._home.check_loop()
            if self._news.is_set():
                self._news = anyio.Event()
            await self._news.wait()
        if self._lost:
            lost, self._lost = self._lost, 0
            return StreamDelta(type="gap", lost=lost)
        return self._pieces.popleft()

    def take(self) -> list[StreamDelta]:
        """Return the pieces that are there, without waiting; a gap first where some were lost."""
        gap = [StreamDelta(type="gap", lost=self._lost)] if self._lost else []
        pieces = [*gap, *self._pieces]
        self._lost = 0
        self._pieces.clear()
        return pieces


class DeltaBroadcast:
    """Sends every delta to all subscribers and never waits for one."""

    def __init__(self, home: LoopAffinity) -> None:
        self._home = home
        # Weak: a cursor that was dropped without being closed takes no more pieces.
        self._cursors: WeakSet[DeltaCursor] = WeakSet()
        self._closed = False

    def subscribe(self) -> DeltaCursor:
        """Listen from now on."""
        cursor = DeltaCursor(self._home)
        if self._closed:
            cursor.close()
        self._cursors.add(cursor)
        return cursor

    @property
    def has_subscribers(self) -> bool:
        """True if there is a subscriber."""
        return bool(self._cursors)

    def publish(self, delta: StreamDelta) -> None:
        """Add a piece for every subscriber."""
        for cursor in tuple(self._cursors):
            cursor.push(delta)

    def close(self) -> None:
        """End all cursors after what they have."""
        self._closed = True
        for cursor in tuple(self._cursors):
            cursor.close()


class ReplyStreamer:
    """One reply as it is being said: masked across pieces, with offsets, starting over when the model does."""

    def __init__(self, hub: DeltaBroadcast, secrets: SecretRegistry, reply_id: str) -> None:
        self._hub = hub
        self._secrets = secrets
        self._reply_id = reply_id
        self._attempt = 1
        self._begin()

    def _begin(self) -> None:
        self._streams: dict[str, StreamMasker] = {}
        self._offsets: dict[str, int] = {}
        self._text: list[str] = []

    @property
    def text(self) -> str | None:
        """The words said so far, masked; None where there are none."""
        held = self._streams["text"].finish() if "text" in self._streams else ""
        return "".join(self._text) + held or None

    def feed(self, kind: Literal["text", "reasoning", "tool_call"], text: str, tool_name: str | None = None) -> None:
        """Feed the next piece of its kind."""
        stream = self._streams.get(kind)
        if stream is None:
            stream = self._streams[kind] = self._secrets.stream()
        self._publish(kind, stream.feed(text), None if tool_name is None else self._secrets.mask(tool_name))

    def reset(self) -> None:
        """Void what was said: another attempt begins, or the reply was given up."""
        self._hub.publish(StreamDelta(type="reset", reply_id=self._reply_id, attempt=self._attempt))
        self._attempt += 1
        self._begin()

    def finish(self) -> None:
        """Publish the text that masking still held back."""
        for kind in ("text", "reasoning", "tool_call"):
            if kind in self._streams:
                self._publish(kind, self._streams[kind].finish(), None)

    def _publish(self, kind: Literal["text", "reasoning", "tool_call"], text: str, tool_name: str | None) -> None:
        if not text and tool_name is None:
            return
        if kind == "text":
            self._text.append(text)
        offset = self._offsets.get(kind, 0)
        self._offsets[kind] = offset + len(text)
        if self._hub.has_subscribers:
            self._hub.publish(
                StreamDelta(
                    type=kind,
                    reply_id=self._reply_id,
                    attempt=self._attempt,
                    offset=offset,
                    text=text,
                    tool_name=tool_name,
                )
            )
