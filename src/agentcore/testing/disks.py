"""Disks for tests: one on which operations fail or hang, and one that records what was asked of it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from threading import Event, Lock
from typing import Literal, Protocol, TypeVar

import anyio.to_thread

from agentcore.record import Disk, RealDisk

T = TypeVar("T")

DiskOperationName = Literal[
    "open_append",
    "write",
    "sync",
    "truncate",
    "replace",
    "sync_folder",
    "read",
    "make_folder",
    "remove_folder",
]
"""The methods of `agentcore.record.Disk`."""


@dataclass(frozen=True, slots=True)
class DiskOperation:
    """One thing that was asked of a disk."""

    name: DiskOperationName
    path: str
    """The file or folder; of an operation on a descriptor, what was opened."""
    data: bytes = b""
    """Of a write."""
    length: int = 0
    """Of a truncate."""
    target: str = ""
    """Of a replace: the new name."""


class Perform(Protocol):
    """How a wrapper does one operation; the operation does itself when `act` is called."""

    def __call__(self, operation: DiskOperation, act: Callable[[], T], /) -> T: ...


class DiskWrapper:
    """A disk that passes every operation through one function, and then to another disk."""

    def __init__(self, disk: Disk | None, perform: Perform) -> None:
        self._disk: Disk = disk or RealDisk()
        self._perform = perform
        self._paths: dict[int, str] = {}

    def open_append(self, path: str) -> int:
        """See `agentcore.record.Disk`, for all of these."""
        descriptor = self._perform(DiskOperation("open_append", path), lambda: self._disk.open_append(path))
        self._paths[descriptor] = path
        return descriptor

    def write(self, descriptor: int, data: bytes) -> None:
        operation = DiskOperation("write", self._paths[descriptor], data=data)
        self._perform(operation, lambda: self._disk.write(descriptor, data))

    def sync(self, descriptor: int) -> None:
        self._perform(DiskOperation("sync", self._paths[descriptor]), lambda: self._disk.sync(descriptor))

    def truncate(self, descriptor: int, length: int) -> None:
        operation = DiskOperation("truncate", self._paths[descriptor], length=length)
        self._perform(operation, lambda: self._disk.truncate(descriptor, length))

    def replace(self, source: str, target: str) -> None:
        operation = DiskOperation("replace", source, target=target)
        self._perform(operation, lambda: self._disk.replace(source, target))

    def sync_folder(self, path: str) -> None:
        self._perform(DiskOperation("sync_folder", path), lambda: self._disk.sync_folder(path))

    def read(self, path: str, start: int = 0) -> bytes:
        return self._perform(DiskOperation("read", path), lambda: self._disk.read(path, start))

    def make_folder(self, path: str) -> None:
        self._perform(DiskOperation("make_folder", path), lambda: self._disk.make_folder(path))

    def remove_folder(self, path: str) -> None:
        self._perform(DiskOperation("remove_folder", path), lambda: self._disk.remove_folder(path))


class RecordingDisk(DiskWrapper):
    """Records what the file operations of a store were, each when it has succeeded.

        disk = RecordingDisk()
        store = FileStore(folder, disk=disk)

    Args:
        disk: What does the work; the real one by default.
    """

    def __init__(self, disk: Disk | None = None) -> None:
        super().__init__(disk, self._record)
        self._lock = Lock()
        self._operations: list[DiskOperation] = []

    @property
    def operations(self) -> Sequence[DiskOperation]:
        """The operations so far, in order."""
        with self._lock:
            return tuple(self._operations)

    def clear(self) -> None:
        """Forget what was done so far."""
        with self._lock:
            self._operations.clear()

    def _record(self, operation: DiskOperation, act: Callable[[], T]) -> T:
        result = act()
        with self._lock:
            self._operations.append(operation)
        return result


class Hang:
    """An operation that does not come back until it is let go."""

    def __init__(self) -> None:
        self._reached = Event()
        self._released = Event()

    async def reached(self) -> None:
        """Wait until the operation has been asked for, and hangs."""
        # A limiter of its own: the thread that hangs may have a place in the usual one.
        await anyio.to_thread.run_sync(self._reached.wait, abandon_on_cancel=True, limiter=anyio.CapacityLimiter(1))

    def release(self) -> None:
        """Let it go on, as if nothing had been."""
        self._released.set()
        self._reached.set()  # whoever waited for it may not have been reached at all

    def hold(self) -> None:
        """Hang, in the thread of the operation."""
        self._reached.set()
        self._released.wait()


@dataclass(slots=True)
class _Fault:
    name: DiskOperationName | None
    first: int
    last: float
    happens: Callable[[DiskOperation], None]
    seen: int = field(default=0)

    def strikes(self, operation: DiskOperation) -> bool:
        if self.name not in {None, operation.name}:
            return False
        self.seen += 1
        return self.first <= self.seen <= self.last


class FaultyDisk(DiskWrapper):
    """Fails where it is told to, as an operating system does: with `OSError`, or by not coming back.

        disk = FaultyDisk()
        store = FileStore(folder, disk=disk)
        ...
        disk.fail("sync", code=errno.EIO)          # the next sync, and only that
        disk.fail(at=3, times=None)                # the third operation from here and all that follow: the disk is full
        with disk.hang("write") as hang:           # the next write does not come back before the block ends
            ...

    Args:
        disk: What does the work; the real one by default.
    """

    def __init__(self, disk: Disk | None = None) -> None:
        super().__init__(disk, self._check)
        self._lock = Lock()
        self._faults: list[_Fault] = []

    def fail(
        self,
        name: DiskOperationName | None = None,
        *,
        at: int = 1,
        times: int | None = 1,
        code: int = errno.ENOSPC,
        written: int = 0,
    ) -> None:
        """Let operations raise `OSError`.

        Args:
            name: Only operations of this name count; None is any, reads included.
            at: The how manieth of them, counted from here, is the first to fail.
            times: How many fail; None is all from there on.
            code: As in `errno`: ENOSPC, EIO, EROFS, ...
            written: So many bytes of a write that fails are written all the same, as on a disk that gets full.
        """

        def raise_it(operation: DiskOperation) -> None:
            if written and operation.name == "write":
                part = self._disk.open_append(operation.path)
                try:
                    self._disk.write(part, operation.data[:written])
                finally:
                    os.close(part)
            raise OSError(code, os.strerror(code), operation.path)

        self._add(_Fault(name, at, float("inf") if times is None else at + times - 1, raise_it))

    @contextmanager
    def hang(self, name: DiskOperationName | None = None, *, at: int = 1) -> Generator[Hang]:
        """Let one operation hang until it is released, at the latest when the block ends.

        Args:
            name: Only operations of this name count; None is any, reads included.
            at: The how manieth of them, counted from here.
        """
        hang = Hang()
        self._add(_Fault(name, at, at, lambda _: hang.hold()))
        try:
            yield hang
        finally:
            hang.release()

    def normalize(self) -> None:
        """Let nothing fail anymore. What hangs goes on hanging."""
        with self._lock:
            self._faults.clear()

    def _add(self, fault: _Fault) -> None:
        with self._lock:
            self._faults.append(fault)

    def _check(self, operation: DiskOperation, act: Callable[[], T]) -> T:
        with self._lock:
            struck = [fault for fault in self._faults if fault.strikes(operation)]
        for fault in struck:
            fault.happens(operation)
        return act()
