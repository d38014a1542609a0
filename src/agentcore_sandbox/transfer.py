"""Files and folders on their way into a box and out of it, as records: read and written in threads, in bounded memory.

A record is 4 bytes with its length and JSON (`path`, "" for what was asked for itself; `kind`; `mode`; `target` of a link). Of a file, pieces
follow: 4 bytes with the length, and so many bytes; one of no bytes is the end of the file, and a record of no bytes the end of all.

What comes out of a box may be anybody's: it is written to a new folder beside its place, never through a link, never outside, and is moved
when all of it is there.
"""

from __future__ import annotations

import json
import os
import shutil
import stat as modes
import tempfile
from collections.abc import Callable, Generator, Iterator
from os import PathLike
from pathlib import Path, PurePosixPath
from struct import Struct
from threading import Lock
from typing import Any, Final, ParamSpec, TypeVar, final

import anyio

from agentcore.errors import PathError
from agentcore.wire.archive import make_parents, safe_name
from agentcore.workspace.files import FILES, link_error, open_at_once, path_errors, write_all
from agentcore_sandbox.channel import Channel
from agentcore_sandbox.frames import WINDOW, ProtocolError, number_in, parse_object, text_in

P = ParamSpec("P")
R = TypeVar("R")

MAX_MEMBERS: Final = 1_000_000
"""How many files, folders and links may come out of a box at once."""

_LENGTH: Final = Struct(">I")
_END: Final = _LENGTH.pack(0)
# Longer than two paths can be, however they are escaped.
_LONGEST_RECORD: Final = 65536
_PIECE: Final = 1 << 16
# As much as a thread reads or writes at once.
_BATCH: Final = 1 << 18


async def send_tree(channel: Channel, local: str | PathLike[str]) -> None:
    """Send a file or folder of this machine, and wait until it is there."""
    pieces, turns = _pack(await FILES.run(_absolute, local)), _Turns()
    try:
        while batch := await FILES.run(turns.one(_take_batch), pieces):
            await channel.send(batch)
        await channel.send_all(b"")
    except anyio.BrokenResourceError:
        await channel.result()
        raise
    finally:
        await FILES.tidy(turns.last(pieces.close))  # noqa: ASYNC102 shielded there
    await channel.result()


def _absolute(local: str | PathLike[str]) -> str:
    return os.path.abspath(local)


def _take_batch(pieces: Iterator[bytes]) -> bytes:
    batch = bytearray()
    for piece in pieces:
        batch += piece
        if len(batch) >= _BATCH:
            break
    return bytes(batch)


def _pack(source: str) -> Generator[bytes]:
    with path_errors(source):
        found = os.stat(source)
    if modes.S_ISDIR(found.st_mode):
        yield _record("", "dir", found.st_mode)
        yield from _pack_folder(source, "")
    else:
        yield from _pack_file(source, "")
    yield _END


def _pack_folder(folder: str, prefix: str) -> Iterator[bytes]:
    with path_errors(folder), os.scandir(folder) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        name = f"{prefix}{entry.name}"
        if entry.is_symlink():
            with path_errors(entry.path):
                yield _record(name, "link", 0, os.readlink(entry.path))
        elif entry.is_dir():
            yield _record(name, "dir", entry.stat().st_mode)
            yield from _pack_folder(entry.path, f"{name}/")
        elif entry.is_file():
            yield from _pack_file(entry.path, name)
        # Else a pipe or a socket: that belongs to the process that made it, and means nothing elsewhere.


def _pack_file(path: str, name: str) -> Iterator[bytes]:
    with path_errors(path), open(path, "rb", buffering=0, opener=open_at_once) as file:
        mode = os.fstat(file.fileno()).st_mode
        if not modes.S_ISREG(mode):
            raise PathError(path, "not_a_file", f"{path!r} is not a file but a device, a pipe or a socket.")
        yield _record(name, "file", mode)
        while piece := file.read(_PIECE):
            yield _LENGTH.pack(len(piece))
            yield piece
    yield _END


def _record(path: str, kind: str, mode: int, target: str | None = None) -> bytes:
    values: dict[str, Any] = {"path": path, "kind": kind, "mode": modes.S_IMODE(mode) & 0o777}
    if target is not None:
        values["target"] = target
    text = json.dumps(values, separators=(",", ":")).encode("ascii")
    return _LENGTH.pack(len(text)) + text


async def receive_tree(channel: Channel, local: str | PathLike[str]) -> None:
    """Write what the helper sends to a place on this machine, all of it or nothing."""
    target = await FILES.run(_absolute, local)
    beside, turns = _Beside(target), _Turns()
    try:
        tree = await FILES.run(turns.one(beside.make))
        await _save(channel, turns, tree)
        await FILES.run(turns.one(_put_in_place), str(tree.content), target)
    finally:
        await FILES.tidy(turns.last(beside.remove))  # noqa: ASYNC102 shielded there


async def _save(channel: Channel, turns: _Turns, tree: _TreeWriter) -> None:
    while True:
        try:
            data = await channel.receive(WINDOW)
        except anyio.EndOfStream:
            break
        await channel.checked_in_thread(turns.one(tree.write), data)
    await channel.result()
    await channel.checked_in_thread(turns.one(tree.check_complete), b"")


