"""`RemoteProcess`: a process of a server's workspace, over one WebSocket that a task of its own holds.

Above: `RemoteWorkspace`, whose task group runs that task. Below: `Socket`, and the messages of `agentcore.wire.workspaces`. The methods
only hand messages to the task and wait for what it hears, so cancelling one of them never leaves half a message on the way.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Final, Literal, final

import anyio
from anyio.lowlevel import checkpoint
from pydantic import BaseModel, ValidationError

from agentcore.errors import AgentcoreError, ConnectionLost, WorkspaceError
from agentcore.wire.problems import error_of
from agentcore.wire.workspaces import (
    PIECE,
    PING_SECONDS,
    SILENCE_SECONDS,
    WINDOW,
    Closed,
    CloseProcess,
    Credit,
    Done,
    End,
    Exit,
    KeepAlive,
    NotOpened,
    Opened,
    OpenProcess,
    Order,
    Taken,
    from_server,
)
from agentcore.workspace.unread import UnreadBytes

if TYPE_CHECKING:
    from agentcore.remote.socket import Socket

CLOSE_SECONDS: Final = 7.0
"""How long leaving a process waits for the server to have ended it. A server that does not answer ends it 20 s after the last word."""

_STREAM_ERRORS: Final = {"broken": anyio.BrokenResourceError, "closed": anyio.ClosedResourceError}


@final
class RemoteProcess:
    """A process on a server, as `Process` describes it.

    Args:
        opening: What to start.
        open_socket: Opens the WebSocket for it.
        url: The server's, for messages.
    """

    def __init__(
        self, opening: OpenProcess, open_socket: Callable[[], AbstractAsyncContextManager[Socket]], url: str
    ) -> None:
        self._opening = opening
        self._open_socket = open_socket
        self._url = url
        self._pid: int | None = None
        self._code: int | None = None
        self._left = False
        self._error: Exception | None = None
        self._started, self._ended, self._over = anyio.Event(), anyio.Event(), anyio.Event()
        # As many as callers wait for: each hands over one message and then waits.
        self._out: deque[str | bytes] = deque()
        self._out_news = anyio.Event()
        self._streams = {1: UnreadBytes(WINDOW), 2: UnreadBytes(WINDOW)}
        self._orders: dict[int, _Answer] = {}
        self._pieces: deque[_Answer] = deque()
        self._last_id = 0

    async def hold(self) -> None:
        """Hold the socket until the process or the connection has ended. Run by one task; it raises nothing."""
        try:
            async with self._open_socket() as socket:
                await socket.send(self._opening.model_dump_json())
                async with anyio.create_task_group() as tasks:
                    tasks.start_soon(self._send_on, socket)
                    tasks.start_soon(self._ping)
                    await self._hear(socket)
                    tasks.cancel_scope.cancel("the process is over")
        except AgentcoreError as error:
            self._fail(error)
        except ExceptionGroup as group:
            self._fail(ConnectionLost(self._url, str(group.exceptions[0])))
        finally:
            self._fail(ConnectionLost(self._url, "the workspace was left"))

    async def started(self) -> None:
        """Wait until it runs.

        Raises:
            PathError, WorkspaceError: It could not be started.
            ConnectionLost: The server can't be reached.
        """
        await self._started.wait()
        if self._pid is None:
            assert self._error is not None
            raise self._error

    async def aclose(self) -> None:
        """End it, and wait for that, within a bound. Closing twice is fine."""
        if not self._left:
            self._left = True
            for stream in self._streams.values():
                stream.close()
            self._hand_over(CloseProcess())
        with anyio.move_on_after(CLOSE_SECONDS, shield=True):
            await self._over.wait()

    @property
    def pid(self) -> int:
        assert self._pid is not None
        return self._pid

    @property
    def returncode(self) -> int | None:
        return self._code

    async def send(self, data: bytes) -> None:
        await checkpoint()
        left = memoryview(data)
        while left:
            self._check_open()
            answer = _Answer()
            self._pieces.append(answer)
            self._put(bytes(left[:PIECE]))
            left = left[PIECE:]
            await answer.wait()

    async def send_eof(self) -> None:
        self._check_open()
        await self._order(Order(id=0, order="eof"))

    async def receive(self, max_bytes: int = 65536) -> bytes:
        return await self._receive(1, max_bytes)

    async def receive_stderr(self, max_bytes: int = 65536) -> bytes:
        return await self._receive(2, max_bytes)

    async def signal(self, signal: int) -> None:
        await self._order_unless_left(Order(id=0, order="signal", signal=signal))

    async def interrupt(self, *, started_within: float | None = None) -> bool:
        return await self._order_unless_left(Order(id=0, order="interrupt", started_within=started_within))

    async def terminate(self) -> None:
        await self._order_unless_left(Order(id=0, order="terminate"))

    async def resize(self, columns: int, rows: int) -> None:
        if not self._opening.pty:
            await checkpoint()
            raise WorkspaceError(f"Process {self.pid} has no terminal to resize. Open it with pty=True.")
        self._check_open()
        await self._order(Order(id=0, order="resize", size=(columns, rows)))

    async def wait(self) -> int:
        await checkpoint()
        await self._ended.wait()
        if self._code is None:
            assert self._error is not None
            raise self._error
        return self._code

    async def _receive(self, stream: Literal[1, 2], max_bytes: int) -> bytes:
        data = await self._streams[stream].take(max_bytes)
        if not self._over.is_set():
            self._hand_over(Credit(stream=stream, count=len(data)))
        return data

    async def _order_unless_left(self, order: Order) -> bool:
        await checkpoint()
        if self._left:
            return True
        return await self._order(order)

    async def _order(self, order: Order) -> bool:
        if self._error is not None:
            raise self._error
        self._last_id = order_id = self._last_id + 1
        answer = self._orders[order_id] = _Answer()
        try:
            self._hand_over(order.model_copy(update={"id": order_id}))
            return await answer.wait()
        finally:
            self._orders.pop(order_id, None)

    def _check_open(self) -> None:
        if self._left:
            raise anyio.ClosedResourceError
        if self._error is not None:
            raise self._error

    def _hand_over(self, message: BaseModel) -> None:
        self._put(message.model_dump_json())

    def _put(self, message: str | bytes) -> None:
        self._out.append(message)
        self._out_news.set()

    async def _send_on(self, socket: Socket) -> None:
        while True:
            while self._out:
                await socket.send(self._out.popleft())
            self._out_news = anyio.Event()
            await self._out_news.wait()

    async def _ping(self) -> None:
        while True:
            await anyio.sleep(PING_SECONDS)
            self._hand_over(KeepAlive())

    async def _hear(self, socket: Socket) -> None:
        while True:
            with anyio.move_on_after(SILENCE_SECONDS) as silent:
                try:
                    message = await socket.receive()
                except anyio.EndOfStream:
                    raise ConnectionLost(self._url, "the server closed it") from None
                if isinstance(message, bytes):
                    self._streams[message[0]].add(message[1:])
                elif self._note(message):
                    return
            if silent.cancelled_caught:
                raise ConnectionLost(self._url, f"the server was silent for {SILENCE_SECONDS:g} s")

    def _note(self, text: str) -> bool:
        """Take in a message; True if it is the last one."""
        try:
            message = from_server().validate_json(text)
        except ValidationError:
            raise ConnectionLost(self._url, "the server sent what is no message of a process") from None
        match message:
            case Opened():
                self._pid = message.pid
                self._started.set()
            case Taken():
                self._pieces.popleft().set(stream_error=message.error)
            case Done():
                answer = self._orders.get(message.id)
                if answer is not None:
                    error = error_of(message.problem) if message.problem else None
                    answer.set(message.result, error=error, stream_error=message.stream_error)
            case End():
                self._streams[message.stream].end()
            case Exit() | Closed():
                self._code = message.code
                self._ended.set()
                return isinstance(message, Closed)
            case NotOpened():
                self._fail(error_of(message.problem))
                return True
            case KeepAlive():
                pass
        return False

    def _fail(self, error: Exception) -> None:
        """End all waiting: nothing more comes. The first reason counts."""
        if self._over.is_set():
            return
        self._error = error
        self._over.set()
        self._started.set()
        self._ended.set()
        for stream in self._streams.values():
            stream.end(error)
        for answer in (*self._orders.values(), *self._pieces):
            answer.set(error=None if self._left else error)


@final
class _Answer:
    """One who handed something over, and waits."""

    def __init__(self) -> None:
        self._event = anyio.Event()
        self._result = True
        self._error: Exception | None = None

    def set(
        self,
        result: bool = True,
        *,
        error: Exception | None = None,
        stream_error: Literal["broken", "closed"] | None = None,
    ) -> None:
        self._result, self._error = result, error
        if stream_error is not None:
            self._error = _STREAM_ERRORS[stream_error]()
        self._event.set()

    async def wait(self) -> bool:
        await self._event.wait()
        if self._error is not None:
            raise self._error
        return self._result
