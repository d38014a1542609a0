"""A helper as a local process, and frames sent to it and read from it one by one: blocking, so that a test shows each of them."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
import time
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from pathlib import Path
from struct import Struct
from typing import Any, NamedTuple

import pytest

from agentcore_sandbox.bootstrap import BOOT_COMMAND, GREETING, payload

HELLO, PING, PONG, OPEN, DATA, DATA_ERR, EOF, CREDIT, CALL, ANSWER, RESULT, CANCEL, EXIT = range(1, 14)
WINDOW = 1024 * 1024
_HEADER = Struct(">BII")
_CREDIT = Struct(">BI")
_PATIENCE = 30.0


class Frame(NamedTuple):
    kind: int
    channel: int
    payload: bytes

    @property
    def value(self) -> dict[str, Any]:
        return json.loads(self.payload)


class Reply(NamedTuple):
    """All that came on a channel until its end."""

    result: dict[str, Any]
    data: bytes
    stderr: bytes
    frames: list[Frame]

    @property
    def reason(self) -> str:
        return self.result["error"]["reason"]

    @property
    def message(self) -> str:
        return self.result["error"]["message"]


class RawHelper:
    """One helper."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process
        self.hello: dict[str, Any] = {}
        assert process.stdin is not None
        assert process.stdout is not None
        self._stdin, self._stdout = process.stdin.fileno(), process.stdout.fileno()
        self._unread = b""
        self.next_channel = 1
        self.waiting: list[Frame] = []

    def send(self, kind: int, channel: int = 0, payload: bytes | Mapping[str, Any] = b"") -> None:
        if isinstance(payload, bytes):
            self.send_raw(_HEADER.pack(kind, channel, len(payload)) + payload)
            return
        text = json.dumps(payload).encode()
        # JSON goes on in the next frame if this one is full.
        for start in range(0, len(text) + 1, 65536):
            self.send(kind, channel, text[start : start + 65536])

    def send_raw(self, data: bytes) -> None:
        view = memoryview(data)
        while view:
            view = view[os.write(self._stdin, view) :]

    def send_data(self, channel: int, data: bytes) -> None:
        for start in range(0, len(data), 65536):
            self.send(DATA, channel, data[start : start + 65536])

    def credit(self, channel: int, count: int, stream: int = 1) -> None:
        self.send(CREDIT, channel, _CREDIT.pack(stream, count))

    def end_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def line(self) -> bytes:
        """Read a line, before the first frame."""
        while b"\n" not in self._unread:
            self._unread += self._more()
        line, _, self._unread = self._unread.partition(b"\n")
        return line + b"\n"

    def frame(self) -> Frame:
        """Read the next frame that came."""
        while True:
            if len(self._unread) >= _HEADER.size:
                kind, channel, length = _HEADER.unpack_from(self._unread)
                end = _HEADER.size + length
                if len(self._unread) >= end:
                    payload, self._unread = self._unread[_HEADER.size : end], self._unread[end:]
                    return Frame(kind, channel, payload)
            self._unread += self._more()

    def wait_for(self, kind: int, channel: int = 0) -> Frame:
        """Read on until such a frame comes; the others wait."""
        for place, frame in enumerate(self.waiting):
            if frame.kind == kind and frame.channel == channel:
                return self.waiting.pop(place)
        while True:
            frame = self.frame()
            if frame.kind == kind and frame.channel == channel:
                return frame
            self.waiting.append(frame)

    def wait_for_output(self, channel: int, wanted: bytes) -> bytes:
        """Read on until a process has written something."""
        seen = b""
        while wanted not in seen:
            seen += self.wait_for(DATA, channel).payload
        return seen

    def open(self, op: str, **arguments: Any) -> int:
        channel, self.next_channel = self.next_channel, self.next_channel + 2
        self.send(OPEN, channel, {"op": op, **arguments})
        return channel

    def ask(self, op: str, data: bytes | None = None, **arguments: Any) -> Reply:
        """Have something done, to its end. A process is left when it has ended and written everything."""
        channel = self.open(op, **arguments)
        if data is not None:
            self.send_data(channel, data)
            self.send(EOF, channel, b"\0")
        elif op == "process":
            self.send(EOF, channel, b"\0")
        return self.finish(channel)

    def finish(self, channel: int) -> Reply:
        """Read all of a channel, and allow more as it comes."""
        frames: list[Frame] = []
        left = {"exit", "1", "2"}
        while True:
            frame = next((each for each in self.waiting if each.channel == channel), None)
            if frame is None:
                frame = self.frame()
                if frame.channel != channel:
                    self.waiting.append(frame)
                    continue
            else:
                self.waiting.remove(frame)
            frames.append(frame)
            if frame.kind in {DATA, DATA_ERR}:
                self.credit(channel, len(frame.payload), 1 if frame.kind == DATA else 2)
            elif frame.kind == RESULT:
                data = b"".join(each.payload for each in frames if each.kind == DATA)
                errors = b"".join(each.payload for each in frames if each.kind == DATA_ERR)
                return Reply(frame.value, data, errors, frames)
            elif frame.kind in {EXIT, EOF} and left:
                left.discard("exit" if frame.kind == EXIT else str(frame.payload[0]))
                if not left:
                    self.send(CANCEL, channel)

    def call(self, channel: int, call: str, **arguments: Any) -> dict[str, Any]:
        """Call a process, and return the answer."""
        number = self.next_channel
        self.next_channel += 2
        self.send(CALL, channel, {"id": number, "call": call, **arguments})
        return self.answer(channel, number)

    def answer(self, channel: int, number: int = 0) -> dict[str, Any]:
        kept: list[Frame] = []
        try:
            while True:
                frame = self.wait_for(ANSWER, channel)
                if frame.value["id"] == number:
                    return frame.value
                kept.append(frame)
        finally:
            self.waiting += kept

    def ping(self) -> None:
        self.send(PING)
        assert self.wait_for(PONG).payload == b""

    def wait_for_end(self) -> int:
        """Wait until the helper has ended by itself, and return its exit code."""
        return self.process.wait(_PATIENCE)

    def _more(self) -> bytes:
        poll = select.poll()
        poll.register(self._stdout, select.POLLIN)
        assert poll.poll(_PATIENCE * 1000), f"the helper was silent for {_PATIENCE} s; waiting: {self.waiting}"
        data = os.read(self._stdout, 1 << 20)
        if not data:
            raise EOFError
        return data


