"""The follower: folds the events of a conversation on a server into a state of its own.

Whole groups only, as the log has them: so its state is at each moment one that the server's was.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import anyio

from agentcore._delta import StreamDelta
from agentcore.agent import Agent
from agentcore.commands import Receipt
from agentcore.conversation.deltas import DeltaBroadcast
from agentcore.conversation.exceptions import safe_str
from agentcore.conversation.guards import LoopAffinity
from agentcore.conversation.result import RunFailure, RunResult, finished_value, make_result
from agentcore.conversation.watch import HeadSignal
from agentcore.errors import AgentcoreError, ConversationClosed, ConversationError, RunError
from agentcore.events import DRAINED, CommandedEvent, ConversationErrorEvent, ConversationStatus, Event
from agentcore.record import ConversationState
from agentcore.wire.frames import Cursor, DeltaFrame, EventFrame, Frame, Gap, Hello
from agentcore.wire.problems import Problem, code_of, error_of

Leave = Callable[["RemoteRun"], Awaitable[None]]

_CUT_OFF: Final = frozenset({"recovered", DRAINED})
"""The codes of a status that the end of a server left."""


class RemoteRun:
    """A run that a server does, and what the follower has seen of it. See `PendingRun`."""

    def __init__(self, follower: Follower, command_id: str, leave: Leave) -> None:
        self._follower = follower
        self._leave = leave
        self.command_id = command_id
        self.answered = anyio.Event()
        """Set when the server has answered the command, or will not."""
        self.receipt: Receipt | None = None
        self.error: Exception | None = None
        """Why there is no run, or nothing more is known of it."""
        self.settled = anyio.Event()
        self.seen = False
        """True once an event of the command was folded."""
        self.cut_off = False
        """True once the server ended while it did this."""
        self.waiting = 0
        """The callers that wait for it."""
        self.raised: Exception | None = None
        """The error that a callback of the program raised, which ended it."""
        self.closing = False
        """True if it was interrupted because this link ends."""
        self._result: RunResult | None = None
        self._failure: Event | None = None

    @property
    def is_there(self) -> bool:
        """True once the state has the run."""
        return self.seen or (self.receipt is not None and self.receipt.seq <= self._follower.state.head)

    async def recorded(self) -> Receipt:
        self.waiting += 1
        try:
            await self.answered.wait()
        finally:
            self.waiting -= 1
        if self.receipt is None:
            assert self.error is not None
            raise self.error
        await self._follower.wait_for(self.receipt.seq)
        self._follower.settle_runs()
        return self.receipt

    @property
    def result(self) -> RunResult | None:
        return self._result

    async def wait(self) -> None:
        self.waiting += 1
        try:
            await self.settled.wait()
        finally:
            self.waiting -= 1

    def outcome(self) -> RunResult:
        if self._result is None:
            raise self.error or ConversationClosed(self._follower.state.conversation_id)
        if self.raised is not None:
            text = f"The run failed with {type(self.raised).__name__}: {safe_str(self.raised)}"
            raise RunError(text, self._result, self.raised) from self.raised
        failure = self._failure
        if not isinstance(failure, ConversationErrorEvent) or not failure.raised:
            return self._result
        problem = Problem(title="", status=500, code=code_of(failure.code), detail=failure.detail)
        error = error_of(problem)
        failed = RunError(f"The run failed with {failure.code}: {failure.detail}", self._result, error)
        raise failed from None if isinstance(error, AgentcoreError) else error

    async def leave(self) -> None:
        await self._leave(self)

    def finish(self, result: RunResult | None, failure: Event | None, error: Exception | None = None) -> None:
        """End the waiting: with a result, or with why there will be none."""
        if self.closing and result is not None:
            closed = RunFailure(code="closed", detail="The conversation was closed while the agent worked.")
            result = result.model_copy(update={"error": closed})
        self._result, self._failure, self.error = result, failure, self.error or error
        if self.error is not None:
            self.answered.set()  # else the receipt is on its way, or will be once the connection is back
        self.settled.set()


class Follower:
    """The state of a conversation elsewhere, folded here, and the runs that callers wait for."""

    def __init__(self, conversation_id: str, agent: Agent | None) -> None:
        self.home = LoopAffinity(conversation_id)
        self.state = ConversationState(conversation_id)
        self.head_signal = HeadSignal(self.home)
        self.deltas = DeltaBroadcast(self.home)
        self.agent = agent
        """Whose output type results are read as."""
        self.birth: str | None = None
        self.failure: Exception | None = None
        """Why nothing more will come."""
        self.runs: dict[str, RemoteRun] = {}
        """Those that have not settled, by the id of their command."""
        self._group: list[Event] = []
        self._last: Event | None = None

    @property
    def cursor(self) -> Cursor:
        """Where the stream goes on."""
        return Cursor(self.state.head, self.birth)

    def feed(self, frame: Frame) -> None:
        """Take the next frame of the stream.

        Raises:
            ConversationError: The stream does not go on where it was left.
        """
        match frame:
            case EventFrame():
                self._feed_event(frame)
            case DeltaFrame():
                for delta in frame.items:
                    self.deltas.publish(delta)
            case Gap():
                self.deltas.publish(StreamDelta(type="gap", lost=frame.lost))
            case Hello():
                self._group.clear()  # a group that a cut left unfinished comes again
                if self.birth not in (None, frame.birth):
                    raise ConversationError(f"Conversation {self.state.conversation_id!r} was deleted and begun anew.")
                self.birth = frame.birth
            case _:
                pass

    def _feed_event(self, frame: EventFrame) -> None:
        expected = self.state.head + len(self._group) + 1
        if frame.seq < expected:
            return
        if frame.seq > expected:
            raise ConversationError(f"The stream skipped from event {expected - 1} to {frame.seq}.")
        self._group.append(frame.event)
        if frame.seq == frame.group:
            group, self._group = self._group, []
            for event in group:
                self.state.apply(event, group_ends=event is group[-1])
            self._folded(group)

    def _folded(self, group: Sequence[Event]) -> None:
        for event in group:
            self._last = event if isinstance(event, ConversationErrorEvent) else self._last
            if isinstance(event, CommandedEvent) and event.command in self.runs:
                self.runs[event.command].seen = True
        if self.state.status_code in _CUT_OFF:
            # It may be continued: whoever connects again knows.
            for run in self.runs.values():
                run.cut_off = run.cut_off or run.is_there
        else:
            self.settle_runs()
        self.head_signal.notify()

    def settle_runs(self, *, recovered: bool = False) -> None:
        """Settle the runs that are over. With `recovered`, those too that a restart of the server cut off for good."""
        state = self.state
        if state.is_working or (state.status_code in _CUT_OFF and not recovered):
            return
        over = [run for run in self.runs.values() if run.is_there]
        if not over:
            return
        result = make_result(state, finished_value(None if self.agent is None else self.agent.output, state))
        failed = state.status is ConversationStatus.ERROR
        for run in over:
            del self.runs[run.command_id]
            run.finish(result, self._last if failed else None)

    def begin(self, command_id: str, leave: Leave) -> RemoteRun:
        """Watch for a run from now on; `leave` tells the server that a caller waits for it no longer."""
        run = self.runs[command_id] = RemoteRun(self, command_id, leave)
        return run

    def fail_runs(self, error: Exception) -> None:
        """Have the runs under way raise what a callback of the program raised, once they have settled."""
        for run in self.runs.values():
            run.raised = run.raised or error

    async def wait_for(self, seq: int) -> None:
        """Wait until an event was folded.

        Raises:
            AgentcoreError: It will not be.
        """
        await self.wait_until(lambda: self.state.head >= seq)

    async def wait_until(self, condition: Callable[[], bool]) -> None:
        """Wait until something holds of the state.

        Raises:
            AgentcoreError: There will be no more events.
        """
        while not condition():
            if self.failure is not None:
                raise self.failure
            await self.head_signal.wait()

    def end(self, failure: Exception) -> None:
        """Nothing more will come: everybody who waits gets to know why."""
        self.failure = self.failure or failure
        for run in [*self.runs.values()]:
            run.finish(None, None, failure)
        self.runs.clear()
        self.deltas.close()
        self.head_signal.close()
