"""All streams of a server: `async with StreamHub() as hub`, in the lifespan.

It owns the tasks that wake watchers, the encoded events, and the one task that looks for silence and stalled sends. The
watchers run in the tasks of the server's connections.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from time import monotonic
from typing import Any, Self

import anyio
from anyio import AsyncContextManagerMixin
from anyio.abc import TaskGroup

from agentcore_serve.refused import Refused
from agentcore_serve.streams.conversation import ConversationStreams
from agentcore_serve.streams.encode import EncodedEvents
from agentcore_serve.streams.timing import Timing
from agentcore_serve.streams.watched import Watched
from agentcore_serve.streams.watcher import Watcher, dismiss_all


class StreamHub(AsyncContextManagerMixin):
    """Makes the streams of conversations and ends them all."""

    def __init__(self, timing: Timing | None = None, encoded: EncodedEvents | None = None) -> None:
        self.timing = timing or Timing()
        self.encoded = encoded or EncodedEvents()
        self._watched: dict[ConversationStreams, None] = {}
        self._tasks: TaskGroup | None = None
        self._dismissed = False

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self]:
        async with anyio.create_task_group() as self._tasks:
            self._tasks.start_soon(self._sweep, name="look for silent and stalled streams")
            try:
                yield self
            finally:
                # Whoever ends a server says `bye` first. Where that was not done, watchers end without being waited for.
                self._dismissed = True
                for watcher in self._watchers():
                    watcher.dismiss("draining")
                self._tasks.cancel_scope.cancel("the streams are closed")

    def __len__(self) -> int:
        """The number of streams that are open."""
        return sum(map(len, self._watched))

    def of(self, watched: Watched) -> ConversationStreams:
        """Make the streams of a conversation: once for as long as it is open."""
        return ConversationStreams(watched, self)

    async def bye_all(self, code: str = "draining") -> None:
        """Send `bye` to all who watch, wait a bounded time for them to end, and take nobody else."""
        self._dismissed = True
        await dismiss_all(self._watchers(), code, self.timing.goodbye)

    def join(self, streams: ConversationStreams) -> None:
        """Note that somebody watches a conversation. For `ConversationStreams` alone.

        Raises:
            Refused: The server ends (503).
        """
        if self._dismissed or self._tasks is None:
            raise Refused(503, "draining", "The server is about to end. Connect again in a moment.", retry_after=1)
        self._watched[streams] = None

    def leave(self, streams: ConversationStreams) -> None:
        """Note that nobody watches a conversation. For `ConversationStreams` alone."""
        self._watched.pop(streams, None)

    def start(self, task: Callable[[], Coroutine[Any, Any, None]], name: str) -> None:
        """Run a task until the hub is left. For `ConversationStreams` alone."""
        assert self._tasks is not None
        self._tasks.start_soon(task, name=name)

    def _watchers(self) -> list[Watcher]:
        return [watcher for streams in self._watched for watcher in streams.watchers]

    async def _sweep(self) -> None:
        timing = self.timing
        while True:
            await anyio.sleep(timing.sweep)
            now = monotonic()
            for watcher in self._watchers():
                watcher.sweep(now, ping=timing.ping, stall=timing.stall)
