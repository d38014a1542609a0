"""A disk that remembers what was asked of it, in order."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import TypeVar

from agentcore.record import Disk
from agentcore.testing.disk_wrapper import DiskOperation, DiskWrapper

__all__ = ["RecordingDisk"]

T = TypeVar("T")


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
        """What was done so far, in the order in which it was done."""
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
