"""`main`: greets, does what is asked on the channels, and ends everything when the stream has ended or is silent."""

from __future__ import annotations

import os
import pwd
import signal
import sys
import time
import traceback

from agentcore_sandbox.helper import files, private, trees, tunnels
from agentcore_sandbox.helper.channel import Channel, number_in, text_in, texts_in
from agentcore_sandbox.helper.children import Children
from agentcore_sandbox.helper.errors import Refused
from agentcore_sandbox.helper.fence import Fence
from agentcore_sandbox.helper.kernel import Kernel, open_signals, take_stream
from agentcore_sandbox.helper.launch import heed_signals, warm_up
from agentcore_sandbox.helper.loop import Cancelled, Flag, Loop, Task
from agentcore_sandbox.helper.process import Surroundings, process
from agentcore_sandbox.helper.stream import (
    CALL,
    CANCEL,
    CREDIT,
    DATA,
    EOF,
    HELLO,
    OPEN,
    PING,
    PONG,
    ProtocolError,
    Reader,
    StreamEnded,
    Writer,
    decode_credit,
    encode_json,
    is_object,
)
from agentcore_sandbox.helper.table import MARKS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from agentcore_sandbox.helper.loop import Steps

VERSION = 1
GREETING = b"agentcore-helper 1\n"
_DEFAULT_PATH = "/usr/local/bin:/usr/bin:/bin"
_SILENCE_SECONDS = 15
_FLUSH_SECONDS = 2.0
_LARGEST_EPOCH = 1 << 62
_EXIT_PROTOCOL, _EXIT_FAILED = 76, 70


