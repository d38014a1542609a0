"""A log that is read and not held: another process writes it, or it can't be continued here."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from typing import Any

import anyio
from anyio.abc import TaskGroup

from agentcore.conversation import DeltaCursor
from agentcore.errors import StoreError
from agentcore.logs import get_logger
from agentcore.record import ConversationState, LogReader, Store
from agentcore.wire.requests import ConversationInfo
from agentcore_serve.describe import describe
from agentcore_serve.records import ConversationRow
from agentcore_serve.settings import ServeLimits

_log = get_logger(__name__)


class GrowthSignal:
    """Wakes those who wait for a log to grow."""

    def __init__(self) -> None:
        self._event = anyio.Event()
        self._listeners: list[Callable[[], None]] = []
        self.closed = False
        """True if nothing more will be read."""

    def notify(self) -> None:
        """Wake all who wait."""
        for listener in tuple(self._listeners):
            listener()
        self._event.set()
        self._event = anyio.Event()

    def close(self) -> None:
        """Wake all who wait, for the last time."""
        self.closed = True
        self.notify()

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have a function called when the log has grown; call what is returned to end that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def wait(self) -> None:
        """Wait until the log has grown; not at all where nothing more will be read."""
        if not self.closed:
            await self._event.wait()


class Followed:
    """A log that is read on for as long as somebody follows it. `Watched` for streams, as `Served` is."""

    def __init__(
        self,
        conversation_id: str,
        row: ConversationRow | None,
        reader: LogReader,
        holder: str | None,
        problem: str | None,
    ) -> None:
        self.id = conversation_id
        self.row = row
        self._reader = reader
        self.holder = holder
        """The process that writes it."""
        self.problem = problem
        """The reason why it can't be continued here."""
        self.watchers = 0
        self.head_signal = GrowthSignal()
        self.streams: Any = None
        """Those who watch it, where somebody does."""

    @property
    def state(self) -> ConversationState:
        """The state that what was read so far folds to."""
        return self._reader.state

    def deltas(self) -> DeltaCursor | None:
        """Return None: what is being said is in the other process."""
        return None

    def info(self) -> ConversationInfo:
        """Return its description."""
        return describe(self.state, self.row, holder=self.holder, problem=self.problem)

    @contextmanager
    def watching(self) -> Generator[None]:
        """Count one who follows it."""
        self.watchers += 1
        try:
            yield
        finally:
            self.watchers -= 1

    async def read_on(self) -> None:
        """Read what came since the last time."""
        if await self._reader.read():
            self.head_signal.notify()

    async def keep_reading(
        self, sleep: Callable[[], Awaitable[object]], is_over: Callable[[], Awaitable[bool]]
    ) -> None:
        """Read it again and again, until nobody follows it, or it can be opened here.

        Args:
            sleep: Waits until the next time.
            is_over: Returns whether to end.
        """
        try:
            while True:
                await sleep()
                await self.read_on()
                if await is_over():
                    return
        except StoreError as error:
            _log.info("following ended", conversation=self.id, error=str(error))
        finally:
            self.head_signal.close()


class Followers:
    """The logs that are followed and not held, each read once for all who follow it.

    Args:
        store: Where they are.
        limits: How often they are read, and for how long when nobody follows them.
        tasks: Where they are read.
        clock: Seconds.
    """

    def __init__(self, store: Store, limits: ServeLimits, tasks: TaskGroup, clock: Callable[[], float]) -> None:
        self._store = store
        self._limits = limits
        self._tasks = tasks
        self._clock = clock
        self._followed: dict[str, Followed] = {}

    async def follow(self, conversation_id: str, row: ConversationRow | None, problem: str | None) -> Followed:
        """Return a log as it is now, to be read on.

        Raises:
            StoreError: It can't be read.
        """
        followed = self._followed.get(conversation_id)
        if followed is None or followed.head_signal.closed:
            holder = await self._store.holder(conversation_id)
            reader = await LogReader.open(self._store, conversation_id)
            followed = Followed(conversation_id, row, reader, holder, problem)
            await followed.read_on()
            self._followed[conversation_id] = followed
            self._tasks.start_soon(self._keep_reading, followed, name="follow a log")
        return followed

    async def _keep_reading(self, followed: Followed) -> None:
        used = self._clock()

        async def is_over() -> bool:
            nonlocal used
            if followed.watchers:
                used = self._clock()
            # One that was held elsewhere, and is not any more, is opened here when it is asked for again.
            is_free = followed.holder is not None and await self._store.holder(followed.id) is None
            return is_free or self._clock() - used > self._limits.idle_seconds

        try:
            await followed.keep_reading(lambda: anyio.sleep(self._limits.follow_seconds), is_over)
        finally:
            if self._followed.get(followed.id) is followed:
                del self._followed[followed.id]
