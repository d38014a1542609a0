"""What the disks for tests have in common: each operation of another disk goes through one method."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from agentcore.record import Disk, RealDisk

__all__ = ["DiskOperation", "DiskOperationName", "DiskWrapper"]

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
