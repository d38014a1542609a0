"""The link to a conversation on a server: commands go there as they are, and its events are folded here.

Above: the handle, which is the same as for a conversation in this process. Below: the client of the server. One task keeps
the stream open, over cuts and restarts of the server, and gives up when it could not for `reconnect_seconds`.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from contextvars import Context
from typing import Any, Final, Protocol
from urllib.parse import quote, urlencode

import anyio
from anyio.abc import TaskGroup, TaskStatus
from pydantic import JsonValue

from agentcore.commands import Command, Delete, Interrupt, Job, Leave, Receipt, Rewind, Run, SetAgent
from agentcore.conversation.deltas import DeltaCursor
from agentcore.conversation.journal import Attachment
from agentcore.conversation.watch import HeadSignal
from agentcore.errors import AgentcoreError, ConnectionLost, ConversationClosed, ConversationError, ServerError
from agentcore.logs import get_logger
from agentcore.record import ConversationState, Store
from agentcore.remote.client import ServerClient
from agentcore.remote.follower import Follower, RemoteRun
from agentcore.wire.frames import AskFrame, Bye, Frame, Withdraw, parse_frames
from agentcore.wire.problems import error_of
from agentcore.wire.requests import ConversationInfo, ConversationSpec, encode_body
from agentcore.wire.routes import Beside, CommandCall, request_for
from agentcore.workspace import Workspace

_log = get_logger(__name__)

_LEAVE_SECONDS: Final = 5.0
_SILENCE_SECONDS: Final = 40.0
"""A stream that says nothing for longer than two pings is dead, whatever its socket says."""
_DELAY: Final = 0.1
_FINAL: Final = frozenset({401, 403, 404, 410})
"""The statuses that refuse a stream for good."""
_RESULTS: Final = {"ask": "text", "fork": "conversation", "condense": "seq", "checkpoint": "seq"}
"""The field of the answer that is the result of a job."""


class ClientParts(Protocol):
    """The parts of a conversation that run in the client."""

    def start(self, link: RemoteLink, tasks: TaskGroup) -> None:
        """Begin; called before the first frame."""
        ...

    async def stop(self) -> None:
        """Stop what runs, and close what tools hold open."""
        ...

    def feed(self, frame: AskFrame | Withdraw) -> None:
        """Take what the server asks, or no longer asks; never waits."""
        ...

    def prepare(self, command: Command, attachment: Attachment | None) -> tuple[Command, Beside | None]:
        """Return a command as it is sent, and what travels beside it: a key, the values of secrets."""
        ...

    def renewed(self) -> Sequence[tuple[Command, Beside]]:
        """Return the commands that give a server, which may have been started anew, what it was given since the opening."""
        ...


class RemoteLink:
    """Carries commands to a server, and follows the log there. See `Link`.

    Args:
        client: The server.
        follower: What the events are folded to.
        workspace: Where the agent works, as tools that run here see it.
        spec: What the conversation is opened with. It is sent again after each cut, since a server that was started anew has
            neither keys nor the client's tools.
        parts: What runs here.
        client_id: Names this client to the server, which asks it what only it can do.
    """

    def __init__(
        self,
        client: ServerClient,
        follower: Follower,
        workspace: Workspace,
        spec: ConversationSpec,
        parts: ClientParts,
        *,
        client_id: str,
    ) -> None:
        self._client = client
        self._follower = follower
        self._workspace = workspace
        self._spec = encode_body(spec)
        self._parts = parts
        self._client_id = client_id
        self._tasks: TaskGroup | None = None
        self._posting: set[RemoteRun] = set()
        self._closed = False
        self._ended = anyio.Event()

    @property
    def state(self) -> ConversationState:
        return self._follower.state

    @property
    def head_signal(self) -> HeadSignal:
        return self._follower.head_signal

    @property
    def workspace(self) -> Workspace:
        return self._workspace

    @property
    def store(self) -> Store:
        raise ConversationError(f"The log of this conversation is kept by the server at {self._client.url}.")

    @property
    def repaired(self) -> str | None:
        return None

    def check(self) -> None:
        if self._follower.failure is not None:
            raise self._follower.failure
        if self._closed:
            raise ConversationClosed(self.state.conversation_id)

    def check_loop(self) -> None:
        if not self._closed:
            self._follower.home.check_loop()

    async def execute(self, command: Command, attachment: Attachment | None = None) -> Receipt:
        command, beside = self._parts.prepare(command, attachment)
        receipt = Receipt.model_validate(await self._send(request_for(command, beside)))
        await self._follower.wait_for(receipt.seq)
        if isinstance(command, Rewind) and command.files:
            # The server has answered because the files are back, and that is an event of its own.
            files = self.state.checkpoints
            await self._follower.wait_until(lambda: files.due is None or files.due.seq != receipt.seq)
        if isinstance(command, SetAgent) and attachment is not None:
            self._follower.agent = attachment.agent
        return receipt

    def begin_run(self, command: Run, context: Context) -> RemoteRun:  # noqa: ARG002 the turn runs elsewhere
        self.check()
        self.check_loop()
        run = self._follower.begin(command.id, self._leave)
        self._posting.add(run)
        self._running.start_soon(self._post_run, command, run, name="run")
        return run

    async def _post_run(self, command: Run, run: RemoteRun) -> None:
        try:
            # What attends the run is said where the conversation was opened.
            run.receipt = Receipt.model_validate(await self._send(request_for(command)))
            run.answered.set()
        except AgentcoreError as error:
            self._follower.runs.pop(run.command_id, None)
            run.finish(None, None, error)
        finally:
            self._posting.discard(run)

    async def _leave(self, run: RemoteRun) -> None:
        # Handed over before anything is awaited; a bound, since the server may not be there.
        done = anyio.Event()
        self._running.start_soon(self._post_leave, run, done, name="leave")
        with anyio.move_on_after(_LEAVE_SECONDS, shield=True):
            await done.wait()

    async def _post_leave(self, run: RemoteRun, done: anyio.Event) -> None:
        try:
            await run.answered.wait()
            if run.receipt is not None and run.result is None:
                if run.cut_off:
                    # The server went on with it by itself, so that there nobody waits for it who could leave.
                    others = [each for each in self._follower.runs.values() if each is not run and each.waiting]
                    if self._closed or not others:
                        await self.interrupt(
                            Interrupt(run=self.state.run.seq, reason="the caller of run() was cancelled")
                        )
                else:
                    await self.leave(run.command_id)
        except AgentcoreError as error:
            _log.warning("could not leave a run", conversation=self.state.conversation_id, error=type(error).__name__)
        finally:
            done.set()

    async def interrupt(self, command: Interrupt) -> None:
        for run in tuple(self._posting):  # asked for before, and meant too
            await run.answered.wait()
            if run.receipt is not None:
                await self._follower.wait_for(run.receipt.seq)
        if command.run != self.state.run.seq:
            command = command.model_copy(update={"run": self.state.run.seq})
        await self.execute(command)

    async def interrupt_call(self, action_id: str) -> bool:
        path = f"/actions/{quote(action_id, safe='')}/interrupt"
        answer = await self._send(CommandCall("POST", path, {}))
        return bool(answer)

    async def leave(self, waiter: str) -> None:
        await self.execute(Leave(waiter=waiter))

    async def job(self, job: Job) -> JsonValue:
        answer = await self._send(request_for(job))
        if isinstance(job, Delete):
            self._end(ConversationClosed(self.state.conversation_id))
            return None
        # What it wrote is in the state by then, as it is where the conversation is.
        if isinstance(seq := answer.get("seq"), int):
            await self._follower.wait_for(seq)
        return answer[_RESULTS[job.kind]]

    def deltas(self) -> DeltaCursor:
        self.check_loop()
        return self._follower.deltas.subscribe()

    async def close(self) -> None:
        """End the link; the conversation stays where it is. The runs that callers of this link wait for are left."""
        if self._closed:
            await anyio.lowlevel.checkpoint()
            return
        self._closed = True
        waited = [run for run in self._follower.runs.values() if run.waiting]
        for run in waited:
            run.closing = True
        with anyio.move_on_after(_LEAVE_SECONDS, shield=True):  # noqa: ASYNC912 nothing to wait for where nobody waits
            for run in waited:
                await self._leave(run)
            for run in waited:
                await run.settled.wait()
        self._end(ConversationClosed(self.state.conversation_id))

    def _end(self, failure: Exception) -> None:
        self._closed = True
        self._follower.end(failure)
        self._ended.set()

    @property
    def _running(self) -> TaskGroup:
        if self._tasks is None:
            raise ConversationClosed(self.state.conversation_id)
        return self._tasks

    @property
    def path(self) -> str:
        """The conversation's path below the API's root."""
        return f"conversations/{quote(self.state.conversation_id, safe='')}"

    async def _send(self, call: CommandCall) -> Any:
        response = await self._client.request(call.method, self.path + call.path, json=call.body)
        return response.json() if response.content else None

    async def serve(self, *, task_status: TaskStatus[None]) -> None:
        """Open the conversation there, follow it, and carry runs until the link ends; report when it has caught up.

        Raises:
            AgentcoreError: It could not be opened, or followed the first time.
        """
        info = await self._open_there(replace=True)
        started = False
        # Ended by `close`, and then not by a cancellation: a caller that is cancelled still leaves its run.
        with anyio.CancelScope() as scope:
            async with anyio.create_task_group() as self._tasks:
                self._parts.start(self, self._tasks)
                self._tasks.start_soon(self._follow, info)
                with suppress(AgentcoreError):  # raised below
                    await self._follower.wait_for(info.head)
                    scope.shield = started = True
                    task_status.started()
                    await self._ended.wait()
                await self._parts.stop()
                self._tasks.cancel_scope.cancel()
        if not started:
            raise self._follower.failure or ConversationClosed(self.state.conversation_id)

    async def _open_there(self, *, replace: bool = False) -> ConversationInfo:
        # Of two programs that open it differently the later one has it: the other one is told so, and does not take it back.
        # Opened again it has to be there: what somebody deleted meanwhile is not begun anew.
        params = {"replace": "1"} if replace else {"create": "0"}
        headers = {"Content-Type": "application/json"}
        response = await self._client.request("PUT", self.path, content=self._spec, params=params, headers=headers)
        return ConversationInfo.model_validate_json(response.content)

    async def _follow(self, info: ConversationInfo) -> None:
        try:
            while True:
                await self._follow_once(info)
                info = await self._open_there()  # the client tries for as long as it may
                if again := self._parts.renewed():
                    for command in again:
                        await self._send(request_for(*command))
                    info = await self._open_there()  # what was cut off may go on since
        except AgentcoreError as error:
            self._end(error)

    async def _follow_once(self, info: ConversationInfo) -> None:
        """Read one stream to its end, whatever ends it."""
        query: dict[str, str | int] = {"after": self.state.head, "client": self._client_id}
        if self._follower.birth is not None:
            query["birth"] = self._follower.birth
        began = anyio.current_time()
        try:
            async with self._client.stream_socket(f"{self.path}/stream?{urlencode(query)}") as socket:
                going, caught_up = True, False
                while going:
                    with anyio.fail_after(_SILENCE_SECONDS):
                        message = await socket.receive()
                    for frame in parse_frames(message):
                        going = self._take(frame) and going
                    if not caught_up and self.state.head >= info.head:
                        # Nothing that was there on opening is still to come: what is at rest now stays so. Once only: a server
                        # that ends may pause what works before it ends this stream.
                        caught_up = True
                        self._follower.settle_runs(recovered=True)
        except (ConnectionLost, TimeoutError, anyio.EndOfStream):
            pass
        except ServerError as error:
            if error.status in _FINAL:
                raise
        # A stream that ends as soon as it is open is not asked for in a tight loop.
        if anyio.current_time() - began < 1:
            await anyio.sleep(random.uniform(_DELAY, 5 * _DELAY))  # noqa: S311 - jitter is no secret

    def _take(self, frame: Frame) -> bool:
        """Take a frame; return False where it is the last of its stream.

        Raises:
            AgentcoreError: There will be no other stream of this conversation.
        """
        match frame:
            case AskFrame() | Withdraw():
                self._parts.feed(frame)
            case Bye(problem=problem, code=code):
                if problem is not None and problem.status in _FINAL:
                    raise error_of(problem)
                if code == "deleted":
                    raise ConversationClosed(self.state.conversation_id)
                return False
            case _:
                self._follower.feed(frame)
        return True
