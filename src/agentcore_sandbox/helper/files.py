"""Files: what `agentcore/workspace/files.py` does on a machine, done in a box. Nothing of it waits but for the stream."""

from __future__ import annotations

import errno
import os
import stat as modes

from agentcore_sandbox.helper.channel import Channel, number_in, text_in
from agentcore_sandbox.helper.errors import Refused, path_errors, path_refused
from agentcore_sandbox.helper.stream import MAX_PAYLOAD, encode_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from agentcore_sandbox.helper.loop import Steps

_LONGEST_READ = 1 << 62
# So many entries of a folder are looked at before others have their turn.
_ENTRIES_AT_ONCE = 500


def shown_name(name: str) -> str:
    """Make text of a name that any log and wire can carry."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def check_is_file(path: str, found: os.stat_result) -> None:
    if modes.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "a folder")
    if not modes.S_ISREG(found.st_mode):
        raise path_refused(path, "not_a_file", f"{path!r} is not a file but a device, a pipe or a socket.")


def read(channel: Channel, root: str, asked: dict[str, Any]) -> Steps[dict[str, Any]]:
    """Send a file of at most so many bytes."""
    path, most = text_in(asked, "path"), number_in(asked, "max_bytes", 0, _LONGEST_READ)
    with path_errors(path):
        # A pipe that nobody writes to would be waited for.
        descriptor = os.open(os.path.join(root, path), os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        with path_errors(path):
            found = os.fstat(descriptor)
            check_is_file(path, found)
        if found.st_size > most:
            raise _too_large(path, found.st_size, most)
        # Files in /proc say that they have no bytes.
        total = 0
        while True:
            room = yield from channel.room()
            with path_errors(path):
                data = os.read(descriptor, min(room, most + 1 - total))
            if not data:
                return {}
            total += len(data)
            if total > most:
                raise _too_large(path, total, most)
            yield from channel.send(data)
    finally:
        os.close(descriptor)


def _too_large(path: str, size: int, most: int) -> Refused:
    return path_refused(
        path,
        "too_large",
        f"{path!r} has {size} bytes; at most {most} are read at once. Look at a part of it with a command "
        "(head, tail, sed), or allow more with max_bytes.",
    )


def write(channel: Channel, root: str, asked: dict[str, Any]) -> Steps[dict[str, Any]]:
    """Replace a file by what comes, or add that to it."""
    path, mode = text_in(asked, "path"), asked.get("mode")
    full = os.path.join(root, path)
    if asked.get("append"):
        with path_errors(path):
            descriptor = _open_to_append(path, full)
        try:
            yield from _store(channel, path, descriptor)
        finally:
            os.close(descriptor)
        return {}
    mode = 0o666 if mode is None else number_in(asked, "mode", 0, 0o7777) & 0o777
    with path_errors(path):
        new = Replacement(path, full, mode)
    try:
        yield from _store(channel, path, new.descriptor)
        with path_errors(path):
            new.put_in_place()
    finally:
        new.close()
    return {}


def _store(channel: Channel, path: str, descriptor: int) -> Steps[None]:
    while True:
        data = yield from channel.receive()
        if data is None:
            return
        with path_errors(path):
            write_all(descriptor, data)


def write_all(descriptor: int, data: bytes) -> None:
    """Write, however many calls it takes."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def _open_to_append(path: str, full: str) -> int:
    os.makedirs(os.path.dirname(full), exist_ok=True)
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
    descriptor = os.open(full, flags, 0o666)
    try:
        check_is_file(path, os.fstat(descriptor))
    except BaseException:
        os.close(descriptor)
        raise
    return descriptor


