"""Links: what a `Conversation` talks to. One is the conversation in this process, another one follows it on a server.

The handle checks arguments, makes commands and waits on the state; a link carries them. So a program is the same
wherever its conversation is held.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from contextvars import Context
from typing import Any, Protocol, runtime_checkable

from pydantic import JsonValue

from agentcore.commands import Command, Interrupt, Job, Receipt, Run
from agentcore.conversation.deltas import DeltaCursor
from agentcore.conversation.journal import Attachment
from agentcore.conversation.result import RunResult
from agentcore.conversation.watch import HeadSignal
from agentcore.record import ConversationState, Store
from agentcore.workspace import Workspace


class PendingRun(Protocol):
    """A run that was handed over. Who waits for it no longer has to leave it."""

    async def recorded(self) -> Receipt:
        """Wait until the run is in the log, and return its receipt.

        Raises:
            AgentcoreError: It was refused, with the error of its kind.
            StoreError: The log died.
        """
        ...

    @property
    def result(self) -> RunResult | None:
        """The result, once it has settled."""
        ...

    async def wait(self) -> None:
        """Wait until it has settled. It has to be recorded."""
        ...

    def outcome(self) -> RunResult:
        """Return the result of the run that has settled, or raise what it ended in.

        Raises:
            RunError: A step raised.
            StoreError: The log died.
        """
        ...

    async def leave(self) -> None:
        """Wait for it no longer; shielded and bounded. The last one that leaves interrupts it, and returns when that is recorded."""
        ...


class Link(Protocol):
    """One open conversation, as its handle sees it."""

    @property
    def state(self) -> ConversationState:
        """The state that the log folds to. It stays readable after the end."""
        ...

    @property
    def head_signal(self) -> HeadSignal:
        """Rung after each group of events."""
        ...

    @property
    def workspace(self) -> Workspace:
        """Where the agent works."""
        ...

    @property
    def store(self) -> Store:
        """Where the log is kept.

        Raises:
            ConversationError: A server keeps it.
        """
        ...

    @property
    def repaired(self) -> str | None:
        """The unfinished end that was cut off the log on opening."""
        ...

    def check(self) -> None:
        """Raise where commands cannot be carried any more.

        Raises:
            StoreError: The log died.
            ConversationClosed: It has ended.
        """
        ...

    def check_loop(self) -> None:
        """Raise where the caller is in another event loop.

        Raises:
            ConversationError: It is.
        """
        ...

    async def execute(self, command: Command, attachment: Attachment | None = None) -> Receipt:
        """Carry a command, and wait until what it came to is durable and in `state`.

        Edited arguments and answers are checked before. A known id gets its recorded receipt.

        Raises:
            AgentcoreError: It was refused, with the error of its kind.
            StoreError: The log died.
        """
        ...

    def begin_run(self, command: Run, context: Context) -> PendingRun:
        """Hand over the command that begins a run or joins it; never waits."""
        ...

    async def interrupt(self, command: Interrupt) -> None:
        """Stop the run that is meant at once, and return when that is recorded."""
        ...

    async def interrupt_call(self, action_id: str) -> bool:
        """Stop one call that runs; return whether it ran."""
        ...

    async def leave(self, waiter: str) -> None:
        """Leave the run that a `Run` of this id waits for, as `PendingRun.leave` does."""
        ...

    async def job(self, job: Job) -> JsonValue:
        """Do a job and return what it came to: text of `Ask`, the new id of `Fork`, the seq of the cut or None of `Condense`, the seq of `Checkpoint`.

        Raises:
            AgentcoreError: What the job raised.
        """
        ...

    def deltas(self) -> DeltaCursor:
        """Follow what is being said, from now on."""
        ...

    async def close(self) -> None:
        """End it, and wait for that; nothing where it has ended."""
        ...


@runtime_checkable
class HostsConversations(Protocol):
    """A workspace that holds conversations where it is: a server."""

    def open_link(self, setup: Any) -> AbstractAsyncContextManager[Link]:
        """Open a conversation there, with what `Conversation` was made with (a `Setup`)."""
        ...
