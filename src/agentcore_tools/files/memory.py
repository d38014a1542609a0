"""What the tools of one conversation know of files: how they last saw them, and what they were before they were edited."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from typing import Final, NamedTuple, final
from weakref import WeakValueDictionary

from agentcore.workspace import Workspace
from agentcore_tools.files.undo import History

__all__ = ["Memory", "Seen", "memory_of"]

_MOST_FILES: Final = 2_000
_MOST_BYTES: Final = 16 * 1024 * 1024
_LARGEST_KEPT: Final = 1024 * 1024


class Seen(NamedTuple):
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
        self._seen: OrderedDict[str, Seen] = OrderedDict()
        self._bytes = 0

    def saw(self, path: str, data: bytes) -> None:
        """Remember how a file is."""
        self.forget(path)
        kept = data if len(data) <= _LARGEST_KEPT else None
        self._seen[path] = Seen(_digest(data), kept)
        self._bytes += len(kept or b"")
        while len(self._seen) > _MOST_FILES:
            self.forget(next(iter(self._seen)))
        if self._bytes > _MOST_BYTES:
            self._drop_contents()

    def forget(self, path: str) -> None:
        """Forget a file: it is gone."""
        if (seen := self._seen.pop(path, None)) is not None:
            self._bytes -= len(seen.data or b"")

    def changed_since(self, path: str, data: bytes) -> Seen | None:
        """Give how a file was seen, where it was seen otherwise than it is. Of an unknown file nothing is said."""
        seen = self._seen.get(path)
        return None if seen is None or seen.digest == _digest(data) else seen

    def _drop_contents(self) -> None:
        for path, seen in self._seen.items():
            if seen.data is not None:
                self._bytes -= len(seen.data)
                self._seen[path] = Seen(seen.digest, None)
                if self._bytes <= _MOST_BYTES:
                    return


# By the workspace's identity, which is not another's for as long as the memory holds it.
_OPEN: Final[WeakValueDictionary[tuple[int, str], Memory]] = WeakValueDictionary()


def memory_of(workspace: Workspace, conversation_id: str) -> Memory:
    """Give the memory of a conversation in a workspace; a new one where none of its tools is open."""
    key = (id(workspace), conversation_id)
    memory = _OPEN.get(key)
    if memory is None:
        memory = _OPEN[key] = Memory(workspace)
    return memory


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
