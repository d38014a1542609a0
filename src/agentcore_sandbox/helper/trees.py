"""Trees: folders with all that is in them, as records that travel over a channel.

A record is the length of its JSON in four bytes, and that: {path, kind, mode, target}. The path is relative to the folder that is sent,
and "" is that itself. After the record of a file come pieces, each behind its length in four bytes; an empty one ends the file. A record of
length 0 ends the tree. Pipes, sockets and devices are left out: they mean nothing elsewhere.
"""

from __future__ import annotations

import errno
import os
import stat as modes
from struct import Struct

from agentcore_sandbox.helper.channel import Channel, number_in, text_in
from agentcore_sandbox.helper.errors import Refused, path_errors, path_refused
from agentcore_sandbox.helper.files import Replacement, write_all
from agentcore_sandbox.helper.stream import MAX_PAYLOAD, ProtocolError, decode_json, encode_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from agentcore_sandbox.helper.loop import Steps

_LENGTH = Struct(">I")
_LONGEST_RECORD = 1024 * 1024
_PIECE = MAX_PAYLOAD - _LENGTH.size


def get_tree(channel: Channel, root: str, asked: dict[str, Any]) -> Steps[dict[str, Any]]:
    """Send a file, or a folder with all that is in it."""
    path = text_in(asked, "path")
    full = os.path.join(root, path)
    with path_errors(path):
        mode = os.stat(full).st_mode
    sender = _Sender(channel, path, full)
    if modes.S_ISDIR(mode):
        yield from sender.send_folder("", mode)
    else:
        yield from sender.send_file("", 0)
    yield from sender.end()
    return {}


class _Sender:
    """Puts small records together, so that a thousand files are not a thousand frames."""

    def __init__(self, channel: Channel, path: str, full: str) -> None:
        self._channel = channel
        self._path = path
        self._full = full
        self._data = bytearray()

    def send_folder(self, below: str, mode: int) -> Steps[None]:
        yield from self._record(path=below, kind="dir", mode=modes.S_IMODE(mode) & 0o777)
        with path_errors(self._shown(below)):
            names = sorted(os.listdir(os.path.join(self._full, below)))
        for name in names:
            inside = os.path.join(below, name)
            full = os.path.join(self._full, inside)
            with path_errors(self._shown(inside)):
                mode = os.lstat(full).st_mode
            if modes.S_ISLNK(mode):
                with path_errors(self._shown(inside)):
                    target = os.readlink(full)
                yield from self._record(path=inside, kind="link", mode=0o777, target=target)
            elif modes.S_ISDIR(mode):
                yield from self.send_folder(inside, mode)
            elif modes.S_ISREG(mode):
                yield from self.send_file(inside, os.O_NOFOLLOW)

    def send_file(self, below: str, flags: int) -> Steps[None]:
        shown = self._shown(below)
        with path_errors(shown):
            full = os.path.join(self._full, below) if below else self._full
            # A pipe that nobody writes to would be waited for.
            descriptor = os.open(full, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC | flags)
        try:
            mode = os.fstat(descriptor).st_mode
            if not modes.S_ISREG(mode):
                raise path_refused(shown, "not_a_file", f"{shown!r} is not a file but a device, a pipe or a socket.")
            yield from self._record(path=below, kind="file", mode=modes.S_IMODE(mode) & 0o777)
            while True:
                with path_errors(shown):
                    data = os.read(descriptor, _PIECE)
                yield from self._add(_LENGTH.pack(len(data)) + data)
                if not data:
                    return
        finally:
            os.close(descriptor)

    def end(self) -> Steps[None]:
        yield from self._add(_LENGTH.pack(0))
        yield from self._channel.send(bytes(self._data))

    def _record(self, **record: Any) -> Steps[None]:
        text = encode_json(record)
        yield from self._add(_LENGTH.pack(len(text)) + text)

    def _add(self, data: bytes) -> Steps[None]:
        self._data += data
        if len(self._data) >= MAX_PAYLOAD:
            ready, self._data = bytes(self._data), bytearray()
            yield from self._channel.send(ready)

    def _shown(self, below: str) -> str:
        return os.path.join(self._path, below) if below else self._path


