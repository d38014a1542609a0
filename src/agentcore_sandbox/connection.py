"""`HelperConnection`: many channels over one stream to a helper.

Above: `BoxWorkspace`, whose task runs it. Below: an anyio `ByteStream`, and `Channel`. One task reads, one writes and lets the channels take
turns, so that a flood on one delays the others by a few frames; one says something every 5 s, and ends it when 15 s went by without a
word. Nothing that comes is believed: what breaks the rules ends the stream, and so does the end of memory that it may take.
"""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Callable, Mapping
from typing import Any, Final, Literal, NamedTuple, final

import anyio
from anyio.abc import ByteStream, TaskGroup

from agentcore.workspace.files import FILES
from agentcore_sandbox.bootstrap import payload
from agentcore_sandbox.box import PING_SECONDS, SILENCE_SECONDS
from agentcore_sandbox.channel import Channel
from agentcore_sandbox.frames import (
    MAX_CHANNEL,
    MAX_PAYLOAD,
    Frame,
    FrameKind,
    FrameReader,
    ProtocolError,
    absolute_path_in,
    encode,
    encode_json,
    number_in,
    parse_object,
    text_in,
)

VERSION: Final = 1
_GREETING: Final = b"agentcore-helper 1\n"
_NO_PYTHON: Final = b"no python\n"
_LONGEST_GREETING: Final = 300
_START_SECONDS: Final = 60.0
"""How long a helper may take to start: a machine that is loaded, or an image whose Python is not compiled yet."""
# The connections that something inside may have open at once: more of them than any handler takes.
_MAX_ACCEPTED: Final = 512
# What it wrote before its input broke is worth reading.
_LAST_SECONDS: Final = 2.0

EndKind = Literal["left", "ended", "silent", "breach", "no_python", "no_helper", "refused"]


class StreamEnd(NamedTuple):
    """Why a stream to a helper ended."""

    kind: EndKind
    text: str = ""
    """The cause as a clause, or the words that came instead of a greeting."""
    reason: str = ""
    """Of what was refused: "fenced", "version", "root" or "failed"."""


class HelperHello(NamedTuple):
    """The first words of a helper."""

    root: str
    """The project's folder, links resolved."""
    pid: int


