"""The event loop: tasks that are generators, files to wait for, and time. One thread, and nothing that is not used here.

A step of a task ends at a `yield`: of a `Flag` (until it is fired), of a number (so many seconds), or of None (until all others have had
their turn).
"""

from __future__ import annotations

import heapq
import select
import time
from collections import deque

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Generator, TypeVar

    T = TypeVar("T")
    Steps = Generator[Any, Any, T]


class Cancelled(BaseException):
    """Is raised where a task waits when it is to end."""


class Flag:
    """Something to wait for."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: list[tuple[Task, int]] = []

    def add(self, task: Task, ticket: int) -> None:
        self._waiting.append((task, ticket))

    def fire(self) -> None:
        """Go on with all that wait now."""
        waiting, self._waiting = self._waiting, []
        for task, ticket in waiting:
            task.wake(ticket)


class Task:
    """A generator that runs, step by step."""

    def __init__(self, loop: Loop, steps: Steps[Any]) -> None:
        self.done = False
        self.error: BaseException | None = None
        self.ended = Flag()
        self._loop = loop
        self._steps = steps
        # Grows with each wait, so that what wakes it too late wakes nobody.
        self._ticket = 0
        self._cancelling = False
        self.wake(0)

    def cancel(self) -> None:
        """Raise `Cancelled` where it waits; what it does then it may take its time for."""
        if not self.done:
            self._cancelling = True
            self.wake(self._ticket)

    def wake(self, ticket: int) -> None:
        """Go on, if it still waits for what the ticket was for."""
        if ticket == self._ticket and not self.done:
            self._loop.ready.append((self, ticket))

    def step(self, ticket: int) -> None:
        if ticket != self._ticket or self.done:
            return
        self._ticket += 1
        try:
            if self._cancelling:
                self._cancelling = False
                waited = self._steps.throw(Cancelled())
            else:
                waited = next(self._steps)
        except (StopIteration, Cancelled):
            self._end()
        except BaseException as error:  # noqa: ASYNC103 - it is passed on, and this is no async code
            self.error = error
            self._end()
            self._loop.failed(error)
        else:
            self._wait_for(waited)

    def _wait_for(self, waited: Any) -> None:
        if isinstance(waited, Flag):
            waited.add(self, self._ticket)
        elif waited is not None:
            self._loop.wake_later(waited, self, self._ticket)
        if waited is None or self._cancelling:
            self.wake(self._ticket)

    def _end(self) -> None:
        self.done = True
        self.ended.fire()


class Loop:
    """Runs tasks."""

    def __init__(self) -> None:
        self.ready: deque[tuple[Task, int]] = deque()
        self.failed: Callable[[BaseException], None] = _raise
        self._timers: list[tuple[float, int, Task, int]] = []
        self._count = 0
        self._files: dict[int, dict[int, Flag]] = {}
        self._epoll = select.epoll()

    def start(self, steps: Steps[Any]) -> Task:
        return Task(self, steps)

    def run(self, until: Task) -> None:
        """Run everything until this task has ended."""
        while not until.done:
            for descriptor, events in self._epoll.poll(self._patience()):
                self._notice(descriptor, events)
            # Not those that become ready meanwhile: files have their turn in between.
            for _ in range(len(self.ready)):
                task, ticket = self.ready.popleft()
                task.step(ticket)
            now = time.monotonic()
            while self._timers and self._timers[0][0] <= now:
                _, _, task, ticket = heapq.heappop(self._timers)
                task.wake(ticket)

    def readable(self, descriptor: int) -> Flag | None:
        """Return what to yield until there is something to read, or the end."""
        return self._watch(descriptor, select.EPOLLIN)

    def writable(self, descriptor: int) -> Flag | None:
        """Return what to yield until there is room to write, or nobody reads any more."""
        return self._watch(descriptor, select.EPOLLOUT)

    def forget(self, descriptor: int) -> None:
        """Note that a file is about to be closed, and wake those who wait for it."""
        flags = self._files.pop(descriptor, None)
        if flags is not None:
            try:
                self._epoll.unregister(descriptor)
            except OSError:
                pass
            for flag in flags.values():
                flag.fire()

    def wake_later(self, seconds: float, task: Task, ticket: int) -> None:
        self._count += 1
        heapq.heappush(self._timers, (time.monotonic() + seconds, self._count, task, ticket))

    def _watch(self, descriptor: int, event: int) -> Flag | None:
        flags = self._files.get(descriptor)
        mask = event | select.EPOLLONESHOT
        try:
            if flags is None:
                self._epoll.register(descriptor, mask)
                flags = self._files[descriptor] = {}
            elif event not in flags:
                for other in flags:
                    mask |= other
                self._epoll.modify(descriptor, mask)
        except PermissionError:
            # A file on a disk is always ready.
            return None
        return flags.setdefault(event, Flag())

    def _notice(self, descriptor: int, events: int) -> None:
        flags = self._files.get(descriptor)
        if flags is None:
            return
        either = select.EPOLLERR | select.EPOLLHUP
        fired = [event for event in flags if events & (event | either)]
        for event in fired:
            flags.pop(event).fire()
        mask = 0
        for event in flags:
            mask |= event
        if mask:
            self._epoll.modify(descriptor, mask | select.EPOLLONESHOT)

    def _patience(self) -> float:
        if self.ready:
            return 0
        if not self._timers:
            return -1
        return max(0.0, self._timers[0][0] - time.monotonic())


def _raise(error: BaseException) -> None:
    raise error
