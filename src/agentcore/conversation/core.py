"""The core of an open conversation: what its tasks and its handle share, with one owner for each thing."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from contextlib import suppress
from contextvars import copy_context
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Final, TypeVar

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectSendStream

from agentcore.agent import Agent
from agentcore.commands import (
    AddSecrets,
    Answer,
    Approve,
    Decline,
    Interrupt,
    Leave,
    Reject,
    Rewind,
    Run,
    SetAgent,
    SetLimits,
    SetPolicy,
)
from agentcore.condense import Measure
from agentcore.context import View
from agentcore.conversation.calls import CallTable
from agentcore.conversation.deferral import Deferral
from agentcore.conversation.deltas import DeltaBroadcast
from agentcore.conversation.guards import LoopAffinity
from agentcore.conversation.jobs import Jobs, StartedJob
from agentcore.conversation.journal import Decision, Journal
from agentcore.conversation.prompt import PromptSource
from agentcore.conversation.questions import LiveQuestions, OnQuestion
from agentcore.conversation.result import RunOutput, make_result
from agentcore.conversation.tools import ToolSessions
from agentcore.conversation.turn import Turn
from agentcore.conversation.watch import HeadSignal
from agentcore.errors import ConversationClosed, StoreError
from agentcore.events import ActionEvent, ActionStarted
from agentcore.llm import Model
from agentcore.record import ConversationState, Store
from agentcore.secrets import SecretRegistry
from agentcore.security import AlwaysConfirm, Check, Confirm, as_checks, read_checks
from agentcore.stuck import StuckTracker
from agentcore.workspace import Workspace

ResultT = TypeVar("ResultT")

_STARTING: Final = frozenset(("run", "approve", "reject", "answer", "decline"))
"""The kinds of commands that may begin a turn."""


class Lifecycle:
    """How far a conversation is from its end, and what becomes of it then. Its own task reads it, others ask."""

    def __init__(self, *, delete: bool) -> None:
        self.stop = anyio.Event()
        """Set to end the conversation."""
        self.ended = anyio.Event()
        """Set when nothing is left of it."""
        self.serving = False
        """True while turns may begin: not while it is being opened or closed."""
        self.failure: StoreError | None = None
        """Why the log is dead."""
        self.delete = delete
        """True if the log and the outputs kept in the workspace are removed with the conversation."""
        self.delete_error: StoreError | None = None
        """Why the log could not be removed."""

    def fail(self, error: StoreError) -> None:
        """End it, because the log is dead."""
        self.failure = error
        self.stop.set()


@dataclass(eq=False, repr=False)
class HistorySize:
    """The size of the history, the room there is for it, and who waits for it to be cut."""

    measure: Measure = field(default_factory=Measure)
    model: Model | None = None
    """The model that the room is of."""
    room: int = 0
    """The largest size of a request, in tokens."""
    asked_again_at: int = 0
    """The size at which a condenser that failed is asked again."""
    is_failing: bool = False
    """True once a notice says that the condenser fails, until it answers."""
    waiting: list[anyio.Event] = field(default_factory=list[anyio.Event])
    """Each is set at the end of a step."""


@dataclass(kw_only=True, eq=False, repr=False)
class Core:
    """One conversation while it is open."""

    store: Store
    state: ConversationState
    agent: Agent
    """The one that acts: while a turn works, changed between two steps only."""
    workspace: Workspace
    journal: Journal
    head_signal: HeadSignal
    deltas: DeltaBroadcast
    secrets: SecretRegistry
    checks: tuple[Check, ...]
    """Those in force: changed when the event that records them is folded."""
    confirm: Confirm | None
    """The program's callback, where that decides in place of a policy."""
    on_question: OnQuestion | None
    """The program's callback that answers questions."""
    attended: bool
    """True if somebody answers the questions of calls that run."""
    deps: Any
    """The value that the program passed for its tools."""
    tool_sessions: ToolSessions
    call_tasks: TaskGroup
    """Where calls run. It outlives the conversation: one that does not stop holds its owner, and not the conversation."""
    jobs: Jobs
    restore_files: Callable[[], Coroutine[Any, Any, None]]
    """Brings back the files that the log says are to be."""
    home: LoopAffinity
    queued_turns: MemoryObjectSendStream[Turn]
    """To the driver."""
    stuck: StuckTracker
    clock: Callable[[], float]
    life: Lifecycle
    prompt: PromptSource
    view: View = field(default_factory=View)
    history: HistorySize = field(default_factory=HistorySize)
    calls: CallTable = field(default_factory=CallTable)
    output: RunOutput = field(default_factory=RunOutput)
    next_agent: Agent | None = None
    """The one that the log says works from the next step on, until it does."""
    live_questions: LiveQuestions = field(default_factory=LiveQuestions)
    turn: Turn | None = None
    """The turn that works or is about to; None as soon as the log says how it settled."""
    last_run: Decision | None = None
    """The latest `Run` that was handed over: an interrupt may come before it is decided on."""
    answered: bool = False
    """True once the model has answered since the conversation was opened."""
    opened_at: int = 0
    """The head when the conversation was opened."""
    repaired: str | None = None
    files: anyio.Lock = field(default_factory=anyio.Lock)
    """Held by whoever may change the files of the workspace, saves them, or brings them back: a turn, most of the time."""
    restoring: StartedJob[None] | None = None
    """The job that brings back the files of the newest rewind."""
    checkpoint_failed: bool = False
    """True once files could not be saved by themselves: that is said once."""
    has_checkpoints: bool = False
    """True if files were saved while it was open."""
    spooled: int = 0
    """Bytes of whole outputs kept in the workspace."""

    @cached_property
    def ran_before(self) -> frozenset[str]:
        """The tools that ran in the conversation before it was opened this time, on whatever branch."""
        names: dict[str, str] = {}
        ran: set[str] = set()
        for event in self.state.events[: self.opened_at]:
            if isinstance(event, ActionEvent):
                names[event.id] = event.tool_name
            elif isinstance(event, ActionStarted) and event.cause in names:
                ran.add(names[event.cause])
        return frozenset(ran)

    @property
    def undecided_run(self) -> Decision | None:
        """The run that was asked for and has not been decided on, where there is one."""
        return None if self.last_run is None or self.last_run.done.is_set() else self.last_run

    def check_loop(self) -> None:
        """Raise where the caller runs in another event loop, and this has not ended."""
        if not self.life.ended.is_set():
            self.home.check_loop()

    async def wait_for_job(self, job: Coroutine[Any, Any, ResultT]) -> ResultT:
        """Wait for a job, and note where its caller learns that the log died: leaving the context does not report it again."""
        try:
            return await job
        except StoreError as error:
            self.journal.failure_reported = self.journal.failure_reported or error is self.life.failure
            raise

    def recorded(self, decisions: Sequence[Decision]) -> None:
        """Act on a group commit (see `RecordListener`)."""
        for decision in decisions:
            self._put_in_force(decision)
        working = self.state.is_working
        if self.turn is not None and not working:
            self.end_turn(self.turn)
        if working and self.turn is None and self.life.serving:
            self._begin_turn(next((each for each in decisions if each.command.kind in _STARTING), None))
        for decision in decisions:
            if isinstance(decision.command, Run):
                self._wait_for_turn(decision)

    def _put_in_force(self, decision: Decision) -> None:
        """Let a command that was recorded, or that the log knew already, take effect on what lives here only."""
        match decision.command:
            case Approve(ids=(action_id,), arguments=edited) if edited is not None:
                action = self.state.open_actions.get(action_id)
                if (
                    action is not None
                    and action.approval is not None
                    and action.approval.command == decision.command.id
                ):
                    self.calls.keep_arguments(action_id, decision.attachment.arguments)
            case Answer(question=question, value=value):
                self.live_questions.end(question, "answered", value)
            case Decline(question=question, reason=reason):
                self.live_questions.end(question, "declined", reason)
            case Reject() | Rewind():
                self.calls.forget_answered(self.state.open_actions)
                if self.state.checkpoints.due is not None:
                    # Not in the task of the caller, who may be cancelled.
                    self.restoring = self.jobs.start(self.restore_files, name="restore", finish=False)
            case SetPolicy(policy=recorded) if self.state.policy == recorded:
                # Checks of the program's own that are not here: until they are given again, ask about everything.
                self.checks = decision.attachment.checks or as_checks(read_checks(recorded) or AlwaysConfirm())
                self.confirm = None
            case SetAgent() as command if decision.attachment.agent is not None and self._configured_by(command):
                self.next_agent = decision.attachment.agent
                if self.turn is None:
                    self.change_agent()
            case SetLimits():
                if self.turn is not None and self.turn.timer is not None:
                    self.turn.timer.set_limits(self.state.limits)
            case Interrupt(run=run) as command if self.turn is not None and (
                self.turn.run == run or self.turn is _turn_of(decision.attachment.run)
            ):
                self.turn.interrupt(command.reason, command=command.id, by=command.by)
                decision.turn = self.turn
            case Leave(waiter=waiter):
                if self.turn is not None:
                    self.turn.leave(waiter)
            case AddSecrets() | _:
                pass

    def _configured_by(self, command: SetAgent) -> bool:
        """Return whether the agent of a command is the one in the log: its record, or the same one."""
        configured = self.state.agent
        return configured is not None and (
            configured.command == command.id
            or (configured.agent, configured.missing) == (command.agent, command.missing)
        )

    def change_agent(self) -> None:
        """Let the agent that was set last act from here on. To be called while no step and no call is under way."""
        agent, self.next_agent = self.next_agent, None
        if agent is None or agent is self.agent:
            return
        # Until a new model has answered, what it refuses is likely to be its settings.
        self.answered = self.answered and agent.llm is self.agent.llm
        self.history.asked_again_at = 0
        self.history.is_failing = False
        self.agent = agent
        self.tool_sessions.replace(agent.own_tools, agent.toolsets, Deferral.of(agent))
        self.prompt.set_agent(agent)
        self.stuck = StuckTracker(agent.stuck)

    def _begin_turn(self, decision: Decision | None) -> None:
        context = None if decision is None else decision.attachment.context
        self.turn = Turn(self.state.run.seq, context or copy_context(), self.calls)
        # A driver that has ended takes no more: the conversation ends, and closes the turn then.
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
            self.queued_turns.send_nowait(self.turn)

    def _wait_for_turn(self, decision: Decision) -> None:
        """Let a `run` wait for its turn."""
        if self.turn is None:
            decision.turn = make_result(self.state, self.output.get(self.agent, self.state))
        else:
            decision.turn = self.turn
            self.turn.waiters.add(decision.command.id)

    def end_turn(self, turn: Turn) -> None:
        """End a turn and wake its waiters: the log says how it ended, or the log is dead, or its task is gone."""
        if self.turn is turn:
            self.turn = None
        if not turn.settled:
            if self.life.failure is not None:
                turn.error, turn.fatal = self.life.failure, True
            turn.end(make_result(self.state, self.output.get(self.agent, self.state)))
        if self.turn is None:
            self.change_agent()

    def close_turn(self) -> None:
        """End the turn that the driver has left."""
        if self.turn is not None:
            self.turn.error = self.turn.error or ConversationClosed(self.state.conversation_id)
            self.turn.fatal = True
            self.end_turn(self.turn)


def _turn_of(run: Decision | None) -> Turn | None:
    return run.turn if run is not None and isinstance(run.turn, Turn) else None