@final
class _Beside:
    """A new folder on the file system of a place. It blocks."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._tree: _TreeWriter | None = None

    def make(self) -> _TreeWriter:
        """Make the folder, and return what writes into it."""
        with path_errors(self._target):
            above = Path(self._target).parent
            while not above.is_dir() and above != above.parent:
                above = above.parent
            self._tree = _TreeWriter(Path(tempfile.mkdtemp(".agentcore-tmp", ".", above), "content"))
        return self._tree

    def remove(self) -> None:
        """Remove the folder, if it was made, with what is left in it."""
        if self._tree is not None:
            self._tree.close()
            shutil.rmtree(self._tree.content.parent, ignore_errors=True)


@final
class _Turns:
    """Has what works in threads do so one after the other, and nothing after the last.

    asyncio's own cancellation leaves a thread at work while its caller goes on to tidy up.
    """

    def __init__(self) -> None:
        self._lock = Lock()
        self._is_over = False

    def one(self, work: Callable[P, R]) -> Callable[P, R]:
        """Return what does this in a turn.

        Raises:
            ClosedResourceError: When it is called, the last turn was taken.
        """

        def do(*args: P.args, **kwargs: P.kwargs) -> R:
            with self._lock:
                if self._is_over:
                    raise anyio.ClosedResourceError
                return work(*args, **kwargs)

        return do

    def last(self, work: Callable[[], None]) -> Callable[[], None]:
        """Return what does this in the last turn."""

        def do() -> None:
            with self._lock:
                self._is_over = True
                work()

        return do


def _put_in_place(content: str, target: str) -> None:
    with path_errors(target):
        Path(target).parent.mkdir(parents=True, exist_ok=True)
    # All of it is looked at before anything is replaced.
    for do_it in (False, True):
        _merge(Path(content), Path(target), do_it=do_it)


def _merge(source: Path, target: Path, *, do_it: bool) -> None:
    """Move a file, or a folder into one that is there. Nothing goes through a link: an earlier download may have brought it."""
    with path_errors(str(target)):
        new, old = source.lstat().st_mode, _mode_of(target)
        if old is None:
            if do_it:
                os.rename(source, target)
        elif modes.S_ISDIR(new):
            if modes.S_ISLNK(old):
                raise link_error(str(target))
            for each in sorted(source.iterdir()):
                _merge(each, target / each.name, do_it=do_it)
        elif modes.S_ISDIR(old):
            raise PathError(str(target), "is_a_folder", f"{str(target)!r} is a folder, not a file.")
        elif do_it:
            if modes.S_ISREG(new) and modes.S_ISREG(old):
                source.chmod(modes.S_IMODE(old))
            os.replace(source, target)


def _mode_of(path: Path) -> int | None:
    try:
        return path.lstat().st_mode
    except FileNotFoundError:
        return None


@final
class _TreeWriter:
    """Writes records to a place where nothing is yet. It blocks."""

    def __init__(self, content: Path) -> None:
        self.content = content
        self._unread = bytearray()
        self._file: int | None = None
        # How much of a file's piece is still to come.
        self._left = 0
        self._members = 0
        self._is_complete = False

    def write(self, data: bytes) -> None:
        """Write what came.

        Raises:
            ProtocolError: It is not records.
            PathError: A record is one that may not be written, or it cannot be.
        """
        self._unread += data
        at = 0
        try:
            while (step := self._step(at)) is not None:
                at = step
        finally:
            del self._unread[:at]

    def check_complete(self, _: bytes) -> None:
        """Check that everything came.

        Raises:
            ProtocolError: It did not.
        """
        if not self._is_complete:
            raise ProtocolError("it sent a part of a folder")

    def close(self) -> None:
        """Let go of the file that was being written."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    def _step(self, at: int) -> int | None:
        """Take what is next, and return where the rest begins; None if more has to come first."""
        if self._left:
            piece = bytes(self._unread[at : at + self._left])
            if not piece:
                return None
            assert self._file is not None
            with path_errors(str(self.content)):
                write_all(self._file, piece)
            self._left -= len(piece)
            return at + len(piece)
        if len(self._unread) - at < _LENGTH.size:
            return None
        if self._is_complete:
            raise ProtocolError("it sent more after the end of a folder")
        (length,) = _LENGTH.unpack_from(self._unread, at)
        at += _LENGTH.size
        if self._file is not None:
            self._left = length
            if length == 0:
                self.close()
            return at
        if length > _LONGEST_RECORD:
            raise ProtocolError("it sent a record that is too long")
        if len(self._unread) - at < length:
            return None
        if length == 0:
            self._is_complete = True
        else:
            self._begin(parse_object(bytes(self._unread[at : at + length])))
        return at + length

    def _begin(self, record: dict[str, Any]) -> None:
        self._members += 1
        if self._members > MAX_MEMBERS:
            raise PathError("", "too_large", f"More than {MAX_MEMBERS} files and folders would come out of the box.")
        name, kind = text_in(record, "path"), text_in(record, "kind")
        target = self.content
        if name:
            name = safe_name(name)
            target = target / name
        with path_errors(name or str(target)):
            if name:
                make_parents(self.content.parent, PurePosixPath("content", name))
            match kind:
                case "dir":
                    target.mkdir(exist_ok=True)
                case "link" if name:
                    target.symlink_to(text_in(record, "target"))
                case "file":
                    self._file = _create(target, number_in(record, "mode", most=0o7777) & 0o777)
                case _:
                    raise ProtocolError("it sent a record of a kind that is not known")


def _create(target: Path, mode: int) -> int:
    # What its owner may not read could not be moved from here.
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(target, flags, mode | 0o400)
