"""The task that a conversation is: it opens everything, hosts the driver, and leaves nothing behind.

Above: a handle or a host, which start it. It enters and leaves every context itself, in one task.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from os import PathLike
from typing import NamedTuple

import anyio
from anyio.abc import TaskGroup, TaskStatus
from anyio.streams.memory import MemoryObjectReceiveStream
from anyio.to_thread import run_sync
from pydantic import JsonValue
from typing_extensions import TypeIs

from agentcore.agent import Agent, record_agent, restore_agent
from agentcore.conversation.core import Core
from agentcore.conversation.deltas import DeltaHub
from agentcore.conversation.groups import open_group
from agentcore.conversation.home import Home
from agentcore.conversation.journal import Drafts, Journal
from agentcore.conversation.recorder import keep_record
from agentcore.conversation.recover import recover
from agentcore.conversation.result import make_result
from agentcore.conversation.spool import remove_spool
from agentcore.conversation.tools import ToolSessions
from agentcore.conversation.turn import run_turn
from agentcore.conversation.watch import Bell
from agentcore.errors import ConversationClosed, ConversationError, ConversationNotFound, NotRecorded, StoreError
from agentcore.events import (
    AgentConfigured,
    ConversationStateUpdateEvent,
    Event,
    LimitsSet,
    PolicySet,
    SecretsRegistered,
)
from agentcore.ids import new_conversation_id
from agentcore.logs import bind_conversation, get_logger
from agentcore.record import ConversationState, EventLog, MemoryStore, Store
from agentcore.secrets import SecretRegistry, SecretSource
from agentcore.security import AlwaysConfirm, Confirm, ConfirmationPolicy, NeverConfirm, read_policy, record_policy
from agentcore.stuck import StuckDetector
from agentcore.usage import Limits
from agentcore.workspace import LocalWorkspace, Workspace

__all__ = ["Setup", "serve_conversation"]

_log = get_logger(__name__)

_REMOVE_SECONDS = 10.0


class Setup(NamedTuple):
    """What a conversation is opened with."""

    agent: Agent | None
    workspace: Workspace | str | PathLike[str]
    id: str | None
    store: Store | None
    confirm: ConfirmationPolicy | Confirm | None
    limits: Limits | None
    secrets: Mapping[str, SecretSource] | None


async def serve_conversation(setup: Setup, hands: TaskGroup, *, task_status: TaskStatus[Core]) -> None:
    """Open a conversation, report its `Core` as started, and serve it until its `stop` is set.

    Args:
        setup: What it is opened with.
        hands: Where its calls run. It has to outlive this: a call that does not stop is left behind there.
        task_status: Told of the core.

    Raises:
        StoreError: The log could not be opened.
    """
    store = setup.store if setup.store is not None else MemoryStore()
    secrets = SecretRegistry(setup.secrets)
    log, agent = await _open_log(setup, store)
    recording = _Recording(log, secrets)
    try:
        try:
            with bind_conversation(log.state.conversation_id):
                async with recording.under_way():
                    await _serve(setup, store, agent, recording, hands, task_status=task_status)
        finally:
            with anyio.CancelScope(shield=True):
                await log.close()
        if recording.core is not None and recording.core.delete:
            try:
                await store.delete(log.state.conversation_id)
            except StoreError as error:
                recording.core.undeleted = error  # for whoever asked for it
    finally:
        if recording.core is not None:
            recording.core.ended.set()


class _Recording:
    """The recorder's surroundings, and who is to be told when the store dies."""

    def __init__(self, log: EventLog, secrets: SecretRegistry) -> None:
        self.log = log
        self.secrets = secrets
        self.home = Home(log.state.conversation_id)
        self.bell = Bell(self.home)
        self.core: Core | None = None
        self._drafts = Drafts()
        self.journal = Journal(log.state.conversation_id, self._drafts, secrets, self.home)

    @asynccontextmanager
    async def under_way(self) -> AsyncGenerator[None]:
        """Run the recorder; it outlives everybody who writes, and ends when the journal has closed and is drained."""
        try:
            async with open_group() as keepers:
                keepers.start_soon(keep_record, self._drafts, self.log, self.bell, self._fail, name="recorder")
                try:
                    yield
                finally:
                    self._drafts.close()
        finally:
            self.bell.close()

    def _fail(self, error: StoreError) -> None:
        if self.core is not None:
            self.core.failure = error
            self.core.stop.set()


