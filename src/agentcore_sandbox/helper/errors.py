"""Errors that travel to the other side, with the reasons and sentences of `agentcore.workspace`."""

from __future__ import annotations

import errno

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

_REASONS = {
    errno.ENOENT: ("missing", "No such file or folder: {path!r}."),
    errno.EISDIR: ("is_a_folder", "{path!r} is a folder, not a file."),
    errno.ENOTDIR: ("not_a_folder", "{path!r} is not a folder, or a part of that path is not."),
    errno.EEXIST: ("not_a_folder", "{path!r} is not a folder."),
    errno.ENXIO: ("not_a_file", "{path!r} is not a file but a device, a pipe or a socket."),
    errno.EACCES: ("denied", "There is no permission to do that with {path!r}."),
    errno.EPERM: ("denied", "There is no permission to do that with {path!r}."),
    errno.EROFS: ("denied", "{path!r} is on a file system that is read-only."),
    errno.ELOOP: ("invalid", "{path!r} is a link that leads back to itself."),
    errno.ENAMETOOLONG: ("invalid", "{path!r} is longer than a path can be."),
}
# A frame has room for this, however it is escaped.
_LONGEST = 4_000


class Refused(Exception):
    """Something that cannot be done."""

    def __init__(self, message: str, kind: str = "workspace", **more: Any) -> None:
        super().__init__(message)
        self.error: dict[str, Any] = {"kind": kind, "message": message[:_LONGEST]}
        self.error.update(more)


def path_refused(path: str, reason: str, message: str) -> Refused:
    """Return the error for something that cannot be done with a path."""
    return Refused(message, "path", path=path[:_LONGEST], reason=reason)


class path_errors:  # noqa: N801 - read as a function; contextlib would cost the start some milliseconds
    """Turn what the system says about a path into an error that travels."""

    def __init__(self, path: str) -> None:
        self._path = path

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, exc_type: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        path = self._path
        if isinstance(error, OSError):
            reason, sentence = _REASONS.get(
                error.errno or 0, ("failed", "{path!r} could not be used: " + str(error.strerror) + ".")
            )
            raise path_refused(path, reason, sentence.replace("{path!r}", repr(path))) from error
        if isinstance(error, ValueError):
            # As with a NUL in it.
            raise path_refused(path, "invalid", f"{path!r} can't be a path: {error}.") from error