@contextmanager
def boot(python: str, folder: Path) -> Generator[RawHelper]:
    """Start the boot command where this Python is found as `python3`, and send it the sources."""
    found = folder / f"bin-{os.urandom(4).hex()}"
    found.mkdir()
    (found / "python3").symlink_to(python)
    process = subprocess.Popen(
        BOOT_COMMAND,
        bufsize=0,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={"PATH": f"{found}:/usr/bin:/bin", "SECRET_OF_THE_HELPER": "x"},
        cwd="/",
    )
    with process:
        helper = RawHelper(process)
        try:
            helper.send_raw(payload())
            yield helper
        finally:
            if not helper.process.stdin.closed:  # pyright: ignore[reportOptionalMemberAccess]
                helper.end_input()
            try:
                helper.wait_for_end()
            finally:
                process.kill()


@contextmanager
def open_helper(python: str, folder: Path, **hello: Any) -> Generator[RawHelper]:
    """Start a helper whose root is a folder of this one, and exchange greetings."""
    with boot(python, folder) as helper:
        helper.send(HELLO, 0, greeting(folder, **hello))
        assert helper.line() == GREETING
        frame = helper.frame()
        assert (frame.kind, frame.channel) == (HELLO, 0)
        helper.hello = frame.value
        assert "refused" not in helper.hello, helper.hello
        yield helper


def greeting(folder: Path, **more: Any) -> dict[str, Any]:
    """Return what a client says first."""
    root = folder / "root"
    root.mkdir(exist_ok=True)
    asked: dict[str, Any] = {
        "version": 1,
        "epochs": {},
        "box": f"test-{folder.name}",
        "root": str(root),
        "whole": False,
    }
    return {**asked, "state": str(folder / "state"), "env": {}, "silence": 60, **more}


def is_running(pid: int) -> bool:
    """Return whether a process runs; one that only waits to be collected does not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(b")")[2].split()[0] not in {b"Z", b"X"}


def wait_until_gone(*pids: int) -> None:
    """Wait until none of these processes runs."""
    deadline = time.monotonic() + _PATIENCE
    while any(is_running(pid) for pid in pids):
        assert time.monotonic() < deadline, f"still there: {[pid for pid in pids if is_running(pid)]}"
        select.select([], [], [], 0.01)


def wait_for_pids(path: Path, count: int) -> list[int]:
    """Wait until a file has so many numbers of processes, one a line."""
    deadline = time.monotonic() + _PATIENCE
    while True:
        lines = path.read_text().splitlines() if path.exists() else []
        if len(lines) >= count:
            return [int(line) for line in lines]
        assert time.monotonic() < deadline, f"only {lines} in {path}"
        select.select([], [], [], 0.01)


PYTHONS = sorted({os.path.realpath(sys.executable), *(path for path in ("/usr/bin/python3",) if os.path.exists(path))})
"""The Pythons that stand for those of images: the tests' own and the system's."""
EACH_PYTHON = [
    pytest.param(each, marks=[] if each == os.path.realpath(sys.executable) else pytest.mark.slow) for each in PYTHONS
]
"""For fixtures: other Pythons than this one in slow tests only."""
