"""The files that the tools of one conversation have seen, and the edits that can be undone."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Final, NamedTuple, final
from weakref import WeakValueDictionary

from agentcore.workspace import Workspace

_MOST_EDITS: Final = 10
_MOST_UNDO_BYTES: Final = 32 * 1024 * 1024


class Before(NamedTuple):
    """The content before an edit, and a digest of the content after it."""

    data: bytes | None
    """The file's content; None where there was no file."""
    left: bytes
    """A digest of the content after the edit."""

    def is_as_left(self, data: bytes) -> bool:
        """Return True if this is the content after the edit: nothing changed it since."""
        return _digest(data) == self.left


@final
class History:
    """The last edits of each file; when they take too much room, those of the file that was left alone longest go first."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, list[Before]] = OrderedDict()
        self._bytes = 0

    def add(self, path: str, before: bytes | None, after: bytes) -> None:
        """Remember an edit."""
        edits = self._files.setdefault(path, [])
        self._files.move_to_end(path)
        edits.append(Before(before, _digest(after)))
        self._bytes += len(before or b"")
        while len(edits) > _MOST_EDITS:
            self._drop(path, 0)
        while self._bytes > _MOST_UNDO_BYTES:
            self._drop(next(iter(self._files)), 0)

    def last(self, path: str) -> Before | None:
        """Return the last edit of a file."""
        edits = self._files.get(path)
        return edits[-1] if edits else None

    def forget_last(self, path: str) -> None:
        """Forget the last edit of a file: it was undone."""
        self._drop(path, -1)

    def _drop(self, path: str, place: int) -> None:
        self._bytes -= len(self._files[path].pop(place).data or b"")
        if not self._files[path]:
            del self._files[path]


_MOST_FILES: Final = 2_000
_MOST_BYTES: Final = 16 * 1024 * 1024
_LARGEST_KEPT: Final = 1024 * 1024


class LastSeen(NamedTuple):
    """A file as it was when it was last shown or written."""

    digest: bytes
    data: bytes | None
    """None of a large file, or of one that was seen long ago."""


@final
class Memory:
    """Shared by the tools of one conversation, for as long as one of them is open."""

    def __init__(self, workspace: Workspace) -> None:
        self.workspace = workspace
        self.history = History()
        self._seen: OrderedDict[str, LastSeen] = OrderedDict()
        self._bytes = 0
        self.missing_programs: set[str] = set()
        """Those that a tool has looked for in the workspace, and not found."""

    def saw(self, path: str, data: bytes) -> None:
        """Remember how a file is."""
        self.forget(path)
        kept = data if len(data) <= _LARGEST_KEPT else None
        self._seen[path] = LastSeen(_digest(data), kept)
        self._bytes += len(kept or b"")
        while len(self._seen) > _MOST_FILES:
            self.forget(next(iter(self._seen)))
        if self._bytes > _MOST_BYTES:
            self._drop_contents()

    def forget(self, path: str) -> None:
        """Forget a file: it is gone."""
        if (seen := self._seen.pop(path, None)) is not None:
            self._bytes -= len(seen.data or b"")

    def changed_since(self, path: str, data: bytes) -> LastSeen | None:
        """Return the last sight of a file if the file has changed since; None also for a file that was never seen."""
        seen = self._seen.get(path)
        return None if seen is None or seen.digest == _digest(data) else seen

    def _drop_contents(self) -> None:
        for path, seen in self._seen.items():
            if seen.data is not None:
                self._bytes -= len(seen.data)
                self._seen[path] = LastSeen(seen.digest, None)
                if self._bytes <= _MOST_BYTES:
                    return


# By the workspace's identity, which is not another's for as long as the memory holds it.
_OPEN: Final[WeakValueDictionary[tuple[int, str], Memory]] = WeakValueDictionary()


def memory_of(workspace: Workspace, conversation_id: str) -> Memory:
    """Return the memory of a conversation in a workspace: a new one if none of its tools is open."""
    key = (id(workspace), conversation_id)
    memory = _OPEN.get(key)
    if memory is None:
        memory = _OPEN[key] = Memory(workspace)
    return memory


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