class Helper:
    """One helper with one stream."""

    def __init__(self, source: int, sink: int) -> None:
        self.loop = Loop()
        self.loop.failed = self._failed
        self.exit_code = 0
        self._kernel = Kernel()
        self._writer = Writer(self.loop, sink)
        self._reader = Reader(self.loop, source, self._writer)
        self._channels: dict[int, Channel] = {}
        self._last_channel = -1
        self._last_own_channel = 0
        self._hello: Task | None = None
        self._around: Surroundings | None = None
        self._fence: Fence | None = None
        self._silence: float = _SILENCE_SECONDS
        self._listening: Task | None = None
        self._over = Flag()
        self._is_over = False
        self._mark = os.urandom(8).hex()
        self._children = Children(self.loop, self._mark, self._kernel.is_subreaper)
        self._ops: dict[str, Callable[[Channel, dict[str, Any]], Steps[dict[str, Any]]]] = {}

    def run(self) -> Steps[None]:
        """Work until the stream ends, is silent, or a signal comes; then end everything."""
        self.loop.start(self._read())
        self.loop.start(self._write())
        self.loop.start(self._take_signals(open_signals()))
        self._listening = self.loop.start(self._listen_for_silence())
        while not self._is_over:
            yield self._over
        for task in self._open_tasks():
            task.cancel()
        left = yield from self._children.end_all()
        if left:
            _note(f"could not be ended: {sorted(left)}")
        elif self._fence is not None:
            self._fence.leave()

    def end(self, reason: str = "", code: int = 0) -> None:
        """Have everything ended."""
        if not self._is_over:
            self._is_over = True
            self.exit_code = code
            if reason:
                _note(reason)
            self._over.fire()

    # The stream.

    def _read(self) -> Steps[None]:
        try:
            yield from self._reader.run(self._take)
        except StreamEnded:
            self.end()
        except ProtocolError as error:
            self.end(f"the other side sent {error}", _EXIT_PROTOCOL)

    def _write(self) -> Steps[None]:
        try:
            yield from self._writer.run()
        except StreamEnded:
            self.end()

    def _listen_for_silence(self) -> Steps[None]:
        while True:
            left = self._reader.heard + self._silence - time.monotonic()
            if left <= 0:
                self.end(f"nothing was heard for {self._silence:g} seconds")
                return
            yield left

    def _take_signals(self, wakes: int) -> Steps[None]:
        while True:
            try:
                numbers = os.read(wakes, 4096)
            except BlockingIOError:
                yield self.loop.readable(wakes)
                continue
            if signal.SIGTERM in numbers or signal.SIGHUP in numbers or signal.SIGINT in numbers:
                self.end("a signal ended it")
            self._children.child_ended()

    def _take(self, kind: int, number: int, payload: Any) -> None:
        if self._is_over:
            return
        if self._hello is None:
            if kind != HELLO:
                raise ProtocolError(f"a frame of the kind {kind} before its hello")
            self._hello = self.loop.start(self._greet(payload))
        elif kind == PING:
            if self._around is not None:
                self._writer.put_urgent(PONG, 0)
        elif kind == OPEN:
            self._open(number, payload)
        elif kind in (DATA, EOF, CREDIT, CALL, CANCEL):
            channel = self._channels.get(number)
            if channel is not None:
                self._take_of_channel(kind, channel, payload)
            elif number > (self._last_channel if number % 2 else self._last_own_channel):
                raise ProtocolError(f"a frame for channel {number}, which was never open")
            # Else it was sent before the end of the channel was known there.
        elif kind != PONG:
            raise ProtocolError(f"a frame of the kind {kind}, which is not its to send")

    def _take_of_channel(self, kind: int, channel: Channel, payload: Any) -> None:
        if kind == DATA:
            channel.take_data(payload)
        elif kind == EOF:
            channel.take_eof(payload)
        elif kind == CREDIT:
            channel.take_credit(*decode_credit(payload))
        elif kind == CALL:
            task = self.loop.start(self._answer(channel, payload))
            channel.calls.add(task)
        elif channel.task is not None and not channel.is_cancelled:
            channel.is_cancelled = True
            channel.task.cancel()

    # Channels.

    def _open(self, number: int, asked: dict[str, Any]) -> None:
        if self._around is None:
            raise ProtocolError("a channel before the answer to its hello")
        if number % 2 == 0 or number <= self._last_channel:
            raise ProtocolError(f"channel {number}, which is not its to open now")
        self._last_channel = number
        channel = Channel(self.loop, self._writer, number)
        self._start(channel, self._perform(channel, asked))

    def _start(self, channel: Channel, steps: Steps[dict[str, Any]]) -> Task:
        self._channels[channel.number] = channel
        channel.task = self.loop.start(self._attend(channel, steps))
        # What was never begun could not be cancelled with a result.
        channel.task.step(0)
        return channel.task

    def _perform(self, channel: Channel, asked: dict[str, Any]) -> Steps[dict[str, Any]]:
        name = text_in(asked, "op")
        op = self._ops.get(name)
        if op is None or self._fence is None:
            raise Refused(f"The helper has no op {name!r}.")
        if name != "fence":
            self._fence.check()
        return (yield from op(channel, asked))

    def _attend(self, channel: Channel, steps: Steps[dict[str, Any]]) -> Steps[None]:
        result: dict[str, Any] = {}
        try:
            yield None
            result = yield from steps
        except Cancelled:
            result = {"cancelled": True}
        except Refused as error:
            result = {"error": error.error}
        except Exception as error:
            _note(traceback.format_exc())
            result = {"error": {"kind": "workspace", "message": f"The helper failed: {error!r}"[:4000]}}
        finally:
            self._channels.pop(channel.number, None)
            for task in list(channel.calls):
                task.cancel()
            channel.finish(result)

    def _answer(self, channel: Channel, asked: dict[str, Any]) -> Steps[None]:
        number = asked.get("id")
        if not isinstance(number, int):
            raise ProtocolError("a call without a number")
        try:
            answer = yield from (channel.call or _nothing_to_call)(asked)
        except Refused as error:
            answer = {"error": error.error}
        channel.answer(number, **answer)

    def _open_tasks(self) -> list[Task]:
        tasks = [self._hello, *(channel.task for channel in self._channels.values())]
        return [task for task in tasks if task is not None]

    # The beginning.

    def _greet(self, asked: dict[str, Any]) -> Steps[None]:
        try:
            answer = yield from self._begin(asked)
        except Refused as error:
            kind = error.error["kind"]
            known = kind in ("version", "root", "fenced")
            answer = {"refused": kind if known else "failed", "message": str(error)}
        self._writer.put_urgent(HELLO, 0, encode_json(answer))
        if "refused" in answer:
            deadline = time.monotonic() + _FLUSH_SECONDS
            while not self._writer.is_idle and time.monotonic() < deadline:
                yield 0.01
            self.end()
            return
        while not self._writer.is_idle:
            yield 0.001
        warm_up()

    def _begin(self, asked: dict[str, Any]) -> Steps[dict[str, Any]]:
        if asked.get("version") != VERSION:
            raise Refused(f"This helper speaks version {VERSION}, not {asked.get('version')!r}.", "version")
        silence = asked.get("silence", _SILENCE_SECONDS)
        if not isinstance(silence, (int, float)) or not 0 < silence < 1e6:
            raise Refused("'silence' is not a number of seconds.")
        self._silence = silence
        if self._listening is not None:
            self._listening.cancel()
        self._listening = self.loop.start(self._listen_for_silence())
        root = _find_root(text_in(asked, "root"))
        env = texts_in(asked, "env")
        user, home = _user()
        home = env.get("HOME", home)
        env = {"PATH": _DEFAULT_PATH, "HOME": home, "LANG": "C.UTF-8", **env}
        box = "".join(each if each.isalnum() or each in "._-" else "_" for each in text_in(asked, "box"))
        epochs = asked.get("epochs", {})
        if not is_object(epochs):
            raise Refused("'epochs' is not an object.")
        epochs = {owner: number_in(epochs, owner, 0, _LARGEST_EPOCH) for owner in epochs}
        state = text_in(asked, "state")
        private.make_own_folder(state, with_parents=True)
        self._fence = Fence(state, box, bool(asked.get("whole")), self._children)
        yield from self._fence.join(epochs)
        outer = os.environ.get(MARKS)
        marks = f"{outer}:" if outer else ""
        self._around = Surroundings(root, env, self._children, self._kernel.as_child, f"{marks}{box}:{self._mark}")
        self._fill_ops(self._around, state, self._fence)
        return {
            "version": VERSION,
            "pid": os.getpid(),
            "root": root,
            "home": home,
            "user": user,
            "python": ".".join(str(each) for each in sys.version_info[:3]),
            "epochs": epochs,
        }

    def _accept(self, listener: Channel, connection: tunnels.Socket) -> Flag:
        """Open a channel for a connection that came to a port inside, and return the flag that is fired at its end."""
        self._last_own_channel += 2
        channel = Channel(self.loop, self._writer, self._last_own_channel)
        opening = {"op": "accept", "listener": listener.number}
        self._writer.put_urgent(OPEN, channel.number, encode_json(opening))
        return self._start(channel, tunnels.carry(channel, connection)).ended

    def _fill_ops(self, around: Surroundings, state: str, fence: Fence) -> None:
        root = around.root
        connections: set[Flag] = set()
        self._ops = {
            "process": lambda channel, asked: process(channel, around, asked),
            "read": lambda channel, asked: files.read(channel, root, asked),
            "write": lambda channel, asked: files.write(channel, root, asked),
            "list": lambda channel, asked: files.list_folder(channel, root, asked),
            "stat": lambda _, asked: files.stat(root, asked),
            "get_tree": lambda channel, asked: trees.get_tree(channel, root, asked),
            "put_tree": lambda channel, asked: trees.put_tree(channel, root, asked),
            "private": lambda _, asked: private.private(state, asked),
            "unprivate": lambda _, asked: private.unprivate(state, asked),
            "connect": tunnels.connect,
            "listen": lambda channel, asked: tunnels.listen(channel, asked, self._accept, connections),
            "fence": lambda _, asked: _raise_fence(fence, asked),
        }

    def _failed(self, error: BaseException) -> None:
        _note("".join(traceback.format_exception(type(error), error, error.__traceback__)))
        self.end(code=_EXIT_PROTOCOL if isinstance(error, ProtocolError) else _EXIT_FAILED)


