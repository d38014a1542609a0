"""What files were before they were edited, for as long as the conversation is open."""

from __future__ import annotations

import hashlib
from collections import OrderedDict, deque
from typing import Final, NamedTuple, final

__all__ = ["Before", "History"]

_MOST_PER_FILE: Final = 10
_MOST_BYTES: Final = 32 * 1024 * 1024


class Before(NamedTuple):
    """What an edit found, and what it left."""

    data: bytes | None
    """The file's content; None where there was no file."""
    left: bytes
    """A digest of the content after the edit."""

    def is_as_left(self, data: bytes) -> bool:
        """Say whether this is what the edit left, so that nobody changed it since."""
        return _digest(data) == self.left


@final
class History:
    """The last edits of each file; when they take too much room, those of the file that was left alone longest go first."""

    def __init__(self) -> None:
        self._files: OrderedDict[str, deque[Before]] = OrderedDict()
        self._bytes = 0

    def add(self, path: str, before: bytes | None, after: bytes) -> None:
        """Remember an edit."""
        edits = self._files.setdefault(path, deque())
        self._files.move_to_end(path)
        edits.append(Before(before, _digest(after)))
        self._bytes += len(before or b"")
        while len(edits) > _MOST_PER_FILE:
            self._drop_oldest(path)
        while self._bytes > _MOST_BYTES:
            self._drop_oldest(next(iter(self._files)))

    def last(self, path: str) -> Before | None:
        """Give the last edit of a file."""
        edits = self._files.get(path)
        return edits[-1] if edits else None

    def forget_last(self, path: str) -> None:
        """Forget the last edit of a file: it was undone."""
        self._bytes -= len(self._files[path].pop().data or b"")
        if not self._files[path]:
            del self._files[path]

    def _drop_oldest(self, path: str) -> None:
        self._bytes -= len(self._files[path].popleft().data or b"")
        if not self._files[path]:
            del self._files[path]


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()
