"""`Channel`: one thing that the helper does, as a process or the reading of a file: its bytes, its calls and its end.

Above: `BoxWorkspace` and `BoxProcess`. Below: `HelperConnection`, whose tasks write the frames that lie here and bring those that came.
Whoever uses a channel only puts frames down and waits, so cancelling it never leaves half a frame; and leaving is put down without
waiting, since asyncio's own cancellation goes through every shield.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar, final

import anyio
from anyio.lowlevel import checkpoint

from agentcore.errors import WorkspaceError, WorkspaceLost
from agentcore.workspace.files import FILES
from agentcore.workspace.unread import UnreadBytes
from agentcore_sandbox.frames import (
    MAX_PAYLOAD,
    WINDOW,
    Frame,
    FrameKind,
    ProtocolError,
    StreamNumber,
    encode,
    encode_credit,
    encode_json,
    error_of,
    number_in,
    parse_credit,
    parse_object,
)

CANCEL_SECONDS: Final = 7.0
"""How long leaving waits until the helper has ended what the channel did."""
# Often enough that the other side never waits for it, and seldom enough that it costs nothing.
_CREDIT_AT: Final = WINDOW // 4
_STARTED: Final = 0

V = TypeVar("V")
R = TypeVar("R")

_OUT, _ERR = StreamNumber.OUT, StreamNumber.ERR


class ChannelOwner(Protocol):
    """The connection, as a channel sees it."""

    def wake(self, channel: Channel) -> None:
        """Send the channel's frames when its turn comes."""
        ...

    def forget(self, channel: Channel) -> None:
        """Expect nothing more for a channel that is over."""
        ...

    def breach(self, text: str) -> None:
        """End the stream: the helper sent something that no helper sends."""
        ...