def put_tree(channel: Channel, root: str, asked: dict[str, Any]) -> Steps[dict[str, Any]]:
    """Write a file or a folder that comes. What was there and is not in the tree stays."""
    receiver = _Receiver(channel)
    target = _Target(text_in(asked, "path"), root)
    while True:
        length = yield from receiver.length()
        if length == 0:
            return {}
        if length > _LONGEST_RECORD:
            raise Refused("A record of the tree is too long.")
        try:
            record = decode_json((yield from receiver.exactly(length)))
        except ProtocolError as error:
            raise Refused(f"A record of the tree is {error}.") from None
        kind, below = text_in(record, "kind"), text_in(record, "path")
        if kind == "file":
            yield from _put_file(receiver, target, below, number_in(record, "mode", 0, 0o7777) & 0o777)
        elif kind == "dir":
            target.make_folder(below)
        elif kind == "link":
            target.make_link(below, text_in(record, "target"))
        else:
            raise Refused(f"A tree has no {kind!r}.")


class _Target:
    """Where a tree is put. Its names lead below that, and never through a link that came with it."""

    def __init__(self, path: str, root: str) -> None:
        self._path = path
        self._full = os.path.join(root, path)
        self._links: set[str] = set()

    def place(self, below: str) -> tuple[str, str]:
        """Return the path for messages and the one to use.

        Raises:
            Refused: It would lead out of the folder.
        """
        shown = os.path.join(self._path, below) if below else self._path
        if not below:
            return shown, self._full
        parts = below.split("/")
        if any(part in ("", ".", "..") for part in parts):
            raise path_refused(shown, "invalid", f"{below!r} can't be a path in a tree.")
        for count in range(1, len(parts) + 1):
            if "/".join(parts[:count]) in self._links:
                raise path_refused(shown, "invalid", f"{below!r} leads through a link of the same tree.")
        return shown, os.path.join(self._full, below)

    def make_folder(self, below: str) -> None:
        shown, full = self.place(below)
        with path_errors(shown):
            os.makedirs(full, exist_ok=True)

    def make_link(self, below: str, target: str) -> None:
        shown, full = self.place(below)
        if not below:
            raise path_refused(shown, "invalid", "A tree is a file or a folder, not a link.")
        with path_errors(shown):
            os.makedirs(os.path.dirname(full), exist_ok=True)
            try:
                os.unlink(full)
            except FileNotFoundError:
                pass
            except IsADirectoryError:
                raise OSError(errno.EISDIR, "a folder") from None
            os.symlink(target, full)
        self._links.add(below)


def _put_file(receiver: _Receiver, target: _Target, below: str, mode: int) -> Steps[None]:
    shown, full = target.place(below)
    with path_errors(shown):
        new = Replacement(shown, full, mode)
    try:
        while True:
            left = yield from receiver.length()
            if left == 0:
                break
            while left:
                data = yield from receiver.some(left)
                left -= len(data)
                with path_errors(shown):
                    write_all(new.descriptor, data)
        with path_errors(shown):
            new.put_in_place()
    finally:
        new.close()


class _Receiver:
    """Cuts what comes as the records want it."""

    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._data = b""

    def some(self, most: int) -> Steps[bytes]:
        if not self._data:
            data = yield from self._channel.receive()
            if not data:
                raise Refused("The tree ended too early.")
            self._data = data
        data, self._data = self._data[:most], self._data[most:]
        return data

    def exactly(self, size: int) -> Steps[bytes]:
        pieces = bytearray()
        while len(pieces) < size:
            pieces += yield from self.some(size - len(pieces))
        return bytes(pieces)

    def length(self) -> Steps[int]:
        return _LENGTH.unpack((yield from self.exactly(_LENGTH.size)))[0]
