"""Files of this machine: whole reads, atomic writes, listings. All of it blocks; `LocalWorkspace` runs it in threads."""

from __future__ import annotations

import errno
import io
import os
import stat as modes
import threading
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, final

from agentcore._threads import Threads
from agentcore.errors import PathError
from agentcore.workspace.values import Entry, EntryKind

FILES: Final = Threads("files", 16)

_REASONS: Final = {
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


@contextmanager
def path_errors(path: str) -> Generator[None]:
    """Turn what the system says about a path into a `PathError`."""
    try:
        yield
    except OSError as error:
        reason, sentence = _REASONS.get(
            error.errno or 0, ("failed", f"{{path!r}} could not be used: {error.strerror}.")
        )
        raise PathError(path, reason, sentence.format(path=path)) from error
    except ValueError as error:
        # As with a NUL in it.
        raise PathError(path, "invalid", f"{path!r} can't be a path: {error}.") from error


def shown_name(name: str) -> str:
    """Make text of a name that any log and wire can carry."""
    return os.fsencode(name).decode(errors="backslashreplace")


def open_at_once(path: str, flags: int) -> int:
    """Open without waiting: a pipe that nobody writes to would be waited for. For `open(..., opener=...)`."""
    return os.open(path, flags | os.O_NONBLOCK)


def read_file(path: str, max_bytes: int) -> bytes:
    """Read a file of at most so many bytes."""
    with path_errors(path), open(path, "rb", buffering=0, opener=open_at_once) as file:
        found = os.fstat(file.fileno())
        _check_is_file(path, found)
        # Files in /proc say that they have no bytes.
        data = bytearray()
        while len(data) <= max_bytes and (piece := file.read(min(max_bytes + 1 - len(data), 1 << 20))):
            data += piece
    if len(data) > max_bytes:
        size = max(found.st_size, len(data))
        raise PathError(
            path,
            "too_large",
            f"{path!r} has {size} bytes; at most {max_bytes} are read at once. Look at a part of it with a command "
            "(head, tail, sed), or allow more with max_bytes.",
        )
    return bytes(data)


def write_file(path: str, data: bytes) -> None:
    """Replace the content of a file, or make it."""
    with replacement(path) as descriptor:
        write_all(descriptor, data)


def append_file(path: str, data: bytes) -> None:
    """Add to a file, or make it."""
    with path_errors(path):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK
        descriptor = os.open(path, flags, 0o666)
        try:
            _check_is_file(path, os.fstat(descriptor))
            write_all(descriptor, data)
        finally:
            os.close(descriptor)


@contextmanager
def replacement(path: str, *, new_mode: int = 0o666, through_link: bool = True) -> Generator[int]:
    """Yield a descriptor to write to, and put what was written in the place of a file if nothing goes wrong.

    A link is followed and stays, or is replaced without `through_link`. An existing file's mode stays, and its owner where this
    user may say so. A new one gets what the umask leaves of `new_mode`.
    """
    with path_errors(path):
        target = Path(os.path.realpath(path))
        if not through_link and Path(path).is_symlink():
            target, old = Path(path), None
        else:
            old = _existing_file(path, target)
        target.parent.mkdir(parents=True, exist_ok=True)
        # In the same folder, because renaming is atomic only within a file system.
        beside = target.with_name(f".{os.urandom(8).hex()}.agentcore-tmp")
        # What replaces a private file is private from the start.
        mode = new_mode if old is None else 0o600
        descriptor = _open_without_name(target.parent, mode)
        is_named = descriptor is None
        if descriptor is None:
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            try:
                yield descriptor
                if old is not None:
                    with suppress(PermissionError):
                        os.fchown(descriptor, old.st_uid, old.st_gid)
                    os.fchmod(descriptor, modes.S_IMODE(old.st_mode))
                if not is_named:
                    # `link` alone would link the link; told where a path counts from, it follows it.
                    os.link(_link_to(descriptor), beside, src_dir_fd=descriptor, follow_symlinks=True)
            finally:
                os.close(descriptor)
            beside.replace(target)
        except BaseException:
            with suppress(OSError):
                beside.unlink()
            raise


def _open_without_name(folder: Path, mode: int) -> int | None:
    """Open a file that is gone if this program is killed before it has a name; None where that can't be had."""
    if not hasattr(os, "O_TMPFILE"):
        return None
    try:
        descriptor = os.open(folder, os.O_TMPFILE | os.O_WRONLY | os.O_CLOEXEC, mode)
    except OSError:
        return None  # the file system has none; another error comes again with a name
    if os.path.exists(_link_to(descriptor)):
        return descriptor
    os.close(descriptor)
    return None


def _link_to(descriptor: int) -> str:
    return f"/proc/self/fd/{descriptor}"


def _existing_file(path: str, target: Path) -> os.stat_result | None:
    try:
        # Not lstat: a link here means that it leads back to itself, and this says so.
        found = target.stat()
    except FileNotFoundError:
        return None
    _check_is_file(path, found)
    if not os.access(target, os.W_OK):
        # Renaming would replace it all the same.
        raise PermissionError(errno.EACCES, "read-only")
    return found


def _check_is_file(path: str, found: os.stat_result) -> None:
    if modes.S_ISDIR(found.st_mode):
        raise IsADirectoryError(errno.EISDIR, "a folder")
    if not modes.S_ISREG(found.st_mode):
        raise PathError(path, "not_a_file", f"{path!r} is not a file but a device, a pipe or a socket.")


def write_all(descriptor: int, data: bytes) -> None:
    """Write, however many calls it takes."""
    left = memoryview(data)
    while left:
        left = left[os.write(descriptor, left) :]


def list_folder(path: str) -> tuple[Entry, ...]:
    """List a folder."""
    entries: list[tuple[str, Entry]] = []
    with path_errors(path), os.scandir(path) as found:
        for each in found:
            # Removed since it was listed.
            with suppress(FileNotFoundError):
                entries.append((each.name, _entry(each.name, each.stat(follow_symlinks=False))))
    entries.sort(key=lambda pair: pair[0])
    return tuple(entry for _, entry in entries)


def stat_path(path: str) -> Entry | None:
    """Return the entry at a path, links followed."""
    with path_errors(path):
        try:
            return _entry(Path(path).name, Path(path).stat())
        except (FileNotFoundError, NotADirectoryError):
            return None


def _entry(name: str, found: os.stat_result) -> Entry:
    return Entry(
        name=shown_name(name),
        kind=_kind(found.st_mode),
        size=found.st_size,
        modified=datetime.fromtimestamp(found.st_mtime, UTC),
    )


def _kind(mode: int) -> EntryKind:
    if modes.S_ISREG(mode):
        return "file"
    if modes.S_ISDIR(mode):
        return "dir"
    return "link" if modes.S_ISLNK(mode) else "other"


_PIECE: Final = 1 << 20


async def copy(source: str, target: str, *, through_links: bool = True) -> None:
    """Copy a file or a folder. When cancelled, no more than a piece of a file is copied after that.

    Args:
        source: What to copy. Links in it stay links.
        target: Where to.
        through_links: Whether links that are in the target are followed. Without, a link to a file is replaced, and one where a folder is
            to be is refused: for what others made, who may have sent the link before.

    Raises:
        PathError: one of the two can't be used so.
    """
    stop = threading.Event()
    try:
        await FILES.run(_Copy(stop, through_links).copy, source, target, abandon_on_cancel=True)
    except BaseException:
        stop.set()
        raise


@final
class _Copy:
    """One copy, in a thread."""

    def __init__(self, stop: threading.Event, through_links: bool) -> None:
        self._stop = stop
        self._through_links = through_links

    def copy(self, source: str, target: str) -> None:
        source, target = str(Path(source).absolute()), str(Path(target).absolute())
        with path_errors(source):
            mode = Path(source).stat().st_mode
        if modes.S_ISDIR(mode):
            inside = os.path.realpath(source)
            if os.path.commonpath([inside, os.path.realpath(target)]) == inside:
                raise PathError(target, "invalid", f"{source!r} can't be copied into itself, to {target!r}.")
            self._copy_folder(source, target)
        else:
            self._copy_file(source, target)

    def _copy_folder(self, source: str, target: str) -> None:
        if not self._through_links and Path(target).is_symlink():
            raise link_error(target)
        with path_errors(target):
            Path(target).mkdir(parents=True, exist_ok=True)
        with path_errors(source), os.scandir(source) as found:
            entries = sorted(found, key=lambda entry: entry.name)
        for entry in entries:
            if self._stop.is_set():
                return
            below = f"{target}/{entry.name}"
            if entry.is_symlink():
                _copy_link(entry.path, below)
            elif entry.is_dir():
                self._copy_folder(entry.path, below)
            elif entry.is_file():
                self._copy_file(entry.path, below)
            # Else a pipe or a socket: that belongs to the process that made it, and means nothing elsewhere.

    def _copy_file(self, source: str, target: str) -> None:
        with path_errors(source), open(source, "rb", buffering=0, opener=open_at_once) as file:
            mode = os.fstat(file.fileno()).st_mode
            if not modes.S_ISREG(mode):
                raise PathError(source, "not_a_file", f"{source!r} is not a file but a device, a pipe or a socket.")
            with replacement(target, new_mode=modes.S_IMODE(mode), through_link=self._through_links) as descriptor:
                # What goes wrong while reading is not the target's fault.
                while piece := _read_piece(source, file):
                    if self._stop.is_set():
                        raise _Stopped
                    write_all(descriptor, piece)


def link_error(path: str) -> PathError:
    """Return the error for a folder that would come through a link that is there."""
    return PathError(
        path,
        "invalid",
        f"{path!r} is a link, and what comes from elsewhere is not written through links. Remove it, or name the folder that it leads to.",
    )


def _copy_link(source: str, target: str) -> None:
    with path_errors(source):
        goal = Path(source).readlink()
    with path_errors(target):
        with suppress(FileNotFoundError):
            Path(target).unlink()
        Path(target).symlink_to(goal)


def _read_piece(source: str, file: io.FileIO) -> bytes | None:
    with path_errors(source):
        return file.read(_PIECE)


class _Stopped(Exception):
    """Ends a thread whose caller has left."""