@final
class Channel:
    """One channel. Its stream in each direction may be used by one task at a time."""

    def __init__(self, owner: ChannelOwner, number: int, opening: Mapping[str, Any] | None = None) -> None:
        self.number = number
        self.over = anyio.Event()
        """Set when nothing more comes."""
        self.exited = anyio.Event()
        self.exit_code: int | None = None
        """The exit code of a process that has ended."""
        self.accept: Callable[[Channel], None] | None = None
        """Takes the connections that a listening channel accepts."""
        self._owner = owner
        self._frames: deque[bytes] = deque()
        self._is_known = opening is None
        self._left = False
        self._error: Exception | None = None
        self._result: dict[str, Any] = {}
        self._room = WINDOW
        self._room_news = anyio.Event()
        self._input_error: Exception | None = None
        self._unread = {_OUT: UnreadBytes(WINDOW), _ERR: UnreadBytes(WINDOW)}
        self._taken = {_OUT: 0, _ERR: 0}
        self._answers: dict[int, _Answer] = {}
        self._last_id = _STARTED
        if opening is not None:
            self._answers[_STARTED] = _Answer()
            self._put(encode_json(FrameKind.OPEN, number, opening))

    # What its users do.

    @property
    def was_left(self) -> bool:
        """True once somebody left it, or tried to."""
        return self._left

    @property
    def has_sent_all(self) -> bool:
        """True once the end of what is sent was put down."""
        return self._input_error is not None

    async def started(self, name: str | None = None) -> int:
        """Wait until the helper has begun, and return the number that it says then."""
        values = await self._answers[_STARTED].wait()
        return 0 if name is None else self.checked(lambda answer: number_in(answer, name), values)

    async def send(self, data: bytes) -> None:
        """Send bytes, as fast as the other end takes them."""
        await checkpoint()
        left = memoryview(data)
        while left:
            self._check_input()
            size = min(len(left), self._room, MAX_PAYLOAD)
            if size == 0:
                self._room_news = anyio.Event()
                await self._room_news.wait()
                continue
            self._room -= size
            self._put(encode(FrameKind.DATA, self.number, bytes(left[:size])))
            left = left[size:]

    async def send_all(self, data: bytes) -> None:
        """Send bytes and their end; if the helper does not want all of them, raise its reason."""
        try:
            await self.send(data)
            await self.send_eof()
        except anyio.BrokenResourceError:
            await self.result()
            raise

    async def send_eof(self) -> None:
        """Send the end of what is sent."""
        await checkpoint()
        if self._input_error is None and not self._left:
            self._input_error = anyio.ClosedResourceError()
            if not self.over.is_set():
                self._put(encode(FrameKind.EOF, self.number, bytes([StreamNumber.IN])))

    async def finish_sending(self, seconds: float) -> None:
        """Send the end behind what was sent, and wait until the other end has ended too, within a bound. What comes is thrown away."""
        with (
            anyio.move_on_after(seconds),
            suppress(anyio.BrokenResourceError, anyio.ClosedResourceError, WorkspaceError),
        ):
            await self.send_eof()
            with suppress(anyio.EndOfStream):
                while True:
                    await self.receive(WINDOW)
            await self.over.wait()

    async def receive(self, max_bytes: int = MAX_PAYLOAD, stream: StreamNumber = _OUT) -> bytes:
        """Wait for bytes. At the end: `anyio.EndOfStream`, or the error with which it ended."""
        data = await self._unread[stream].take(max_bytes)
        self._taken[stream] += len(data)
        if self._taken[stream] >= _CREDIT_AT and not self.over.is_set():
            self._put(encode_credit(self.number, stream, self._taken[stream]))
            self._taken[stream] = 0
        return data

    async def collect(self, limit: int) -> bytes:
        """Return all that comes until the end, which may be no more than `limit`."""
        data = bytearray()
        try:
            while True:
                data += await self.receive(WINDOW)
                if len(data) > limit:
                    raise self._breach(f"it sent more than the {limit} bytes that were asked for")
        except anyio.EndOfStream:
            await self.result()
            return bytes(data)

    async def call(self, call: str, **arguments: Any) -> dict[str, Any]:
        """Call what runs there, and wait for its answer."""
        await checkpoint()
        if self.over.is_set():
            raise self._error or anyio.ClosedResourceError
        self._last_id = number = self._last_id + 1
        answer = self._answers[number] = _Answer()
        try:
            self._put(encode_json(FrameKind.CALL, self.number, {"id": number, "call": call, **arguments}))
            return await answer.wait()
        finally:
            self._answers.pop(number, None)

    async def result(self) -> dict[str, Any]:
        """Wait for the end, and return what the helper says of it.

        Raises:
            PathError, WorkspaceError: It failed.
            WorkspaceLost: The helper is gone.
        """
        await self.over.wait()
        if self._error is not None:
            raise self._error
        return self._result

    def checked(self, parse: Callable[[V], R], value: V) -> R:
        """Return what is in an answer; one that is not what it has to be ends the stream."""
        try:
            return parse(value)
        except ProtocolError as error:
            raise self._breach(str(error)) from None

    async def checked_in_thread(self, parse: Callable[[bytes], R], value: bytes) -> R:
        """Do so with what takes its time."""
        try:
            return await FILES.run(parse, value)
        except ProtocolError as error:
            raise self._breach(str(error)) from None

    def _breach(self, text: str) -> WorkspaceLost:
        self._owner.breach(text)
        return WorkspaceLost(f"The box is lost: {text}. No helper does that, so it was ended.", reason="exited")

    def close(self) -> None:
        """Have the helper end what the channel does. Closing twice is fine."""
        if self._left:
            return
        self._left = True
        for stream in self._unread.values():
            stream.close()
        self._room_news.set()
        if self.over.is_set():
            return
        self._frames.clear()
        if self._is_known:
            self._put(encode(FrameKind.CANCEL, self.number))
        else:
            self._finish(anyio.ClosedResourceError())

    async def aclose(self, seconds: float = CANCEL_SECONDS) -> None:
        """Do so, and wait until it has ended it, within a bound."""
        self.close()
        with anyio.move_on_after(seconds, shield=True):
            await self.over.wait()

    # What the connection does.

    def next_frame(self) -> bytes | None:
        """Take the next frame to send."""
        if not self._frames:
            return None
        self._is_known = True
        return self._frames.popleft()

    def take_in(self, frame: Frame) -> None:
        """Note a frame that came.

        Raises:
            ProtocolError: It should not have come.
        """
        match frame.kind:
            case FrameKind.DATA:
                self._add(_OUT, frame.payload)
            case FrameKind.DATA_ERR:
                self._add(_ERR, frame.payload)
            case FrameKind.EOF:
                self._end_stream(frame.payload)
            case FrameKind.CREDIT:
                self._room += parse_credit(frame.payload)
                if self._room > WINDOW:
                    raise ProtocolError("it allowed more bytes than were sent")
                self._room_news.set()
            case FrameKind.ANSWER:
                self._note_answer(parse_object(frame.payload))
            case FrameKind.EXIT:
                self._note_exit(parse_object(frame.payload))
            case FrameKind.RESULT:
                self._note_result(parse_object(frame.payload))
            case _:
                raise ProtocolError(f"it sent a frame {frame.kind.name} on a channel")

    def fail(self, error: Exception) -> None:
        """End all waiting: the stream is gone."""
        if not self.over.is_set():
            self._finish(error)

    def _put(self, frame: bytes) -> None:
        self._frames.append(frame)
        self._owner.wake(self)

    def _check_input(self) -> None:
        if self._left:
            raise anyio.ClosedResourceError
        if self._input_error is not None:
            raise self._input_error
        if self.over.is_set():
            raise self._error or anyio.BrokenResourceError

    def _add(self, stream: StreamNumber, data: bytes) -> None:
        if self._left:
            return
        try:
            self._unread[stream].add(data)
        except OverflowError as error:
            raise ProtocolError(str(error)) from None

    def _end_stream(self, payload: bytes) -> None:
        match payload:
            case b"\0":  # nothing reads there any more
                self._input_error = self._input_error or anyio.BrokenResourceError()
                self._room_news.set()
            case b"\1":
                self._unread[_OUT].end()
            case b"\2":
                self._unread[_ERR].end()
            case _:
                raise ProtocolError("it ended a stream that is not there")

    def _note_answer(self, values: dict[str, Any]) -> None:
        answer = self._answers.get(number_in(values, "id"))
        if answer is not None:  # else its caller has left
            answer.set(values, error_of(values["error"]) if values.get("error") is not None else None)

    def _note_exit(self, values: dict[str, Any]) -> None:
        self.exit_code = number_in(values, "code", most=255)
        self.exited.set()

    def _note_result(self, values: dict[str, Any]) -> None:
        self._result = values
        if values.get("error") is not None:
            self._finish(error_of(values["error"]))
            return
        if self.exit_code is None and "code" in values:
            self._note_exit(values)
        self._finish(None)

    def _finish(self, error: Exception | None) -> None:
        self._error = error
        self._frames.clear()
        self._owner.forget(self)
        self.over.set()
        self.exited.set()
        self._room_news.set()
        for stream in self._unread.values():
            stream.end(error)
        for answer in self._answers.values():
            answer.set({}, error or anyio.ClosedResourceError())


@final
class _Answer:
    """One who called, and waits."""

    def __init__(self) -> None:
        self._event = anyio.Event()
        self._values: dict[str, Any] = {}
        self._error: Exception | None = None

    def set(self, values: dict[str, Any], error: Exception | None) -> None:
        if not self._event.is_set():
            self._values, self._error = values, error
            self._event.set()

    async def wait(self) -> dict[str, Any]:
        await self._event.wait()
        if self._error is not None:
            raise self._error
        return self._values