def _nothing_to_call(_asked: dict[str, Any]) -> Steps[dict[str, Any]]:
    raise Refused("There is nothing to call.", "closed")
    yield


def _raise_fence(fence: Fence, asked: dict[str, Any]) -> Steps[dict[str, Any]]:
    return {"ended": (yield from fence.raise_to(text_in(asked, "owner"), number_in(asked, "epoch", 0, _LARGEST_EPOCH)))}


def _find_root(path: str) -> str:
    try:
        root = os.path.realpath(path)
        if not os.path.isdir(root):
            os.stat(root)
            raise Refused(f"{path!r} is not a folder, so it can't be a workspace.", "root")
    except (OSError, ValueError) as error:
        raise Refused(f"{path!r} can't be a workspace: {error}", "root") from None
    if not os.access(root, os.R_OK | os.X_OK):
        raise Refused(f"There is no permission to look into {path!r}.", "root")
    return root


def _user() -> tuple[str, str]:
    """Return the name and the home of the user; an image need not know its own."""
    try:
        found = pwd.getpwuid(os.getuid())
    except KeyError:
        return str(os.getuid()), "/"
    return found.pw_name, found.pw_dir or "/"


def _note(text: str) -> None:
    """Write to standard error, of which the box keeps the end. Nothing waits for whoever reads that."""
    try:
        os.write(2, os.fsencode(f"agentcore helper: {text.rstrip()}\n"[-2000:]))
    except OSError:
        pass


def main() -> None:
    """Run the helper over standard input and output."""
    try:
        os.setsid()
    except OSError:
        pass  # it leads a session already
    heed_signals()
    os.umask(0o022)
    os.chdir("/")
    source, sink = take_stream()
    left = memoryview(GREETING)
    os.write(sink, left)
    helper = Helper(source, sink)
    helper.loop.run(helper.loop.start(helper.run()))
    # Whatever else is pending, there is nobody to do it for.
    os._exit(helper.exit_code)
