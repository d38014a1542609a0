"""A disk that loses its power: what was not synced is gone, or is there in part.

The model is that of POSIX, without the kindnesses of any file system: a file's bytes survive if the file was synced after
they were written; a name (of a file, of a folder, a new one, a removal) survives if the folder that holds it was synced
after it was changed. Of what was not synced, the beginning may have reached the disk: the bytes of one file in their
order, the names of one folder in theirs; between files and folders there is no order.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from random import Random
from threading import Lock
from typing import Literal, TypeAlias, TypeVar

from agentcore.record import Disk, RealDisk
from agentcore.testing.disks import DiskOperation, DiskWrapper

T = TypeVar("T")

Survival: TypeAlias = Literal["least", "most"] | Random
"""The part of the unsynced data that is left: nothing ("least"), all ("most"), or a beginning, chosen by a `Random`."""


class PowerLost(OSError):
    """The power is gone: nothing is done anymore."""

    def __init__(self) -> None:
        super().__init__(errno.EIO, "The power was lost")


@dataclass(eq=False, slots=True)
class _File:
    synced: bytearray = field(default_factory=bytearray)
    changes: list[bytes | int] = field(default_factory=list[bytes | int])
    """Since then, in order: bytes that were appended, or the length that it was cut to."""

    def sync(self) -> None:
        for change in self.changes:
            _change(self.synced, change)
        self.changes.clear()

    def left(self, kept: Survival) -> bytes:
        content = bytearray(self.synced)
        changes = _beginning(self.changes, kept)
        for change in changes:
            _change(content, change)
        if isinstance(kept, Random) and len(changes) < len(self.changes):
            torn = self.changes[len(changes)]
            if isinstance(torn, bytes):
                content += torn[: kept.randrange(len(torn) + 1)]
        return bytes(content)


@dataclass(eq=False, slots=True)
class _Folder:
    synced: dict[str, _Node] = field(default_factory=dict[str, "_Node"])
    changes: list[dict[str, _Node | None]] = field(default_factory=list[dict[str, "_Node | None"]])
    """Since then, in order: names and what they stand for now, None for nothing."""

    def sync(self) -> None:
        self.synced = self.now()
        self.changes.clear()

    def now(self) -> dict[str, _Node]:
        return _renamed(self.synced, self.changes)

    def left(self, kept: Survival) -> dict[str, _Node]:
        return _renamed(self.synced, _beginning(self.changes, kept))


_Node: TypeAlias = _File | _Folder


def _change(content: bytearray, change: bytes | int) -> None:
    if isinstance(change, int):
        del content[change:]
    else:
        content += change


def _renamed(names: dict[str, _Node], changes: list[dict[str, _Node | None]]) -> dict[str, _Node]:
    result: dict[str, _Node | None] = dict(names)
    for change in changes:
        result.update(change)
    return {name: node for name, node in result.items() if node is not None}


def _beginning(changes: list[T], kept: Survival) -> list[T]:
    match kept:
        case "least":
            return []
        case "most":
            return changes
        case Random():
            return changes[: kept.randrange(len(changes) + 1)]


class CrashingDisk(DiskWrapper):
    """Works like the real disk, in a real folder, and knows what would be left of it without power.

        disk = CrashingDisk(folder, lose_power_at=7)
        store = FileStore(folder, disk=disk)
        ...                                        # until the seventh operation raises PowerLost, and all after it
        disk.restore(other_folder)
        found = FileStore(other_folder)

    What is in the folder when the disk is first used counts as synced. Files outside of it are not looked after, nor are
    those that are made past this disk, like a lock.

    Args:
        folder: What is looked after.
        lose_power_at: The operation, counted from 1, during which the power is lost: it is begun and not finished. Reads
            are not counted, they change nothing.
        disk: What does the work; the real one by default.
    """

    def __init__(
        self, folder: str | os.PathLike[str], *, lose_power_at: int | None = None, disk: Disk | None = None
    ) -> None:
        super().__init__(disk, self._follow)
        self._root = os.fspath(folder)
        self._seen: _Folder | None = None
        self._lose_power_at = lose_power_at
        self._lock = Lock()
        self._power = True
        self._count = 0

    @property
    def operations(self) -> int:
        """How many operations were begun, reads not counted."""
        return self._count

    @property
    def power(self) -> bool:
        """True if there still is power."""
        return self._power

    def lose_power(self) -> None:
        """Lose the power now."""
        with self._lock:
            self._power = False

    def restore(self, folder: str | os.PathLike[str], *, kept: Survival = "least") -> None:
        """Write what would be found after the power came back into a folder, which is made. Blocks.

        Call it as often as you like, with different folders, to look at different outcomes.

        Args:
            folder: Where to; there must be nothing yet.
            kept: What is left of that which was not synced.
        """
        with self._lock:
            tree = self._tree()
            os.makedirs(folder)
            _write_tree(tree, os.fspath(folder), kept)

    def _tree(self) -> _Folder:
        # Read by whoever comes first, which is a thread: making a disk waits for nothing.
        if self._seen is None:
            self._root = os.path.abspath(self._root)
            self._seen = _read_tree(self._root)
        return self._seen

    def _follow(self, operation: DiskOperation, act: Callable[[], T]) -> T:
        # One at a time: so that the order in which they are counted is the one in which they happen.
        with self._lock:
            if not self._power:
                raise PowerLost
            if operation.name == "read":
                return act()
            tree = self._tree()
            self._count += 1
            if self._count == self._lose_power_at:
                self._power = False
                if not operation.name.startswith("sync"):
                    self._begin(tree, operation)
                raise PowerLost
            result = act()
            self._begin(tree, operation)
            return result

    def _begin(self, tree: _Folder, operation: DiskOperation) -> None:
        folder, name = self._find_folder(tree, operation.path)
        if folder is None:
            return  # not in the folder that is looked after
        node = folder.now().get(name)
        match operation.name:
            case "open_append" if node is None:
                folder.changes.append({name: _File()})
            case "make_folder" if node is None:
                folder.changes.append({name: _Folder()})
            case "write" if isinstance(node, _File):
                node.changes.append(operation.data)
            case "truncate" if isinstance(node, _File):
                node.changes.append(operation.length)
            case "sync" | "sync_folder" if node is not None:
                node.sync()
            case "replace":
                target, new_name = self._find_folder(tree, operation.target)
                if target is not None:
                    _move(node, (folder, name), (target, new_name))
            case "remove_folder" if isinstance(node, _Folder):
                _empty(node)
                folder.changes.append({name: None})
            case _:
                pass

    def _find_folder(self, tree: _Folder, path: str) -> tuple[_Folder | None, str]:
        relative = os.path.relpath(path, self._root)
        if relative == os.curdir:
            return _Folder({os.curdir: tree}), os.curdir
        *above, name = relative.split(os.sep)
        folder: _Node | None = tree
        for part in above:
            folder = folder.now().get(part) if isinstance(folder, _Folder) else None
        return (folder if isinstance(folder, _Folder) else None), name


def _move(node: _Node | None, source: tuple[_Folder, str], target: tuple[_Folder, str]) -> None:
    (folder, name), (new_folder, new_name) = source, target
    if folder is new_folder:
        folder.changes.append({name: None, new_name: node})  # in one step
    else:
        new_folder.changes.append({new_name: node})
        folder.changes.append({name: None})


def _empty(folder: _Folder) -> None:
    for name, node in folder.now().items():
        if isinstance(node, _Folder):
            _empty(node)
        folder.changes.append({name: None})


def _read_tree(path: str) -> _Folder:
    folder = _Folder()
    for entry in _entries(path):
        if entry.is_dir(follow_symlinks=False):
            folder.synced[entry.name] = _read_tree(entry.path)
        elif entry.is_file(follow_symlinks=False):
            folder.synced[entry.name] = _File(bytearray(RealDisk().read(entry.path)))
    return folder


def _entries(path: str) -> Iterator[os.DirEntry[str]]:
    if os.path.isdir(path):
        with os.scandir(path) as entries:
            yield from entries


def _write_tree(folder: _Folder, path: str, kept: Survival) -> None:
    for name, node in folder.left(kept).items():
        place = os.path.join(path, name)
        if isinstance(node, _File):
            with open(place, "xb") as file:
                file.write(node.left(kept))
        else:
            os.mkdir(place)
            _write_tree(node, place, kept)
