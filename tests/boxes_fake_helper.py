"""A box whose helper is the test: it says what it likes, frame by frame."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from typing import Any, final

import anyio
from anyio.abc import ByteStream, ObjectReceiveStream, ObjectSendStream

from agentcore_sandbox.box import BoxSpec, Inside, LostReason, Progress, ReportProgress
from agentcore_sandbox.frames import Frame, FrameKind, FrameReader, encode

HELLO: dict[str, Any] = {
    "version": 1,
    "pid": 7,
    "root": "/workspace",
    "home": "/",
    "user": "u",
    "python": "3.11.2",
    "epochs": {},
}
Script = Callable[["FakeHelper"], Awaitable[None]]
_GONE = (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError)


@final
class PipeEnd(ByteStream):
    """One end of a stream in memory."""

    def __init__(self, source: ObjectReceiveStream[bytes], sink: ObjectSendStream[bytes]) -> None:
        self._source, self._sink = source, sink
        self._rest = b""

    async def receive(self, max_bytes: int = 65536) -> bytes:
        data = self._rest or await self._source.receive()
        self._rest = data[max_bytes:]
        return data[:max_bytes]

    async def send(self, item: bytes) -> None:
        await self._sink.send(item)

    async def send_eof(self) -> None:
        await self._sink.aclose()

    async def aclose(self) -> None:
        await self._sink.aclose()
        await self._source.aclose()


def pipe() -> tuple[PipeEnd, PipeEnd]:
    """Make both ends."""
    to_us, from_them = anyio.create_memory_object_stream[bytes](0)
    to_them, from_us = anyio.create_memory_object_stream[bytes](0)
    return PipeEnd(from_us, to_us), PipeEnd(from_them, to_them)


@final
class FakeHelper:
    """The other end, as a helper has it."""

    def __init__(self, stream: ByteStream) -> None:
        self.stream = stream
        self._reader = FrameReader()
        self._frames: list[Frame] = []

    async def take_program(self) -> None:
        """Read the program, which this is already."""
        data = await self.stream.receive()
        left = int(data[:8]) + 8 - len(data)
        while left:
            left -= len(await self.stream.receive(left))

    async def greet(self, hello: Mapping[str, Any] = HELLO) -> dict[str, Any]:
        """Say hello, and return what the other side said."""
        await self.take_program()
        await self.stream.send(b"agentcore-helper 1\n")
        frame = await self.next()
        assert frame.kind == FrameKind.HELLO
        await self.say(FrameKind.HELLO, 0, hello)
        return json.loads(frame.payload)

    async def next(self) -> Frame:
        """Return the next frame, pings left out."""
        while True:
            while self._frames:
                frame = self._frames.pop(0)
                if frame.kind != FrameKind.PING:
                    return frame
            self._frames += self._reader.feed(await self.stream.receive())

    async def say(self, kind: int, channel: int, payload: Mapping[str, Any] | bytes = b"") -> None:
        """Send a frame."""
        text = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        await self.stream.send(encode(FrameKind(kind), channel, text))


@final
class FakeBox:
    """A box in which each stream that is opened is answered by the next script; the last one answers the rest too."""

    def __init__(self, *scripts: Script, reason: LostReason = "exited") -> None:
        self.opened = 0
        self.stopped = 0
        self.words = ""
        self._scripts = scripts
        self._reason: LostReason = reason

    def __repr__(self) -> str:
        return "FakeBox()"

    @property
    def spec(self) -> BoxSpec:
        return BoxSpec(kind="fake")

    @property
    def inside(self) -> Inside:
        return Inside(root="/workspace", state="/state", env={"A": "b"})

    async def start(self, progress: ReportProgress) -> None:
        await progress(Progress(phase="ready"))

    async def stop(self) -> None:
        self.stopped += 1

    async def find(self, labels: Mapping[str, str]) -> bool:
        return False

    @asynccontextmanager
    async def open_stream(self) -> AsyncGenerator[ByteStream]:
        script = self._scripts[min(self.opened, len(self._scripts) - 1)]
        self.opened += 1
        ours, theirs = pipe()
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(self._answer, script, theirs)
            try:
                yield ours
            finally:
                with anyio.CancelScope(shield=True):
                    await ours.aclose()
                tasks.cancel_scope.cancel()

    async def reason_lost(self) -> LostReason:
        return self._reason

    def last_words(self) -> str:
        return self.words

    async def _answer(self, script: Script, stream: PipeEnd) -> None:
        try:
            with suppress(*_GONE):
                await script(FakeHelper(stream))
        finally:
            with anyio.CancelScope(shield=True):
                await stream.aclose()


async def be_well(helper: FakeHelper) -> None:
    """Answer each look at a path with nothing there, and end whatever else is left."""
    await helper.greet()
    while True:
        frame = await helper.next()
        if frame.kind == FrameKind.OPEN and json.loads(frame.payload)["op"] == "stat":
            await helper.say(FrameKind.RESULT, frame.channel, {"entry": None})
        elif frame.kind == FrameKind.CANCEL:
            await helper.say(FrameKind.RESULT, frame.channel, {})


def answering(answer: Callable[[FakeHelper, int], Awaitable[None]]) -> Script:
    """Greet, and answer the first channel so."""

    async def script(helper: FakeHelper) -> None:
        await helper.greet()
        frame = await helper.next()
        await answer(helper, frame.channel)
        while True:
            await helper.next()

    return script


def saying(kind: int, payload: dict[str, Any] | bytes = b"", channel: int | None = None) -> Script:
    """Greet, and answer the first channel with one frame."""

    async def answer(helper: FakeHelper, number: int) -> None:
        await helper.say(kind, number if channel is None else channel, payload)

    return answering(answer)
