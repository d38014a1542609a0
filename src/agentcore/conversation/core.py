"""What the tasks and the handle of one conversation share: ends of streams, and one owner for each thing."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from contextvars import Context
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, NamedTuple

import anyio
from anyio.abc import TaskGroup
from anyio.streams.memory import MemoryObjectSendStream
from pydantic import JsonValue

from agentcore.agent import Agent
from agentcore.context import View
from agentcore.conversation.deltas import DeltaHub
from agentcore.conversation.home import Home
from agentcore.conversation.journal import Journal
from agentcore.conversation.limits import WorkClock
from agentcore.conversation.result import RunResult
from agentcore.conversation.tools import ToolSessions
from agentcore.conversation.watch import Bell
from agentcore.errors import StoreError
from agentcore.events import ActionEvent, ActionStarted
from agentcore.record import ConversationState, Store
from agentcore.secrets import Masker, SecretRegistry
from agentcore.security import Confirm, ConfirmationPolicy
from agentcore.stuck import StuckDetector
from agentcore.tools import ToolSnapshot
from agentcore.workspace import Workspace

__all__ = ["Core", "PromptBasis", "Turn"]


class Turn:
    """One stretch of work, from a `run` (or an approval) until it settles."""

    def __init__(self, context: Context, *, code: str) -> None:
        self.context = context
        self.code = code
        """What began it: "run", or "approved"."""
        self.done = anyio.Event()
        self.ready = True
        """Whether what it begins with is in the log."""
        self.begun = False
        self.waiters = 0
        self.scope = anyio.CancelScope()
        """Cancelled by an interrupt."""
        self.calls: set[anyio.CancelScope] = set()
        """Of the calls that run, whose tasks are not inside of `scope`: cancelled with it."""
        self.reason: str | None = None
        """Of an interrupt."""
        self.closing = False
        self.settling = False
        """Whether the event that ends it is on its way, or in the log."""
        self.clock: WorkClock | None = None
        self.first_seq = 0
        self.result: RunResult | None = None
        self.error: BaseException | None = None
        self.fatal = False
        """Whether the conversation ended with `error`, not the turn alone."""

    def end(self, result: RunResult, error: BaseException | None, *, fatal: bool) -> None:
        """Let those who wait for it have what it came to."""
        self.result = result
        self.error = error
        self.fatal = fatal
        self.done.set()

    def interrupt(self, reason: str | None) -> None:
        """Stop it where it is, begun or not."""
        self.reason = self.reason or reason
        self.scope.cancel()
        for call in tuple(self.calls):
            call.cancel()


class PromptBasis(NamedTuple):
    """The facts that the tools of a request depend on: where it is the same, they are not read again."""

    last_user_seq: int
    view_epoch: int
    cuts: int


@dataclass(kw_only=True, eq=False, repr=False)
class Core:
    """One conversation while it is open."""

    store: Store
    state: ConversationState
    agent: Agent
    workspace: Workspace
    journal: Journal
    bell: Bell
    deltas: DeltaHub
    secrets: SecretRegistry
    policy: ConfirmationPolicy
    confirm: Confirm | None
    tool_sessions: ToolSessions
    hands: TaskGroup
    """Where calls run. It outlives the conversation: one that does not stop holds its owner, and not the conversation."""
    home: Home
    inbox: MemoryObjectSendStream[None]
    stuck: StuckDetector | None
    clock: Callable[[], float]
    view: View = field(default_factory=View)
    snapshot: ToolSnapshot | None = None
    """The tools of the newest request."""
    composed: PromptBasis | None = None
    """The facts they were read at."""
    masked_by: Masker | None = None
    """The masker of the prompt in force: a secret may become known while the agent works."""
    cuts: int = 0
    """How often the history was made shorter since the conversation was opened."""
    turn: Turn | None = None
    """The turn under way, or about to begin."""
    calls: dict[str, anyio.CancelScope] = field(default_factory=dict[str, anyio.CancelScope])
    """The calls that run or are about to, by action id: each can be cancelled by itself."""
    arguments: dict[str, dict[str, JsonValue]] = field(default_factory=dict[str, dict[str, JsonValue]])
    """The arguments of open actions as they were given, where the log has them masked."""
    rerun: set[str] = field(default_factory=set[str])
    """Read-only actions that a crash cut off: to be run again with the next turn."""
    stuck_seen: int = 0
    """The head up to which the stuck detector has seen the log."""
    stuck_epoch: int = -1
    """The view's epoch then: after a rewind it has to see the other branch."""
    output: Any = None
    """The value that the agent finished with, where it has an output type."""
    answered: bool = False
    """Whether the model has answered since the conversation was opened."""
    opened_at: int = 0
    """The head when the conversation was opened."""
    repaired: str | None = None
    spooled: int = 0
    """Bytes of whole outputs kept in the workspace."""
    delete: bool = False
    """Whether the log and what is kept in the workspace go with the conversation."""
    undeleted: StoreError | None = None
    """Why the log could not be removed."""
    stop: anyio.Event = field(default_factory=anyio.Event)
    """Set to end the conversation."""
    ended: anyio.Event = field(default_factory=anyio.Event)
    """Set when nothing is left of it."""
    closing: bool = False
    failure: StoreError | None = None
    told: bool = False
    """Whether a caller was given the failure."""

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

    def refuse_elsewhere(self) -> None:
        """Raise where the caller runs in another event loop, and this has not ended."""
        if not self.ended.is_set():
            self.home.refuse_elsewhere()

    def scope_of(self, action_id: str) -> anyio.CancelScope:
        """Give the scope of a call, made when first asked for: whoever sees the action can stop it."""
        if (scope := self.calls.get(action_id)) is None:
            scope = self.calls[action_id] = anyio.CancelScope()
        return scope

    def forget_call(self, action_id: str) -> None:
        """Let go of what is kept for a call until it is answered."""
        self.calls.pop(action_id, None)
        self.arguments.pop(action_id, None)

    def wake(self) -> None:
        """Tell the driver that there may be something to do."""
        # Full means that it is awake already; closed, that it never will be again.
        with suppress(anyio.WouldBlock, anyio.BrokenResourceError, anyio.ClosedResourceError):
            self.inbox.send_nowait(None)
