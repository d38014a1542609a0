"""The op `process`: a process with its streams, until the other side has left it and all of it is ended."""

from __future__ import annotations

import errno
import os
import time

from agentcore_sandbox.helper.channel import Channel, number_in, text_in, texts_in
from agentcore_sandbox.helper.children import Children
from agentcore_sandbox.helper.errors import Refused
from agentcore_sandbox.helper.launch import LaunchSpec, Started, set_size, start
from agentcore_sandbox.helper.loop import Cancelled, Flag, Task
from agentcore_sandbox.helper.stream import DATA, DATA_ERR, STREAM_ERR, STREAM_IN, STREAM_OUT, is_list
from agentcore_sandbox.helper.table import MARKS
from agentcore_sandbox.helper.tree import ProcessTree

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from agentcore_sandbox.helper.loop import Steps

_LARGEST_SIDE = 65535
_LAST_SIGNAL = 64
_FEED_SECONDS, _FEED_PAUSE = 0.1, 0.002


class Surroundings:
    """The folder, variables and marks of every command."""

    def __init__(
        self,
        root: str,
        env: dict[str, str],
        children: Children,
        as_child: Callable[[Callable[[], Any]], Any],
        marks: str,
    ) -> None:
        self.root = root
        self.env = env
        self.children = children
        self.as_child = as_child
        self.marks = marks
        """The marks of what is around every command."""


def process(channel: Channel, around: Surroundings, asked: dict[str, Any]) -> Steps[dict[str, Any]]:
    """Start a process and stay with it."""
    mark = os.urandom(8).hex()
    started = start(_spec(around, asked, mark), around.as_child)
    running = Running(channel, around.children, started, mark)
    try:
        channel.answer(0, pid=started.pid)
        channel.call = running.call
        if started.stderr < 0:
            channel.eof_byte = b"\x04"
            channel.end_stream(STREAM_ERR)
        yield from running.attend()
    except Cancelled:
        pass
    finally:
        channel.call = None
        running.let_go_of_streams()
        try:
            yield from running.tree.terminate()
            code = around.children.code(started.pid)
        finally:
            running.close()
    # Without a code it could not be ended.
    return {"code": 255 if code is None else code}


