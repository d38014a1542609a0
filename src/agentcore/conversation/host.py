"""Many conversations in one task group: `async with Host() as host: conversation = await host.open(agent, ...)`."""

from __future__ import annotations

import os
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from os import PathLike
from typing import Any, Final, Self, cast

import anyio
from anyio import AsyncContextManagerMixin
from anyio.abc import TaskGroup, TaskStatus
from anyio.to_thread import run_sync

from agentcore._arguments import SECONDS, check_arguments, checked
from agentcore.agent import Agent
from agentcore.commands import Interrupt, Pause
from agentcore.conversation.close import delete_closed
from agentcore.conversation.core import Core
from agentcore.conversation.exceptions import masked_repr, open_group
from agentcore.conversation.guards import LoopAffinity
from agentcore.conversation.handle import Conversation
from agentcore.conversation.jobs import Jobs
from agentcore.conversation.link import HostsConversations
from agentcore.conversation.local import LocalLink
from agentcore.conversation.questions import OnQuestion
from agentcore.conversation.serve import serve_conversation
from agentcore.conversation.setup import Setup
from agentcore.errors import ConversationClosed, ConversationError, StoreError
from agentcore.events import DRAINED, CheckpointTimes
from agentcore.logs import get_logger
from agentcore.record import Store
from agentcore.secrets import SecretSource
from agentcore.security import Checks, Confirm, as_checks, is_checks
from agentcore.usage import Limits
from agentcore.workspace import Workspace, record_workspace

_log = get_logger(__name__)

_DRAIN: Final = {"seconds": SECONDS}


