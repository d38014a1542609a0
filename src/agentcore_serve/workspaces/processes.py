"""A process over a WebSocket. `agentcore.wire.workspaces` says what the messages mean.

Above: the routes. Below: a `Process` of any workspace. The process belongs to the socket: closing it, a cut, or a client that says
nothing for 20 s ends the process with all that it started.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final, Literal, final

import anyio
from anyio.abc import TaskGroup
from pydantic import BaseModel, ValidationError
from starlette.websockets import WebSocket, WebSocketDisconnect

from agentcore._groups import leaf_exceptions
from agentcore.errors import AgentcoreError
from agentcore.wire.problems import Problem, problem_of
from agentcore.wire.workspaces import (
    PIECE,
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
    from_client,
)
from agentcore.workspace import Process
from agentcore_serve.refused import Refused, draining
from agentcore_serve.routes.table import Call
from agentcore_serve.workspaces.calls import hub_of, use

_FAILED: Final = 4400
_ORDERS_AT_ONCE: Final = 8


async def serve_process(call: Call) -> None:
    """Start the process that the first message asks for, and be its other end until one of the two is gone."""
    websocket = call.websocket
    hub_of(call).find(
        call.identity, call.params["workspace"]
    )  # one that is another's is refused as one that is not there
    await websocket.accept()
    silence = hub_of(call).limits.silence_seconds
    try:
        await _serve(call, websocket, silence)
    except Exception as error:
        first = leaf_exceptions(error)[0]
        if isinstance(first, WebSocketDisconnect):
            return
        problem = _problem_of(first)
        with anyio.move_on_after(silence), suppress(WebSocketDisconnect, RuntimeError):
            await websocket.send_text(NotOpened(problem=problem).model_dump_json())
            await websocket.close(_FAILED)
        if problem.code == "internal_error":
            raise


async def _serve(call: Call, websocket: WebSocket, silence: float) -> None:
    with anyio.fail_after(silence):
        asked = _parse(await websocket.receive_text())
    if not isinstance(asked, OpenProcess):
        raise ValueError("The first message has to open the process.")  # noqa: TRY004 - a value that was sent
    if hub_of(call).ending.is_set():
        raise draining()
    async with use(call) as opened:
        opening = opened.workspace.open_process(
            asked.command, pty=asked.pty, cwd=asked.cwd, env=asked.env, size=asked.size
        )
        async with opening as process:
            is_there = await _Session(websocket, process, silence).run(hub_of(call).ending)
        # It has ended, and a client that waits for this may rely on that.
        with anyio.move_on_after(silence if is_there else 0):
            await websocket.send_text(Closed(code=await process.wait()).model_dump_json())
            await websocket.close()


def _parse(text: str) -> OpenProcess | Order | Credit | KeepAlive | CloseProcess:
    try:
        return from_client().validate_json(text)
    except ValidationError as error:
        # Not the error itself, whose text repeats what was sent.
        raise ValueError(f"That is not a message to a process ({error.error_count()} faults).") from None


def _problem_of(error: BaseException) -> Problem:
    if isinstance(error, Refused):
        return Problem(title=error.code, status=error.status, detail=error.detail, code=error.code)
    return problem_of(error)


@final
class _Session:
    """A process and the socket that it belongs to."""

    def __init__(self, websocket: WebSocket, process: Process, silence: float) -> None:
        self._websocket = websocket
        self._process = process
        self._silence = silence
        self._sending = anyio.Lock()
        self._credit = {1: WINDOW, 2: WINDOW}
        self._more = {1: anyio.Event(), 2: anyio.Event()}
        self._orders = anyio.Semaphore(_ORDERS_AT_ONCE)
        # The client sends a piece when the one before was taken, so there is room; one that does not waits, pings and all.
        self._input_send, self._input = anyio.create_memory_object_stream[bytes | Order](1)

    async def run(self, ending: anyio.Event) -> bool:
        """Return when the client has left, or the server ends: True if the client is there, and waits for the end."""
        is_there = False
        async with self._input_send, self._input, anyio.create_task_group() as tasks:
            await self._say(Opened(pid=self._process.pid))
            tasks.start_soon(self._write)
            tasks.start_soon(self._pump, 1)
            tasks.start_soon(self._pump, 2)
            tasks.start_soon(self._await_exit)
            tasks.start_soon(self._end_with_server, ending, tasks.cancel_scope)
            is_there = await self._listen(tasks)
            tasks.cancel_scope.cancel("the client has left")
        return is_there

    async def _end_with_server(self, ending: anyio.Event, scope: anyio.CancelScope) -> None:
        await ending.wait()
        scope.cancel("the server ends")

    async def _listen(self, tasks: TaskGroup) -> bool:
        while True:
            with anyio.move_on_after(self._silence) as silent:
                message = await self._websocket.receive()
                if message["type"] != "websocket.receive":
                    return False
                if (data := message.get("bytes")) is not None:
                    await self._input_send.send(data)
                    continue
                match _parse(message.get("text") or ""):
                    case CloseProcess():
                        return True
                    case KeepAlive():
                        await self._say(KeepAlive())
                    case Credit(stream=stream, count=count):
                        self._credit[stream] = min(WINDOW, self._credit[stream] + count)
                        self._more[stream].set()
                    case Order(order="eof") as order:
                        await self._input_send.send(order)
                    case Order() as order:
                        await self._orders.acquire()
                        tasks.start_soon(self._obey, order)
                    case OpenProcess():
                        raise ValueError("The process is open already.")
            if silent.cancelled_caught:
                return False

    async def _write(self) -> None:
        async for data in self._input:
            error: Literal["broken", "closed"] | None = None
            try:
                if isinstance(data, bytes):
                    await self._process.send(data)
                else:
                    await self._process.send_eof()
            except anyio.BrokenResourceError:
                error = "broken"
            except anyio.ClosedResourceError:
                error = "closed"
            await self._say(Taken(error=error) if isinstance(data, bytes) else Done(id=data.id, stream_error=error))

    async def _obey(self, order: Order) -> None:
        try:
            result, problem = True, None
            try:
                if order.order == "signal":
                    await self._process.signal(order.signal)
                elif order.order == "interrupt":
                    result = await self._process.interrupt(started_within=order.started_within)
                elif order.order == "terminate":
                    await self._process.terminate()
                else:
                    await self._process.resize(*order.size)
            except (AgentcoreError, ValueError, TypeError, OSError, OverflowError) as error:
                problem = problem_of(error)
            await self._say(Done(id=order.id, result=result, problem=problem))
        finally:
            self._orders.release()

    async def _pump(self, stream: Literal[1, 2]) -> None:
        receive = self._process.receive if stream == 1 else self._process.receive_stderr
        mark = bytes([stream])
        try:
            while True:
                while not self._credit[stream]:
                    self._more[stream] = anyio.Event()
                    await self._more[stream].wait()
                data = await receive(min(PIECE, self._credit[stream]))
                self._credit[stream] -= len(data)
                async with self._sending:
                    await self._websocket.send_bytes(mark + data)
        except (anyio.EndOfStream, anyio.BrokenResourceError, anyio.ClosedResourceError):
            await self._say(End(stream=stream))

    async def _await_exit(self) -> None:
        await self._say(Exit(code=await self._process.wait()))

    async def _say(self, message: BaseModel) -> None:
        async with self._sending:
            await self._websocket.send_text(message.model_dump_json())