class Running:
    """A process that runs."""

    def __init__(self, channel: Channel, children: Children, started: Started, mark: str) -> None:
        self._channel = channel
        self._children = children
        self._started = started
        self._ended = children.hold(started.pid)
        self._has_terminal = started.stderr < 0
        self._open = {started.stdin, started.stdout, started.stderr} - {-1}
        self._is_feeding = self._is_broken = False
        self._fed = Flag()
        self.tree = ProcessTree(children, started.pid, mark, started.stdin if self._has_terminal else None)
        loop = channel.loop
        self._tasks: list[Task] = [
            loop.start(self._feed()),
            loop.start(self._pump(started.stdout, DATA, STREAM_OUT)),
        ]
        if not self._has_terminal:
            self._tasks.append(loop.start(self._pump(started.stderr, DATA_ERR, STREAM_ERR)))

    def attend(self) -> Steps[None]:
        """Report its end, and then stay until the other side leaves."""
        while self._children.code(self._started.pid) is None:
            yield self._ended
        self._channel.exited(self._children.code(self._started.pid) or 0)
        while True:
            yield Flag()

    def call(self, asked: dict[str, Any]) -> Steps[dict[str, Any]]:
        """Do what is called for."""
        name = text_in(asked, "call")
        if name == "signal":
            self._signal(number_in(asked, "signal", 0, _LAST_SIGNAL))
        elif name == "interrupt" and self._has_terminal:
            within = asked.get("started_within")
            if within is not None and not isinstance(within, (int, float)):
                raise Refused("'started_within' is not a number of seconds.")
            # A caller that was cancelled while it sent a line: the line first, or it would be read after what is to end it.
            deadline = time.monotonic() + _FEED_SECONDS
            while (self._is_feeding or self._channel.has_unread) and time.monotonic() < deadline:
                yield _FEED_PAUSE
            return {"result": (yield from self.tree.interrupt(within))}
        elif name in ("terminate", "interrupt"):
            yield from self.tree.terminate()
            return {"result": True}
        elif name == "drain":
            # Taken by the process (or its terminal), or thrown away.
            while self._is_feeding or self._channel.has_unread:
                yield self._fed
            return {"result": not self._is_broken}
        elif name == "resize":
            self._resize(number_in(asked, "columns", 1, _LARGEST_SIDE), number_in(asked, "rows", 1, _LARGEST_SIDE))
        else:
            raise Refused(f"A process has no call {name!r}.")
        return {"result": None}

    def let_go_of_streams(self) -> None:
        """Send and take nothing any more. A terminal stays open: closing it would end what runs there in a way of its own."""
        for task in self._tasks:
            task.cancel()
        for task in list(self._channel.calls):
            task.cancel()

    def close(self) -> None:
        """Collect it and close its streams."""
        for descriptor in list(self._open):
            self._close(descriptor)
        self.tree.collected()
        self._children.release(self._started.pid)

    def _signal(self, number: int) -> None:
        group = self.tree.foreground()
        try:
            os.killpg(group, number)
        except ProcessLookupError:
            pass
        except PermissionError:
            raise Refused(f"Group {group} runs as another user: it can't get signal {number}.") from None
        except OSError as error:
            raise Refused(f"There is no signal {number}: {error.strerror}.") from None

    def _resize(self, columns: int, rows: int) -> None:
        if not self._has_terminal:
            raise Refused(f"Process {self._started.pid} has no terminal to resize. Open it with pty=True.")
        set_size(self._started.stdin, columns, rows)

    def _close(self, descriptor: int) -> None:
        if descriptor in self._open:
            self._open.discard(descriptor)
            self._channel.loop.forget(descriptor)
            os.close(descriptor)

    def _feed(self) -> Steps[None]:
        """Write what comes to its standard input."""
        while True:
            data = yield from self._channel.receive()
            if data is None:
                break
            self._is_feeding = True
            view = memoryview(data)
            while view and not self._is_broken:
                try:
                    view = view[os.write(self._started.stdin, view) :]
                except BlockingIOError:
                    yield self._channel.loop.writable(self._started.stdin)
                except OSError:
                    # Nothing reads there any more. What still comes is thrown away, so that nobody waits for room.
                    self._is_broken = True
                    self._channel.end_stream(STREAM_IN)
            self._is_feeding = False
            self._fed.fire()
        if not self._has_terminal:
            self._close(self._started.stdin)

    def _pump(self, descriptor: int, kind: int, stream: int) -> Steps[None]:
        """Send what it writes."""
        while True:
            room = yield from self._channel.room(kind)
            try:
                data = os.read(descriptor, room)
            except BlockingIOError:
                yield self._channel.loop.readable(descriptor)
                continue
            except OSError as error:
                # EIO: nobody has the other end of the terminal open any more.
                if error.errno != errno.EIO:
                    raise
                data = b""
            if not data:
                break
            yield from self._channel.send(data, kind)
        self._channel.end_stream(stream)
        if not self._has_terminal:
            self._close(descriptor)


def _spec(around: Surroundings, asked: dict[str, Any], mark: str) -> LaunchSpec:
    line: Any = asked.get("line")
    arguments: Any = asked.get("argv")
    if (line is None) == (arguments is None):
        raise Refused("A process has a 'line' or an 'argv'.")
    if not isinstance(line, str) and not (is_list(arguments) and all(isinstance(each, str) for each in arguments)):
        raise Refused("'line' is a text, and 'argv' a list of texts.")
    command: str | list[str] = line if arguments is None else arguments
    cwd = asked.get("cwd")
    shown = cwd if isinstance(cwd, str) else around.root
    size: tuple[int, int] | None = None
    env = dict(around.env)
    if asked.get("pty"):
        sides: Any = asked.get("size") or [80, 24]
        if not is_list(sides) or len(sides) != 2:
            raise Refused("'size' is not [columns, rows].")
        values = {"columns": sides[0], "rows": sides[1]}
        size = number_in(values, "columns", 1, _LARGEST_SIDE), number_in(values, "rows", 1, _LARGEST_SIDE)
        env.pop("COLUMNS", None)
        env.pop("LINES", None)
        if env.get("TERM", "dumb") == "dumb":
            env["TERM"] = "xterm-256color"
    else:
        env.setdefault("TERM", "dumb")
    env.update(texts_in(asked, "env"))
    env[MARKS] = f"{around.marks}:{mark}"
    return LaunchSpec(command, os.path.join(around.root, shown), shown, env, size)