class Host(AsyncContextManagerMixin):
    """Holds conversations open whose handles may be used and closed from any task: request handlers, fixtures.

    Leaving the context closes all of them. One that fails ends alone.
    """

    def __init__(self) -> None:
        self._tasks: TaskGroup | None = None
        self._jobs: Jobs | None = None
        self._open: list[_Hosted] = []
        self._by_id: dict[str, list[_Hosted]] = {}
        """The same by the conversation's id: a server looks one up for each request."""
        self._opening: dict[str, anyio.Lock] = {}
        """By the conversation's id: two who open one share its handle."""
        self._leaving = False
        self._home: LoopAffinity | None = None

    @asynccontextmanager
    async def __asynccontextmanager__(self) -> AsyncGenerator[Self]:
        if self._tasks is not None:
            raise ConversationError("A Host is entered once. Make another one.")
        self._home = LoopAffinity(None)
        async with open_group() as self._tasks:
            self._jobs = Jobs(self._tasks, "of a host")
            try:
                yield self
            finally:
                self._leaving = True
                for hosted in self._open:
                    hosted.core.life.stop.set()

    @checked()
    async def open(
        self,
        agent: Agent | None,
        workspace: Workspace | str | PathLike[str] | None = None,
        *,
        id: str | None = None,  # noqa: A002 the name users expect
        store: Store | None = None,
        confirm: Checks | Confirm | None = None,
        limits: Limits | None = None,
        secrets: Mapping[str, SecretSource] | None = None,
        deps: Any = None,
        on_question: OnQuestion | None = None,
        attended: bool = False,
        checkpoints: CheckpointTimes | None = None,
    ) -> Conversation:
        """Open a conversation, as `Conversation(...)` does, and return its handle; `close()` ends it.

        An id that is open here already gives the same handle: what is passed beside it has to agree with what it was
        opened with, or be None.

        Raises:
            StoreError: The log can't be opened.
            ConversationError: The host is not open, or not any more, or belongs to another event loop; or the
                conversation is open with something else.
        """
        if self._tasks is None or self._home is None or self._leaving or self._home.loop_closed:
            raise ConversationError("The host is not open: use `async with Host() as host`.")
        self._home.check_loop()
        setup = Setup(
            agent=agent,
            workspace=workspace,
            id=id,
            store=store,
            confirm=confirm,
            limits=limits,
            secrets=secrets,
            deps=deps,
            on_question=on_question,
            attended=attended,
            checkpoints=checkpoints,
        )
        setup.validate()
        if isinstance(workspace, HostsConversations):
            raise ConversationError(
                f"{workspace!r} holds conversations itself: use `async with Conversation(agent, workspace=...)`. Its handle, too, "
                "may be used from any task of this event loop."
            )
        assert self._jobs is not None
        # In a task of the host's: a caller that is cancelled twice, as asyncio cancels, leaves nothing half open.
        hosted = await self._jobs.do(
            lambda: self._find_or_start(setup), name=f"open {id}", finish=False, discard=_close_unless_taken
        )
        hosted.taken = True
        return hosted.handle

    async def _find_or_start(self, setup: Setup) -> _Hosted:
        if setup.id is None:
            return await self._start(setup)
        one_at_a_time = self._opening.setdefault(setup.id, anyio.Lock())
        try:
            async with one_at_a_time:
                hosted = self._find(setup.id, setup.store)
                if hosted is not None and not hosted.core.life.stop.is_set():
                    await _refuse_other(hosted.core, setup)
                    return hosted
                if hosted is not None:
                    await hosted.core.life.ended.wait()
                return await self._start(setup)
        finally:
            # It belongs to the next caller already where one waits.
            if not one_at_a_time.locked() and self._opening.get(setup.id) is one_at_a_time:
                del self._opening[setup.id]

    def _find(self, conversation_id: str, store: Store | None) -> _Hosted | None:
        for hosted in self._by_id.get(conversation_id, ()):
            if store is None or store == hosted.core.store:
                return hosted
        return None

    def get(self, id: str, store: Store | None = None) -> Conversation | None:  # noqa: A002
        """Return the handle of a conversation that is open here, or None.

        Args:
            id: The conversation's id.
            store: Where its log is, where several stores have one of that id.
        """
        hosted = self._find(id, store)
        return None if hosted is None or hosted.core.life.stop.is_set() else hosted.handle

    async def delete(self, id: str, store: Store | None = None) -> None:  # noqa: A002
        """Delete a conversation, as `Conversation.delete` does: its log, and the outputs it kept in its workspace.

        Args:
            id: The conversation's id.
            store: Where its log is. One that is not open here is only found with it.

        Raises:
            ConversationError: It is not open here, and no store was passed.
            StoreError: There is none of that id (`ConversationNotFound`), it is open elsewhere (`ConversationLocked`),
                or its log could not be removed.
        """
        hosted = self._find(id, store)
        if hosted is not None:
            await hosted.handle.delete()
        elif store is not None:
            await delete_closed(store, id)
        else:
            raise ConversationError(f"Conversation {id!r} is not open here. Pass its store to delete it: store=...")

    @property
    def conversations(self) -> tuple[Conversation, ...]:
        """The handles of the conversations that are open here, the oldest first."""
        return tuple(hosted.handle for hosted in self._open if not hosted.core.life.stop.is_set())

    async def drain(self, seconds: float) -> None:
        """Bring all conversations to rest: pause those that work, and interrupt what still runs after `seconds`.

        Returns when the log of each says that it rests: paused, with the code "drained" where nobody else asked for that. They stay open, and nothing keeps a later `run` from working on.

        Raises:
            ConversationError: The host belongs to another event loop.
        """
        check_arguments(_DRAIN, seconds=seconds)
        if self._home is not None:
            self._home.check_loop()
        hosted = tuple(self._open)
        with anyio.move_on_after(seconds):
            async with open_group() as tasks:
                for each in hosted:
                    tasks.start_soon(_pause, each.core)
        async with open_group() as tasks:
            for each in hosted:
                if each.core.turn is not None:
                    tasks.start_soon(_interrupt, each.handle)

    def holds_sessions(self, id: str, store: Store | None = None) -> bool:  # noqa: A002
        """Return whether a conversation that is open here holds a tool or toolset open: a shell, a connection."""
        hosted = self._find(id, store)
        return hosted is not None and hosted.core.tool_sessions.holds_any

    async def _start(self, setup: Setup) -> _Hosted:
        assert self._tasks is not None
        core: Core = await self._tasks.start(self._serve, setup, name="conversation")
        found = self._by_id.get(core.state.conversation_id, ())
        hosted = next((each for each in found if each.core is core), None)
        if hosted is None:
            raise ConversationClosed(core.state.conversation_id)  # it ended as soon as it was open
        return hosted

    async def _serve(self, setup: Setup, *, task_status: TaskStatus[Core]) -> None:
        assert self._tasks is not None
        status = _Remember(task_status, lambda core: self._remember(setup, core))
        try:
            await serve_conversation(setup, self._tasks, task_status=status)
        except Exception as error:
            if status.core is None:
                raise  # not open yet: it reaches the one who opens it
            shown = masked_repr(status.core.secrets, error)
            _log.error("conversation ended", conversation=status.core.state.conversation_id, error=shown)
        finally:
            if status.core is not None:
                self._forget(status.core)

    def _remember(self, setup: Setup, core: Core) -> None:
        handle = Conversation._hosted(setup, LocalLink(core))  # pyright: ignore[reportPrivateUsage]
        hosted = _Hosted(core, handle)
        self._open.append(hosted)
        self._by_id.setdefault(core.state.conversation_id, []).append(hosted)
        if self._leaving:
            core.life.stop.set()

    def _forget(self, core: Core) -> None:
        self._open = [hosted for hosted in self._open if hosted.core is not core]
        rest = [hosted for hosted in self._by_id.pop(core.state.conversation_id, ()) if hosted.core is not core]
        if rest:
            self._by_id[core.state.conversation_id] = rest


