"""The handle of a conversation: what a program holds. It owns no task and no scope, so any task may use it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from contextvars import copy_context
from os import PathLike
from typing import Concatenate, ParamSpec, Self, TypeVar

from anyio import AsyncContextManagerMixin, get_cancelled_exc_class
from anyio.lowlevel import checkpoint, checkpoint_if_cancelled
from pydantic import JsonValue

from agentcore.agent import Agent
from agentcore.conversation import control
from agentcore.conversation.ask import ask_aside
from agentcore.conversation.core import Core
from agentcore.conversation.deltas import DeltaCursor
from agentcore.conversation.fork import fork_log
from agentcore.conversation.given import check_given
from agentcore.conversation.groups import open_group
from agentcore.conversation.inside import refuse_inside
from agentcore.conversation.result import RunResult
from agentcore.conversation.run import RunStream, begin_run, join_run
from agentcore.conversation.serve import Setup, serve_conversation
from agentcore.conversation.watch import EventCursor
from agentcore.errors import ConversationClosed, ConversationError, StoreError
from agentcore.messages import Message
from agentcore.record import ConversationState, Store
from agentcore.secrets import SecretSource
from agentcore.security import Checks, Confirm
from agentcore.usage import Limits
from agentcore.workspace import Workspace

__all__ = ["Conversation"]

P = ParamSpec("P")
ResultT = TypeVar("ResultT")


class Conversation(AsyncContextManagerMixin):
    """A conversation with an agent: `async with Conversation(agent, workspace=...) as conversation`.

    What happens in it is an append-only log, kept in the store before anybody is told of it; `state` is what the log
    says. Leaving the context interrupts what runs, answers what is open, and closes everything. It belongs to the event
    loop that it was entered in: in another one, or in another thread, all that waits or changes anything is refused.

    Args:
        agent: Who works. None goes on with the recorded agent of a conversation that the store knows.
        workspace: Where it works: a folder, or a workspace. One that is not entered yet is entered and left here. None
            is where a conversation that the store knows worked last; for a new one, the current folder.
        id: A conversation's id. One that the store knows is gone on with; another one begins with this id.
        store: Where the log is kept; by default in memory, for as long as the process lives.
        confirm: Which actions wait for a person: a policy, a check or a list of those, or an async callback that is
            asked about each action (except `finish` and `think`). By default the recorded policy, or `NeverConfirm()`.
        limits: Budgets and deadlines; by default the recorded ones, or `Limits()`.
        secrets: Values by name that tools may use and that nobody sees: text, or functions that give it.

    Raises:
        StoreError: on entering: the log can't be opened (`ConversationLocked`, `LogDamaged`, ...).
        NotRecorded: on entering: `agent` is None, and a part of the recorded one has to be passed again.
        WorkspaceNotRestored: on entering: `workspace` is None, and the recorded one is gone or can't be made again.
    """

    def __init__(
        self,
        agent: Agent | None,
        workspace: Workspace | str | PathLike[str] | None = None,
        *,
        id: str | None = None,  # noqa: A002 the name users expect
        store: Store | None = None,
        confirm: Checks | Confirm | None = None,
        limits: Limits | None = None,
        secrets: Mapping[str, SecretSource] | None = None,
    ) -> None:
        self._setup = Setup(
            agent=agent, workspace=workspace, id=id, store=store, confirm=confirm, limits=limits, secrets=secrets
        )
        check_given(store, confirm)
        self._opened: Core | None = None

    def __repr__(self) -> str:
        if self._opened is None:
            return f"<Conversation {self._setup.id or 'not open'}>"
        return f"<Conversation {self.id} {self.state.status}, {self.state.head} event{'' if self.state.head == 1 else 's'}>"

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self]:
        if self._opened is not None:
            raise ConversationError("A Conversation is entered once. Make another one with the same store and id.")
        async with open_group() as tasks:
            self._opened = await tasks.start(serve_conversation, self._setup, tasks, name="conversation")
            try:
                yield self
            except Exception as error:
                # Closed as it is when all went well: what is open is not to be cancelled over an error of the body.
                self._core.stop.set()
                try:
                    await self._core.ended.wait()
                except get_cancelled_exc_class():
                    raise error from error.__cause__  # noqa: ASYNC104 the body's error goes before a cancellation that came meanwhile
                raise
            finally:
                self._core.stop.set()
        if self._core.failure is not None and not self._core.told:
            raise self._core.failure

    @classmethod
    def _hosted(cls, setup: Setup, core: Core) -> Self:
        conversation = cls.__new__(cls)
        conversation._setup = setup
        conversation._opened = core
        return conversation

    @property
    def id(self) -> str:
        """The conversation's id: with the store, what it takes to go on with it."""
        return self.state.conversation_id

    @property
    def state(self) -> ConversationState:
        """What is true now: status, usage, open actions, title ... Stays readable after closing."""
        return self._core.state

    @property
    def store(self) -> Store:
        """Where the log is kept."""
        return self._core.store

    @property
    def workspace(self) -> Workspace:
        """Where the agent works."""
        return self._core.workspace

    @property
    def repaired(self) -> str | None:
        """What an unclean end had left unfinished in the log, and was cut off on opening; None where nothing was."""
        return self._core.repaired

    async def send(self, message: str | Message) -> int:
        """Record a user's message and give its seq. While the agent works it is read at the next step.

        A message never approves anything and starts nothing; `run` does.
        """
        return await self._command(control.send, message)

    async def run(self, text: str | Message | None = None) -> RunResult:
        """Work until the conversation settles: it finished, waits, was paused, is stuck, or reached a limit.

        A second `run` joins the first, and its text is sent before. Where an action waits for approval nothing is run:
        the result lists what is pending. Cancelling the last caller that waits interrupts the work.

        Raises:
            RunError: a step raised (`__cause__`); the log has it, and `run` may be called again.
            StoreError: the log died; the conversation is over.
            InsideConversation: called from a tool, hook or callback of this conversation.
        """
        core = await self._live()
        refuse_inside(core.state.conversation_id, "run")
        if text is not None:
            await self.send(text)
            await checkpoint_if_cancelled()
        return await join_run(core, await begin_run(core, copy_context()))

    def run_stream(self, text: str | Message | None = None) -> RunStream:
        """Run, and give the events as they come: `async for event in conversation.run_stream(...)`.

        The run begins with the first event that is asked for. Breaking off leaves it running. It ends, or raises, as
        `run` does; then `.result` is there.
        """
        core = self._checked()
        refuse_inside(core.state.conversation_id, "run_stream")
        return RunStream(core, text)

    def events(self, after: int | None = None) -> EventCursor:
        """Follow the log from behind `after` (None is the start, `state.head` is live only): no gap, none twice."""
        return EventCursor(self._core.state, self._core.bell, after)

    def deltas(self) -> DeltaCursor:
        """Follow what is being said, piece by piece, from now on. Lossy; what counts is in the log."""
        core = self._core
        core.refuse_elsewhere()
        return core.deltas.subscribe()

    async def pause(self) -> None:
        """Stop at the end of the step under way; nothing is cut off."""
        await self._command(control.pause)

    async def interrupt(self, reason: str | None = None) -> None:
        """Stop at once. Calls that run are stopped and answered; returns when that is done and recorded."""
        await self._command(control.interrupt, reason)

    async def interrupt_call(self, action_id: str) -> bool:
        """Stop one call that runs and leave the others alone; say whether it ran."""
        return await self._command(control.interrupt_call, action_id)

    async def approve(
        self,
        ids: Sequence[str] | str | None = None,
        arguments: Mapping[str, JsonValue] | None = None,
        *,
        by: str | None = None,
    ) -> None:
        """Say yes to actions that wait (all of them by default) and let the work go on; `run` then joins it.

        Args:
            ids: Ids of the action events.
            arguments: The arguments to run it with instead, where exactly one action is approved; recorded as an edit.
            by: Who says so.

        Raises:
            NothingPending: No such action waits.
            ToolArgumentsError: The changed arguments do not fit the tool.
        """
        await self._command(control.approve, ids, arguments, by, copy_context())

    async def reject(self, reason: str, ids: Sequence[str] | str | None = None, *, by: str | None = None) -> None:
        """Say no to actions that wait (all of them by default). The model reads the reason with the next `run`.

        Raises:
            NothingPending: No such action waits.
        """
        await self._command(control.reject, reason, ids, by)

    async def ask(self, question: str) -> str:
        """Ask the model a side question about the conversation: the history keeps no trace, the usage counts.

        Raises:
            ModelError: There is no answer.
        """
        return await self._command(ask_aside, question)

    async def rewind(self, to: int) -> None:
        """Go on from an earlier point, or from one on a branch that was left. The log keeps everything.

        Files are not rewound, and the model is told so. Usage, limits and policy stay as they are.

        Raises:
            RewindRefused: `to` is not a settled point (`.nearest` is one), or the agent works.
            TypeError: `to` is no int.
        """
        await self._command(control.rewind, to)

    async def fork(self, at: int | None = None, *, id: str | None = None) -> str:  # noqa: A002
        """Copy the branch up to `at` (by default all of it) into a new log of the same store, and give its id.

        Raises:
            RewindRefused: `at` is not a settled point.
            TypeError: `at` is neither None nor an int.
        """
        core = await self._live()
        return await fork_log(core.store, core.state, at, id)

    async def set_limits(self, limits: Limits) -> None:
        """Hold the conversation to these limits from now on, the run under way included."""
        await self._command(control.set_limits, limits)

    async def set_policy(self, policy: Checks) -> None:
        """Let this policy, or these checks, decide which actions wait, from the next reply on."""
        await self._command(control.set_policy, policy)

    async def set_title(self, title: str) -> None:
        """Give the conversation a title."""
        await self._command(control.set_title, title)

    async def set_tags(self, tags: Mapping[str, str]) -> None:
        """Give the conversation these tags, and no others."""
        await self._command(control.set_tags, tags)

    async def add_secrets(self, secrets: Mapping[str, SecretSource]) -> None:
        """Register more secrets. History that was written before stays as it is."""
        await self._command(control.add_secrets, secrets)

    async def close(self) -> None:
        """End the conversation: interrupt what runs, answer what is open, let go of everything. May be called twice.

        Raises:
            InsideConversation: Called from a tool, hook or callback of this conversation.
        """
        core = self._core
        refuse_inside(core.state.conversation_id, "close")
        if core.ended.is_set() or core.home.is_gone:
            await checkpoint()
            return
        core.refuse_elsewhere()
        core.stop.set()
        await core.ended.wait()

    async def delete(self) -> None:
        """Close the conversation and remove its log and the outputs it kept in the workspace.

        Raises:
            StoreError: It is closed, and the log could not be removed.
            ConversationClosed: It was closed already; the store can still delete its log.
            InsideConversation: Called from a tool, hook or callback of this conversation.
        """
        core = self._core
        refuse_inside(core.state.conversation_id, "delete")
        if core.ended.is_set() and not core.delete:
            raise ConversationClosed(core.state.conversation_id)
        core.refuse_elsewhere()
        core.delete = True
        await self.close()
        if core.undeleted is not None:
            raise core.undeleted

    @property
    def _core(self) -> Core:
        if self._opened is None:
            raise ConversationError("The conversation is not open: use `async with Conversation(...) as conversation`.")
        return self._opened

    async def _command(
        self, command: Callable[Concatenate[Core, P], Awaitable[ResultT]], *args: P.args, **kwargs: P.kwargs
    ) -> ResultT:
        """Do it, and note where its caller is told that the log died: leaving the context does not say so once more."""
        core = await self._live()
        try:
            return await command(core, *args, **kwargs)
        except StoreError as error:
            core.told = core.told or error is core.failure
            raise

    async def _live(self) -> Core:
        # A caller that is cancelled leaves with that, not with an error that it can do nothing about.
        await checkpoint_if_cancelled()
        core = self._checked()
        core.refuse_elsewhere()
        return core

    def _checked(self) -> Core:
        core = self._core
        if core.failure is not None:
            core.told = True
            raise core.failure
        if core.closing or core.stop.is_set():
            raise ConversationClosed(core.state.conversation_id)
        return core
