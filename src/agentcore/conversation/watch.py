"""Following the log: a cursor and a bell. A watcher that sleeps costs nothing; one that is slow reads later."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import anyio
from anyio.lowlevel import checkpoint

from agentcore.conversation.guards import LoopAffinity
from agentcore.events import Event
from agentcore.record import ConversationState

_STRIDE = 16
"""Events a cursor gives between two checkpoints: it neither starves other tasks nor pays for each event."""


def check_seq(name: str, seq: int | object) -> int:
    """Refuse what is no number of an event; True is one to Python."""
    if not isinstance(seq, int) or isinstance(seq, bool):
        raise TypeError(f"{name}={seq!r}: it is the seq of an event, an int such as `state.head` or `event.seq`.")
    return seq


class HeadSignal:
    """Rung once per group commit; one event wakes all who wait."""

    def __init__(self, home: LoopAffinity) -> None:
        self._home = home
        self._rung = anyio.Event()
        self._waiting = 0
        self._listeners: list[Callable[[], None]] = []
        self._closed = False

    @property
    def closed(self) -> bool:
        """True if nothing will ever be appended again."""
        return self._closed or self._home.loop_closed

    def notify(self) -> None:
        """Wake all who wait."""
        for listener in tuple(self._listeners):
            listener()
        if self._waiting:
            self._rung.set()
            self._rung = anyio.Event()

    def close(self) -> None:
        """Wake all who wait, for the last time."""
        self._closed = True
        self.notify()

    def listen(self, listener: Callable[[], None]) -> Callable[[], None]:
        """Have a function called at each ring, which neither waits nor raises; call what is returned to end that."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    async def wait(self) -> None:
        """Wait for the next ring; not at all when the bell is closed.

        Raises:
            ConversationError: The caller is in another event loop.
        """
        if self.closed:
            await checkpoint()
            return
        self._home.check_loop()
        self._waiting += 1
        try:
            await self._rung.wait()
        finally:
            self._waiting -= 1


class EventCursor:
    """Events of a log in order, from a point on: first those that are there, then each as it comes, none twice.

    An object without a scope or a task: break off, come back, or go on in another task as you like. It ends after the
    last event when the conversation closes.
    """

    def __init__(self, state: ConversationState, head_signal: HeadSignal, after: int | None) -> None:
        if after is not None and check_seq("after", after) < 0:
            raise ValueError(f"after={after}: it is the seq of the last event you have, or None for all of them.")
        self._state = state
        self._bell = head_signal
        self._seq = after or 0
        self._given = 0

    @property
    def seq(self) -> int:
        """The seq of the last event given: pass it as `after` to go on elsewhere."""
        return self._seq

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> Event:
        if self._given % _STRIDE == 0:
            await checkpoint()
        while self._seq >= self._state.head:
            if self._bell.closed:
                raise StopAsyncIteration
            self._given = 0
            await self._bell.wait()
        self._given += 1
        self._seq += 1
        return self._state.events[self._seq - 1]
