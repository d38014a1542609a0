"""Frames: what goes over the stream to the helper, and what comes back. Everything that comes is checked here or refused.

Above: `HelperConnection`. Below: bytes. A frame is a kind, the number of a channel and at most 64 KiB. JSON to the helper that
is longer goes in several frames without others between them: one that is full is continued by the next.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from struct import Struct
from typing import Any, Final, NamedTuple, NoReturn, cast, final

import anyio

from agentcore.errors import PathError, WorkspaceError, WorkspaceLost

MAX_PAYLOAD: Final = 65536
WINDOW: Final = 1024 * 1024
"""How many bytes of a stream may be under way, in each direction of each channel."""
MAX_CHANNEL: Final = 2**32 - 1

_HEADER: Final = Struct(">BII")
_CREDIT: Final = Struct(">BI")
# The text of an error that is shown; a whole frame of it would fill a model's context.
_LONGEST_MESSAGE: Final = 4_000


class FrameKind(IntEnum):
    """The kind of a frame; its direction is said where it is used."""

    HELLO = 1
    PING = 2
    PONG = 3
    OPEN = 4
    DATA = 5
    DATA_ERR = 6
    EOF = 7
    CREDIT = 8
    CALL = 9
    ANSWER = 10
    RESULT = 11
    CANCEL = 12
    EXIT = 13


class StreamNumber(IntEnum):
    """The streams of a channel."""

    IN = 0
    """From here to the helper."""
    OUT = 1
    ERR = 2


class ProtocolError(Exception):
    """The helper sent something that no helper sends. A command may have replaced it, so the stream is ended."""


class Frame(NamedTuple):
    """One frame."""

    kind: FrameKind
    channel: int
    payload: bytes


def encode(kind: FrameKind, channel: int, payload: bytes = b"") -> bytes:
    """Return a frame as it travels."""
    return _HEADER.pack(kind, channel, len(payload)) + payload


def encode_json(kind: FrameKind, channel: int, value: Mapping[str, Any]) -> bytes:
    """Return a JSON object as it travels, in one frame or more."""
    # ASCII, so that the surrogates of names that are not UTF-8 travel too.
    text = json.dumps(value, separators=(",", ":")).encode("ascii")
    starts = range(0, len(text) + 1, MAX_PAYLOAD)
    return b"".join(encode(kind, channel, text[start : start + MAX_PAYLOAD]) for start in starts)


def encode_credit(channel: int, stream: int, count: int) -> bytes:
    """Return the frame that allows so many bytes more."""
    return encode(FrameKind.CREDIT, channel, _CREDIT.pack(stream, count))


def parse_credit(payload: bytes) -> int:
    """Return how many bytes more may be sent to the helper."""
    if len(payload) != _CREDIT.size:
        raise ProtocolError("it allowed bytes in a frame of the wrong length")
    stream, count = _CREDIT.unpack(payload)
    if stream != StreamNumber.IN:
        raise ProtocolError(f"it allowed bytes of stream {stream}")
    return count


def parse_object(text: bytes) -> dict[str, Any]:
    """Return the JSON object of a frame."""
    value = parse_json(text)
    if not isinstance(value, dict):
        raise ProtocolError("it sent JSON that is not an object")
    return cast("dict[str, Any]", value)


def parse_json(text: bytes) -> object:
    """Return JSON that came from the helper."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError):
        raise ProtocolError("it sent what is not JSON") from None


def _refuse(constant: str) -> NoReturn:
    raise ValueError(constant)


def text_in(values: Mapping[str, Any], name: str) -> str:
    """Return a text of an object that came."""
    value = values.get(name)
    if not isinstance(value, str) or "\0" in value:
        raise ProtocolError(f"{name!r} is not a text")
    return value


def number_in(values: Mapping[str, Any], name: str, *, most: int = MAX_CHANNEL) -> int:
    """Return a number of an object that came: a whole one, and not below 0."""
    value = values.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise ProtocolError(f"{name!r} is not a number from 0 to {most}")
    return value


def absolute_path_in(values: Mapping[str, Any], name: str) -> str:
    """Return an absolute path of an object that came."""
    path = text_in(values, name)
    if not path.startswith("/"):
        raise ProtocolError(f"{name!r} is not an absolute path")
    return path


_ERRORS: Final[Mapping[str, Callable[[str], Exception]]] = {
    "workspace": WorkspaceError,
    "fenced": lambda message: WorkspaceLost(message, reason="fenced"),
    "broken": lambda _: anyio.BrokenResourceError(),
    "closed": lambda _: anyio.ClosedResourceError(),
}
_REASONS: Final = {"missing", "is_a_folder", "not_a_folder", "not_a_file", "denied", "too_large", "invalid", "failed"}


def error_of(values: object) -> Exception:
    """Return the exception for the error in an answer."""
    if not isinstance(values, dict):
        raise ProtocolError("it sent an error that is not an object")
    error = cast("dict[str, Any]", values)
    kind, message = text_in(error, "kind"), str(error.get("message", ""))[:_LONGEST_MESSAGE]
    if kind == "path":
        reason, path = text_in(error, "reason"), error.get("path")
        return PathError(str(path), reason if reason in _REASONS else "failed", message)
    if kind not in _ERRORS:
        raise ProtocolError("it sent an error of a kind that is not known")
    return _ERRORS[kind](message)


@final
class FrameReader:
    """Cuts what comes into frames, whatever pieces it comes in. It keeps less than one frame."""

    def __init__(self) -> None:
        self._data = bytearray()

    def feed(self, data: bytes) -> Iterator[Frame]:
        """Yield the frames that are whole now.

        Raises:
            ProtocolError: A kind is not known, or a frame is longer than any may be.
        """
        self._data += data
        at = 0
        try:
            while len(self._data) - at >= _HEADER.size:
                kind, channel, length = _HEADER.unpack_from(self._data, at)
                if length > MAX_PAYLOAD:
                    raise ProtocolError(f"it sent a frame of {length} bytes")
                if not FrameKind.HELLO <= kind <= FrameKind.EXIT:
                    raise ProtocolError(f"it sent a frame of the kind {kind}")
                end = at + _HEADER.size + length
                if end > len(self._data):
                    return
                payload = bytes(self._data[at + _HEADER.size : end])
                at = end
                yield Frame(FrameKind(kind), channel, payload)
        finally:
            del self._data[:at]