@dataclass(eq=False)
class _Hosted:
    core: Core
    handle: Conversation
    taken: bool = False
    """True once a caller has the handle."""


async def _pause(core: Core) -> None:
    """Pause a conversation, and wait until it rests."""
    with suppress(ConversationClosed, StoreError):  # it ended meanwhile: there is nothing left to wait for
        while (turn := core.turn) is not None:
            await core.journal.receipt_of(core.journal.hand_over(Pause(by=DRAINED)))
            await turn.done.wait()


async def _interrupt(conversation: Conversation) -> None:
    with suppress(ConversationClosed, StoreError):
        link = conversation.link
        await link.interrupt(Interrupt(run=link.state.run.seq, reason="The program is ending.", by=DRAINED))


def _close_unless_taken(hosted: _Hosted) -> None:
    """Close what was opened for a caller who has left meanwhile."""
    if not hosted.taken:
        hosted.core.life.stop.set()


def _is_in_force(core: Core, confirm: Checks | Confirm) -> bool:
    if core.confirm is not None:
        return confirm == core.confirm
    return is_checks(confirm) and as_checks(cast("Checks", confirm)) == core.checks


async def _is_same_place(open_one: Workspace, given: Workspace | str | PathLike[str]) -> bool:
    if not isinstance(given, str | PathLike):
        return given is open_one or record_workspace(given) == record_workspace(open_one)
    here, there = os.fspath(given), open_one.root
    return await run_sync(lambda: os.path.realpath(os.path.expanduser(here)) == os.path.realpath(there))


async def _refuse_other(core: Core, setup: Setup) -> None:
    """Refuse to open a conversation once more with something else than what it is open with.

    Raises:
        ConversationError: It names what differs.
    """
    other: list[str] = []
    if setup.agent is not None and setup.agent != (core.next_agent or core.agent):
        other.append("agent")
    if setup.workspace is not None and not await _is_same_place(core.workspace, setup.workspace):
        other.append("workspace")
    if setup.limits is not None and setup.limits != core.state.limits:
        other.append("limits")
    if setup.confirm is not None and not _is_in_force(core, setup.confirm):
        other.append("confirm")
    if setup.on_question is not None and setup.on_question is not core.on_question:
        other.append("on_question")
    if setup.deps is not None and setup.deps is not core.deps:
        other.append("deps")
    other.extend(f"the secret {name!r}" for name in setup.secrets or () if name not in core.secrets.names)
    if other:
        raise ConversationError(
            f"Conversation {core.state.conversation_id!r} is open here with another {' and another '.join(other)}. "
            "Leave that out, or close the conversation first."
        )


class _Remember(TaskStatus[Core]):
    """Notes the core on its way to the one who opens the conversation."""

    def __init__(self, status: TaskStatus[Core], remember: Callable[[Core], None]) -> None:
        self._status = status
        self._remember = remember
        self.core: Core | None = None

    def started(self, value: Core | None = None) -> None:
        assert value is not None
        self.core = value
        self._remember(value)
        self._status.started(value)