class Replacement:
    """A file that takes the place of another when it is complete; before that, nothing of it is to be seen.

    A link is followed and stays; an existing file's mode stays, and its owner where this user may say so. A new one gets what the
    umask leaves of `mode`.
    """

    def __init__(self, path: str, full: str, mode: int) -> None:
        self.descriptor = -1
        self._target = os.path.realpath(full)
        self._old = _existing_file(path, self._target)
        folder = os.path.dirname(self._target)
        os.makedirs(folder, exist_ok=True)
        # In the same folder, because renaming is atomic only within a file system.
        self._beside = os.path.join(folder, f".{os.urandom(8).hex()}.agentcore-tmp")
        # What replaces a private file is private from the start.
        mode = mode if self._old is None else 0o600
        self.descriptor = _open_without_name(folder, mode)
        self._is_named = self.descriptor < 0
        if self._is_named:
            self.descriptor = os.open(self._beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)

    def put_in_place(self) -> None:
        old = self._old
        if old is not None:
            try:
                os.fchown(self.descriptor, old.st_uid, old.st_gid)
            except PermissionError:
                pass
            os.fchmod(self.descriptor, modes.S_IMODE(old.st_mode))
        if not self._is_named:
            # `link` alone would link the link; with the folder from where a path counts, it follows it.
            os.link(_link_to(self.descriptor), self._beside, src_dir_fd=self.descriptor, follow_symlinks=True)
            self._is_named = True
        os.replace(self._beside, self._target)
        self._is_named = False

    def close(self) -> None:
        """Let go of it; what was not put in place is gone."""
        os.close(self.descriptor)
        if self._is_named:
            try:
                os.unlink(self._beside)
            except OSError:
                pass


def _open_without_name(folder: str, mode: int) -> int:
    """Open a file that is gone if this program is killed before it has a name; -1 where that cannot be had."""
    try:
        descriptor = os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, mode)
    except OSError:
        return -1  # the file system has none; another error comes again with a name
    if os.path.exists(_link_to(descriptor)):
        return descriptor
    os.close(descriptor)
    return -1


def _link_to(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"


def _existing_file(path: str, target: str) -> os.stat_result | None:
    try:
        # Not lstat: a link here means that it leads back to itself, and this says so.
        found = os.stat(target)
    except FileNotFoundError:
        return None
    check_is_file(path, found)
    if not os.access(target, os.W_OK):
        # Renaming would replace it all the same.
        raise PermissionError(errno.EACCES, "read-only")
    return found


def list_folder(channel: Channel, root: str, asked: dict[str, Any]) -> Steps[dict[str, Any]]:
    """Send the entries of a folder, in the order of their names."""
    path = text_in(asked, "path")
    with path_errors(path):
        names = sorted(os.listdir(os.path.join(root, path)))
    piece = bytearray(b"[")
    for count, name in enumerate(names):
        try:
            with path_errors(path):
                found = os.stat(os.path.join(root, path, name), follow_symlinks=False)
        except Refused as error:
            if isinstance(error.__cause__, FileNotFoundError):
                continue  # removed since it was listed
            raise
        if len(piece) > 1:
            piece += b","
        piece += encode_json(entry(name, found))
        if len(piece) >= MAX_PAYLOAD:
            yield from channel.send(bytes(piece))
            # Not empty, so that the comma is not forgotten.
            piece = bytearray(b"\n\n")
        elif count % _ENTRIES_AT_ONCE == 0:
            yield None
    yield from channel.send(bytes(piece + b"]"))
    return {}


def stat(root: str, asked: dict[str, Any]) -> Steps[dict[str, Any]]:
    """Return the entry at a path, links followed."""
    path = text_in(asked, "path")
    full = os.path.join(root, path)
    with path_errors(path):
        try:
            found = os.stat(full)
        except (FileNotFoundError, NotADirectoryError):
            return {"entry": None}
    return {"entry": entry(os.path.basename(full.rstrip("/")), found)}
    yield


def entry(name: str, found: os.stat_result) -> dict[str, Any]:
    return {
        "name": shown_name(name),
        "kind": kind_of(found.st_mode),
        "size": found.st_size,
        "modified": found.st_mtime,
    }


def kind_of(mode: int) -> str:
    if modes.S_ISREG(mode):
        return "file"
    if modes.S_ISDIR(mode):
        return "dir"
    return "link" if modes.S_ISLNK(mode) else "other"
