"""Frames: what a stream of a conversation consists of, from the server to its watchers.

Above: the server, which encodes each event once for all watchers, and the remote link, which folds what it reads. Below:
events, which know nothing of streams. What a client sends are requests (`agentcore.wire.routes`), never frames.

A frame is a JSON object on one line. A WebSocket message is one or more of them, separated by newlines; an SSE message has
one as its data. What a newer server adds (fields, types of frames) is passed over.
"""

# No postponed annotations: pydantic would evaluate each of them again, at every import.

import re
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Final, Literal, NamedTuple, Self, cast

from pydantic import ConfigDict, Discriminator, Field, JsonValue, Tag, TypeAdapter
from pydantic_core import from_json

from agentcore._delta import StreamDelta
from agentcore._value import Value
from agentcore.events import KNOWN_KINDS, Event, KnownEvent, UnknownEvent
from agentcore.wire.problems import Problem

_CURSOR: Final = re.compile(r"(?:(?P<birth>.*):)?(?P<seq>[0-9]{1,15})", re.DOTALL)


class Cursor(NamedTuple):
    """A place in a log: behind the event `seq`. Its text is `birth:seq`, or the seq alone."""

    seq: int
    birth: str | None = None
    """The id of the log's first event, so that a log that was deleted and begun again is noticed; None is any log."""

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a cursor from its text, as in `Last-Event-ID`.

        Raises:
            ValueError: It is not one.
        """
        match = _CURSOR.fullmatch(text)
        if match is None or not match["seq"].isascii():
            raise ValueError("A cursor is the seq of an event, or birth:seq as a stream gives it.")
        return cls(int(match["seq"]), match["birth"])

    def __str__(self) -> str:
        return str(self.seq) if self.birth is None else f"{self.birth}:{self.seq}"

    def fits(self, birth: str | None, head: int) -> bool:
        """Return whether it is a place in the log of this birth and head."""
        return 0 <= self.seq <= head and self.birth in (None, birth)


class _FrameBase(Value):
    # What a newer server says besides is passed over.
    model_config = ConfigDict(extra="ignore")


class Hello(_FrameBase):
    """The first frame of a stream."""

    type: Literal["hello"] = "hello"
    conversation: str
    birth: str | None
    """The id of the log's first event; None where the log is empty."""
    head: int
    """The newest event when the stream began."""
    version: str
    """The version of agentcore that serves it."""


def _tag(event: Any) -> str:
    kind: object = (
        cast("dict[str, Any]", event).get("kind") if isinstance(event, dict) else getattr(event, "kind", None)
    )
    return "known" if kind in KNOWN_KINDS else "unknown"


_AnyEvent = Annotated[
    Annotated[KnownEvent, Field(discriminator="kind"), Tag("known")] | Annotated[UnknownEvent, Tag("unknown")],
    Discriminator(_tag),
]


class EventFrame(_FrameBase):
    """An event of the log."""

    type: Literal["event"] = "event"
    seq: int
    group: int
    """The seq of the last event of its group: a follower folds whole groups."""
    event: _AnyEvent


class DeltaFrame(_FrameBase):
    """Pieces of replies and of tools' output, in order."""

    type: Literal["delta"] = "delta"
    items: tuple[StreamDelta, ...]


class Gap(_FrameBase):
    """This watcher was too slow for deltas, and so many are missing here. Events are never missing."""

    type: Literal["gap"] = "gap"
    lost: int


class AskFrame(_FrameBase):
    """The server needs something of the client: a tool that runs there, or the value of a secret."""

    type: Literal["ask"] = "ask"
    id: str
    kind: Literal["tool", "secret"]
    name: str
    """Of the tool, or of the secret."""
    action_id: str | None = None
    """Of a tool: the action that it carries out. Asked again after a cut, it is the same one."""
    arguments: dict[str, JsonValue] = Field(default={}, repr=False)
    """Of a tool."""


class Withdraw(_FrameBase):
    """An ask is void: it was answered, or nobody needs the answer any more."""

    type: Literal["withdraw"] = "withdraw"
    id: str


class Ping(_FrameBase):
    """The stream is alive."""

    type: Literal["ping"] = "ping"


class Bye(_FrameBase):
    """The last frame of a stream."""

    type: Literal["bye"] = "bye"
    code: str
    """The reason, for programs: "closed", "deleted", "draining", "slow", or that of the problem."""
    problem: Problem | None = None


Frame = Hello | EventFrame | DeltaFrame | Gap | AskFrame | Withdraw | Ping | Bye
"""Any frame."""

_TYPES: Final = frozenset(cast("str", cls.model_fields["type"].default) for cls in Frame.__args__)


@cache
def _reader() -> Callable[[str | bytes], Frame]:
    return TypeAdapter[Frame](Annotated[Frame, Field(discriminator="type")]).validator.validate_json


def encode_event(event: Event, group: int) -> bytes:
    """Return an event's frame. Made once for all watchers: encoding is most of what an event costs."""
    return b'{"type":"event","seq":%d,"group":%d,"event":%b}' % (event.seq, group, event.model_dump_json().encode())


def encode_frame(frame: Frame) -> bytes:
    """Return a frame as one line of JSON, without the newline."""
    if isinstance(frame, EventFrame):
        return encode_event(frame.event, frame.group)
    return frame.model_dump_json().encode()


def encode_sse(kind: str, frame: bytes, cursor: Cursor | None = None) -> bytes:
    """Return an encoded frame as a message of an event stream (SSE); `kind` is the frame's type."""
    identity = b"" if cursor is None else b"id: %b\n" % str(cursor).encode()
    return b"event: %b\n%bdata: %b\n\n" % (kind.encode(), identity, frame)


def parse_frames(text: str | bytes) -> list[Frame]:
    """Read the frames of a message. One of a type that this version does not know is passed over.

    Raises:
        ValueError: A line is not a frame.
    """
    # By the newline alone: JSON may hold the other line ends of Unicode as they are.
    lines = text.split("\n") if isinstance(text, str) else text.split(b"\n")
    return [frame for line in lines if line.strip() and (frame := _parse_frame(line)) is not None]


def _parse_frame(line: str | bytes) -> Frame | None:
    try:
        return _reader()(line)
    except ValueError:
        data: Any = from_json(line)
        if isinstance(data, dict):
            kind: object = cast("dict[str, Any]", data).get("type")
            if isinstance(kind, str) and kind not in _TYPES:
                return None
        raise