@final
class HelperConnection:
    """A stream to a helper that is started, or starts.

    Args:
        stream: To a program that was just started with the `BOOT_COMMAND`.
        hello: The first words to it, but for the version and the silence.
        ping: How often to say something, in seconds.
        silence: After how many seconds without a word the stream counts as dead.
    """

    def __init__(
        self,
        stream: ByteStream,
        hello: Mapping[str, Any],
        *,
        ping: float = PING_SECONDS,
        silence: float = SILENCE_SECONDS,
    ) -> None:
        self.hello: HelperHello | None = None
        """Known once `run` called `on_ready`."""
        self._stream = stream
        self._ping, self._silence = ping, silence
        self._first = deque([encode_json(FrameKind.HELLO, 0, {"version": VERSION, "silence": silence, **hello})])
        self._turns: OrderedDict[int, Channel] = OrderedDict()
        self._news = anyio.Event()
        self._channels: dict[int, Channel] = {}
        self._last_number = -1
        self._accepted = 0
        self._scope = anyio.CancelScope()
        self._end: StreamEnd | None = None
        self._error: Exception | None = None
        self._reader = FrameReader()
        self._heard_at = 0.0

    @property
    def is_alive(self) -> bool:
        """True while channels can be opened."""
        return self._end is None and self.hello is not None

    async def run(self, on_ready: Callable[[], None]) -> StreamEnd:
        """Hold the stream until it ends, and return why. Then `fail` has to be called, with what the users of it are told."""
        with self._scope:
            async with anyio.create_task_group() as tasks:
                tasks.start_soon(self._write_on)
                await self._read_on(on_ready, tasks)
                tasks.cancel_scope.cancel()
        return self._end or StreamEnd("ended")

    def leave(self) -> None:
        """Have `run` return."""
        self._stop(StreamEnd("left"))

    def open(self, op: str, **arguments: Any) -> Channel:
        """Have the helper begin with something. Leave the channel by `close` or `aclose`."""
        if self._error is not None:
            raise self._error
        self._last_number += 2
        if self._last_number > MAX_CHANNEL:
            self.breach("there is no number left for a channel")
        channel = self._channels[self._last_number] = Channel(self, self._last_number, {"op": op, **arguments})
        return channel

    def fail(self, error: Exception) -> None:
        """Have everybody who waits, and who comes, get this error."""
        self._error = error
        for channel in list(self._channels.values()):
            channel.fail(error)

    def wake(self, channel: Channel) -> None:
        self._turns.setdefault(channel.number, channel)
        self._news.set()

    def forget(self, channel: Channel) -> None:
        if self._channels.pop(channel.number, None) is not None and channel.number % 2 == 0:
            self._accepted -= 1

    def breach(self, text: str) -> None:
        self._stop(StreamEnd("breach", text))

    def _stop(self, end: StreamEnd) -> None:
        if self._end is None:
            self._end = end
        self._scope.cancel()

    # Writing.

    async def _write_on(self) -> None:
        try:
            await self._stream.send(await FILES.run(payload))
            while True:
                piece = self._next_piece()
                if piece:
                    await self._stream.send(piece)
                else:
                    self._news = anyio.Event()
                    await self._news.wait()
        except Exception:  # a box's stream may be of any library; the reader finds out more
            self._scope.deadline = anyio.current_time() + _LAST_SECONDS

    def _next_piece(self) -> bytes:
        """Take what to send now: a frame of each channel in turn, until that is enough for one write."""
        piece = b"".join(self._first)
        self._first.clear()
        while self._turns and len(piece) < MAX_PAYLOAD:
            number, channel = self._turns.popitem(last=False)
            frame = channel.next_frame()
            if frame is not None:
                piece += frame
                self._turns[number] = channel
        return piece

    async def _say_something(self) -> None:
        while True:
            await anyio.sleep(self._ping)
            self._first.append(encode(FrameKind.PING, 0))
            self._news.set()

    # Reading.

    async def _read_on(self, on_ready: Callable[[], None], tasks: TaskGroup) -> None:
        try:
            with anyio.move_on_after(_START_SECONDS) as starting:
                self.hello = await self._read_hello(await self._read_greeting())
            if starting.cancelled_caught:
                self._stop(StreamEnd("no_helper", f"it did not start within {_START_SECONDS:g} s"))
            if self.hello is None:
                return
            on_ready()
            self._heard_at = anyio.current_time()
            tasks.start_soon(self._say_something)
            tasks.start_soon(self._watch_silence)
            while True:
                for frame in self._reader.feed(await self._receive()):
                    self._take_in(frame)
        except ProtocolError as error:
            self.breach(str(error))
        except Exception as error:  # as in _write_on; whatever it is, the stream is at its end
            is_end = isinstance(error, anyio.EndOfStream | anyio.BrokenResourceError | anyio.ClosedResourceError)
            self._stop(StreamEnd("ended", "" if is_end else f"{type(error).__name__}: {error}"))

    async def _watch_silence(self) -> None:
        while True:
            due = self._heard_at + self._silence
            await anyio.sleep_until(due)
            now = anyio.current_time()
            if now - due > self._ping:
                self._heard_at = now  # this program itself stood still, and has not read what came meanwhile
            elif self._heard_at + self._silence <= now:
                self._stop(StreamEnd("silent", f"it was silent for {self._silence:g} s"))

    async def _receive(self) -> bytes:
        data = await self._stream.receive(MAX_PAYLOAD)
        self._heard_at = anyio.current_time()
        return data

    async def _read_greeting(self) -> bytes | None:
        """Return what follows the greeting; None if it is another one."""
        seen = b""
        try:
            while b"\n" not in seen and len(seen) < _LONGEST_GREETING:
                seen += await self._receive()
        except anyio.EndOfStream:
            if not seen:
                raise
        if seen.startswith(_GREETING):
            return seen.removeprefix(_GREETING)
        if seen.startswith(_NO_PYTHON):
            self._stop(StreamEnd("no_python"))
        else:
            self._stop(StreamEnd("no_helper", seen[:_LONGEST_GREETING].decode(errors="backslashreplace")))
        return None

    async def _read_hello(self, data: bytes | None) -> HelperHello | None:
        if data is None:
            return None
        while True:
            frames = list(self._reader.feed(data))
            if frames:
                break
            data = await self._receive()
        if len(frames) > 1 or frames[0].kind != FrameKind.HELLO:
            raise ProtocolError("it did not begin with a hello")
        values = parse_object(frames[0].payload)
        if values.get("refused") is not None:
            self._stop(StreamEnd("refused", str(values.get("message", "")), text_in(values, "refused")))
            return None
        if number_in(values, "version") != VERSION:
            raise ProtocolError("it speaks another version")
        return HelperHello(root=absolute_path_in(values, "root"), pid=number_in(values, "pid"))

    def _take_in(self, frame: Frame) -> None:
        if frame.channel == 0:
            if frame.kind != FrameKind.PONG:
                raise ProtocolError(f"it sent a frame {frame.kind.name} to no channel")
        elif frame.kind == FrameKind.OPEN:
            self._take_accepted(frame)
        elif (channel := self._channels.get(frame.channel)) is not None:
            channel.take_in(frame)
        else:
            raise ProtocolError("it sent a frame to a channel that is not open")

    def _take_accepted(self, frame: Frame) -> None:
        values = parse_object(frame.payload)
        listener = self._channels.get(number_in(values, "listener"))
        if frame.channel % 2 or frame.channel in self._channels or listener is None or listener.accept is None:
            raise ProtocolError("it opened a channel that nobody asked for")
        self._accepted += 1
        if self._accepted > _MAX_ACCEPTED:
            raise ProtocolError(f"it has more than {_MAX_ACCEPTED} connections open")
        channel = self._channels[frame.channel] = Channel(self, frame.channel)
        if listener.was_left:
            channel.close()
        else:
            listener.accept(channel)