async def _serve(
    setup: Setup,
    store: Store,
    agent: Agent,
    recording: _Recording,
    hands: TaskGroup,
    *,
    task_status: TaskStatus[Core],
) -> None:
    state = recording.log.state
    inbox_in, inbox_out = anyio.create_memory_object_stream[None](1)
    policy, confirm = _choose_policy(setup.confirm, state)
    async with inbox_in, inbox_out, _enter(setup.workspace) as workspace, open_group() as tasks:
        core = recording.core = Core(
            store=store,
            state=state,
            agent=agent,
            workspace=workspace,
            journal=recording.journal,
            bell=recording.bell,
            deltas=DeltaHub(recording.home),
            secrets=recording.secrets,
            policy=policy,
            confirm=confirm,
            tool_sessions=ToolSessions(
                tasks,
                agent.own_tools,
                agent.toolsets,
                workspace=workspace,
                conversation_id=state.conversation_id,
                secrets=recording.secrets,
            ),
            hands=hands,
            home=recording.home,
            inbox=inbox_in,
            stuck=None if agent.stuck is None else StuckDetector(agent.stuck),
            clock=anyio.current_time,
            opened_at=state.head,
            repaired=recording.log.repaired,
            # A log in memory that nobody else can reach is gone with the conversation.
            delete=setup.store is None,
        )
        try:
            await _configure(core, setup)
            await recover(core)
            tasks.start_soon(_drive, core, inbox_out, name="driver")
            task_status.started(core)
            await core.stop.wait()
            await _wind_down(core)
        except BaseException:
            # Cancelled from outside, most likely: the driver stops its turn by itself, and the tools' owners theirs.
            tasks.cancel_scope.cancel()
            raise
        finally:
            core.closing = True
            core.deltas.close()
            if core.turn is not None and not core.turn.begun:
                # Asked for when the driver had ended already: whoever waits for it must not wait for ever.
                closed = ConversationClosed(state.conversation_id)
                core.turn.end(make_result(state, state.run_seq), closed, fatal=True)
                core.turn = None
            if core.delete and (core.spooled or core.opened_at):  # it may have kept something when it was open before
                with anyio.move_on_after(_REMOVE_SECONDS, shield=True):
                    await remove_spool(core)


async def _drive(core: Core, inbox: MemoryObjectReceiveStream[None]) -> None:
    """Run one turn after another, each in the context of whoever asked for it."""
    async with open_group() as turns:
        async for _ in inbox:
            while (turn := core.turn) is not None and turn.ready and not turn.begun:
                turn.begun = True
                turns.create_task(run_turn(core, turn), context=turn.context, name="turn")
                await turn.done.wait()


async def _wind_down(core: Core) -> None:
    """End by closing: stop the turn, then the tools, then the driver; what was handed over is kept."""
    core.closing = True
    if core.turn is not None:
        core.turn.closing = True
        core.turn.interrupt("the conversation was closed")
        core.wake()
        await core.turn.done.wait()
    try:
        await core.tool_sessions.aclose()
    finally:
        await core.inbox.aclose()


@asynccontextmanager
async def _enter(workspace: Workspace | str | PathLike[str]) -> AsyncGenerator[Workspace]:
    """Enter a workspace unless somebody else has."""
    if isinstance(workspace, str | PathLike):
        workspace = LocalWorkspace(workspace)
    if workspace.is_open:
        yield workspace
        return
    async with workspace:
        yield workspace


async def _open_log(setup: Setup, store: Store) -> tuple[EventLog, Agent]:
    log = await _find_log(setup, store)
    try:
        return log, await _choose_agent(setup.agent, log.state)
    except BaseException:
        with anyio.CancelScope(shield=True):
            await log.close()
        raise


async def _find_log(setup: Setup, store: Store) -> EventLog:
    if setup.id is not None:
        try:
            return await EventLog.open(store, setup.id)
        except ConversationNotFound:
            if setup.agent is None:
                raise
    if setup.agent is None:
        raise ConversationError("A new conversation needs an agent; agent=None goes on with one that has an id.")
    return await EventLog.create(store, setup.id or new_conversation_id())


async def _choose_agent(agent: Agent | object | None, state: ConversationState) -> Agent:
    if isinstance(agent, Agent):
        return agent
    if agent is not None:
        raise TypeError(f"A conversation is with an Agent(llm=..., tools=...), not with {agent!r}.")
    if state.agent is None:
        raise NotRecorded(state.conversation_id, ["the agent"])
    if state.agent.missing:
        raise NotRecorded(state.conversation_id, state.agent.missing)
    # Finding the tools reads files and imports modules.
    return await run_sync(restore_agent, state.agent.agent)


def _choose_policy(
    given: ConfirmationPolicy | Confirm | None, state: ConversationState
) -> tuple[ConfirmationPolicy, Confirm | None]:
    if given is None:
        if state.policy is None:
            return NeverConfirm(), None
        # A policy of the program's own could not be recorded: until it is given again, ask about everything.
        return read_policy(state.policy) or AlwaysConfirm(), None
    return (given, None) if _is_policy(given) else (AlwaysConfirm(), given)


def _is_policy(confirm: ConfirmationPolicy | Confirm) -> TypeIs[ConfirmationPolicy]:
    return hasattr(confirm, "needs_confirmation")


async def _configure(core: Core, setup: Setup) -> None:
    """Record what the conversation is opened with, where the log does not say so already."""
    state = core.state
    events: list[Event] = []
    recorded, missing = record_agent(core.agent)
    if state.agent is None or (
        setup.agent is not None and (state.agent.agent, state.agent.missing) != (recorded, missing)
    ):
        events.append(AgentConfigured(agent=recorded, missing=missing))
    if setup.limits is not None and setup.limits != state.limits:
        events.append(ConversationStateUpdateEvent(update=LimitsSet(limits=setup.limits)))
    if setup.confirm is not None:
        policy: dict[str, JsonValue] = record_policy(core.policy) if core.confirm is None else {"name": "custom"}
        if policy != state.policy:
            events.append(ConversationStateUpdateEvent(update=PolicySet(policy=policy)))
    if names := tuple(name for name in core.secrets.names if name not in state.secret_names):
        events.append(ConversationStateUpdateEvent(update=SecretsRegistered(names=names)))
    if events:
        await core.journal.write(*events)
    _log.debug("conversation open", head=state.head)
