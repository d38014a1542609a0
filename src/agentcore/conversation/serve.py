"""The task that a conversation is: it opens everything, hosts the driver, and leaves nothing behind.

Above: a handle or a host, which start it. It enters and leaves every context itself, in one task.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from os import PathLike
from pathlib import PurePath
from typing import NamedTuple, cast

import anyio
from anyio.abc import TaskGroup, TaskStatus
from anyio.to_thread import run_sync
from pydantic import JsonValue
from typing_extensions import TypeIs

from agentcore.agent import Agent, record_agent, restore_agent
from agentcore.conversation.core import Core, Lifecycle
from agentcore.conversation.deltas import DeltaHub
from agentcore.conversation.driver import close_unfinished, drive
from agentcore.conversation.groups import open_group
from agentcore.conversation.home import Home
from agentcore.conversation.jobs import Jobs
from agentcore.conversation.journal import Decision, Intake, Journal
from agentcore.conversation.prompt import PromptSource
from agentcore.conversation.recorder import keep_record
from agentcore.conversation.recover import recover
from agentcore.conversation.spool import remove_spool
from agentcore.conversation.stuck import StuckTracker
from agentcore.conversation.tools import ToolSessions
from agentcore.conversation.turn import Turn
from agentcore.conversation.watch import Bell
from agentcore.errors import (
    ConversationClosed,
    ConversationError,
    ConversationNotFound,
    NotRecorded,
    StoreError,
    WorkspaceError,
    WorkspaceNotRestored,
)
from agentcore.events import (
    AgentConfigured,
    ConversationStateUpdateEvent,
    Event,
    LimitsSet,
    PolicySet,
    SecretsRegistered,
    WorkspaceOpened,
)
from agentcore.ids import new_conversation_id
from agentcore.logs import bind_conversation, get_logger
from agentcore.record import ConversationState, EventLog, MemoryStore, Store
from agentcore.secrets import SecretRegistry, SecretSource
from agentcore.security import (
    AlwaysConfirm,
    Check,
    Checks,
    Confirm,
    NeverConfirm,
    as_checks,
    is_checks,
    read_checks,
    record_checks,
)
from agentcore.usage import Limits
from agentcore.workspace import LocalWorkspace, Workspace, WorkspaceSpec, record_workspace, resolve_workspace

__all__ = ["Setup", "serve_conversation"]

_log = get_logger(__name__)

_REMOVE_SECONDS = 10.0


class Setup(NamedTuple):
    """What a conversation is opened with."""

    agent: Agent | None
    workspace: Workspace | str | PathLike[str] | None
    id: str | None
    store: Store | None
    confirm: Checks | Confirm | None
    limits: Limits | None
    secrets: Mapping[str, SecretSource] | None

    def validate(self) -> None:
        """Refuse a store that is none, and what can decide about nothing: at once, not by the first call that needs it.

        Raises:
            TypeError: It is one.
        """
        store: object = self.store
        confirm: object = self.confirm
        if isinstance(store, str | PurePath):
            raise TypeError(f"store is a store, not its folder: FileStore({str(store)!r}).")
        if store is not None and (isinstance(store, type) or not hasattr(store, "create")):
            raise TypeError(f"store is a store, as FileStore('conversations') or MemoryStore(), not {store!r}.")
        if confirm is None:
            return
        if isinstance(confirm, type) or not (is_checks(confirm) or callable(confirm)):
            raise TypeError(
                "confirm is a policy, as AlwaysConfirm() or ConfirmRisky(), a check or a list of those, or an async function "
                f"that is asked about each call, not {confirm!r}."
            )
        if is_checks(confirm):
            as_checks(cast("Checks", confirm))


async def serve_conversation(setup: Setup, call_tasks: TaskGroup, *, task_status: TaskStatus[Core]) -> None:
    """Open a conversation, report its `Core` as started, and serve it until its `stop` is set.

    Args:
        setup: What it is opened with.
        call_tasks: Where its calls run. It has to outlive this: a call that does not stop is left behind there.
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
                    await _serve(setup, store, agent, recording, call_tasks, task_status=task_status)
        finally:
            # However it ended: a delete that has begun is finished.
            with anyio.CancelScope(shield=True):
                await log.close()
                if recording.core is not None and recording.core.life.delete:
                    try:
                        await store.delete(log.state.conversation_id)
                    except StoreError as error:
                        recording.core.life.delete_error = error  # for whoever asked for it
    finally:
        if recording.core is not None:
            recording.core.life.ended.set()


class _Recording:
    """The recorder's surroundings, and who is to be told what it recorded."""

    def __init__(self, log: EventLog, secrets: SecretRegistry) -> None:
        self.log = log
        self.secrets = secrets
        self.home = Home(log.state.conversation_id)
        self.bell = Bell(self.home)
        self.core: Core | None = None
        self._intake = Intake()
        self.journal = Journal(log.state.conversation_id, self._intake, secrets, self.home)

    @asynccontextmanager
    async def under_way(self) -> AsyncGenerator[None]:
        """Run the recorder; it outlives everybody who writes, and ends when nothing more is taken in and nothing is left."""
        try:
            async with open_group() as keepers:
                keepers.start_soon(keep_record, self._intake, self.log, self.secrets, self, name="recorder")
                try:
                    yield
                finally:
                    self._intake.close()
        finally:
            self.bell.close()

    def recorded(self, decisions: Sequence[Decision]) -> None:
        """Act on a group commit (see `RecordListener`)."""
        if self.core is not None:
            self.core.recorded(decisions)
        self.bell.ring()

    def failed(self, error: StoreError) -> None:
        """End the conversation: its log is dead."""
        if self.core is not None:
            self.core.life.fail(error)
        self.bell.ring()


async def _serve(
    setup: Setup,
    store: Store,
    agent: Agent,
    recording: _Recording,
    call_tasks: TaskGroup,
    *,
    task_status: TaskStatus[Core],
) -> None:
    state = recording.log.state
    turns_in, turns_out = anyio.create_memory_object_stream[Turn](math.inf)
    checks, confirm = _choose_checks(setup.confirm, state)
    async with turns_in, turns_out, _enter(setup.workspace, state) as workspace:
        try:
            async with open_group() as tasks:
                sessions = ToolSessions(
                    tasks,
                    agent.own_tools,
                    agent.toolsets,
                    workspace=workspace,
                    conversation_id=state.conversation_id,
                    secrets=recording.secrets,
                )
                core = recording.core = Core(
                    store=store,
                    state=state,
                    agent=agent,
                    workspace=workspace,
                    journal=recording.journal,
                    bell=recording.bell,
                    deltas=DeltaHub(recording.home),
                    secrets=recording.secrets,
                    checks=checks,
                    confirm=confirm,
                    tool_sessions=sessions,
                    call_tasks=call_tasks,
                    jobs=Jobs(tasks, state.conversation_id),
                    home=recording.home,
                    queued_turns=turns_in,
                    stuck=StuckTracker(agent.stuck),
                    clock=anyio.current_time,
                    # A log in memory that nobody else can reach is gone with the conversation.
                    life=Lifecycle(delete=setup.store is None),
                    prompt=PromptSource(agent, workspace.root, recording.secrets, sessions),
                    opened_at=state.head,
                    repaired=recording.log.repaired,
                )
                try:
                    await _configure(core, setup)
                    await recover(core)
                    core.life.serving = True
                    tasks.start_soon(drive, core, turns_out, name="driver")
                    task_status.started(core)
                    await core.life.stop.wait()
                    await _wind_down(core)
                except BaseException:
                    # Cancelled from outside, most likely: the driver stops its turn by itself, and the tools' owners theirs.
                    tasks.cancel_scope.cancel()
                    raise
                finally:
                    core.journal.close_commands()
                    core.jobs.close()
        finally:
            if recording.core is not None:
                with anyio.CancelScope(shield=True):
                    await _clear_up(recording.core)


async def _wind_down(core: Core) -> None:
    """End by closing: stop the turn, then the tools, then the driver; what was handed over is kept."""
    core.journal.close_commands()
    core.jobs.close()
    _stop_turn(core)
    # What was handed over before may still begin a turn. After this nothing does.
    await core.journal.flush()
    _stop_turn(core)
    if core.turn is not None:
        await core.turn.done.wait()
    try:
        await core.tool_sessions.aclose()
    finally:
        await core.queued_turns.aclose()


async def _clear_up(core: Core) -> None:
    """Leave nothing open and nobody waiting, when all tasks have ended: a turn may have been asked for behind the last one."""
    if core.life.serving:
        with suppress(StoreError, ConversationClosed):  # whoever waits is told of these by the core
            await core.journal.flush()
            await close_unfinished(core)
    core.life.serving = False
    core.close_turn()
    core.deltas.close()
    if core.life.delete and (core.spooled or core.opened_at):  # it may have kept something when it was open before
        with anyio.move_on_after(_REMOVE_SECONDS, shield=True):
            await remove_spool(core)


def _stop_turn(core: Core) -> None:
    if core.turn is not None:
        core.turn.closing = True
        core.turn.interrupt("the conversation was closed")


@asynccontextmanager
async def _enter(given: Workspace | str | PathLike[str] | None, state: ConversationState) -> AsyncGenerator[Workspace]:
    """Enter a workspace unless somebody else has; without one, that in which the conversation worked."""
    if given is None and state.workspace is not None:
        workspace = await _restore(state.conversation_id, state.workspace)
    else:
        workspace = given if given is not None else "."
        workspace = LocalWorkspace(workspace) if isinstance(workspace, str | PathLike) else workspace
    if workspace.is_open:
        yield workspace
        return
    async with AsyncExitStack() as stack:
        try:
            await stack.enter_async_context(workspace)
        except WorkspaceError as error:
            if given is not None or state.workspace is None:
                raise
            raise _not_restored(state.conversation_id, error) from error
        yield workspace


async def _restore(conversation_id: str, opened: WorkspaceOpened) -> Workspace:
    try:
        # It may read files and import modules.
        return await run_sync(resolve_workspace, WorkspaceSpec(kind=opened.workspace, params=opened.spec))
    except WorkspaceError as error:
        raise _not_restored(conversation_id, error) from error


def _not_restored(conversation_id: str, error: WorkspaceError) -> WorkspaceNotRestored:
    return WorkspaceNotRestored(
        f"Conversation {conversation_id!r} cannot go back to where it worked: {str(error).rstrip('.')}. "
        "Pass workspace=... (a folder, or a workspace) to go on in another one."
    )


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


def _choose_checks(
    given: Checks | Confirm | None, state: ConversationState
) -> tuple[tuple[Check, ...], Confirm | None]:
    if given is None:
        if state.policy is None:
            return (NeverConfirm(),), None
        # Checks of the program's own could not be recorded: until they are given again, ask about everything.
        return (read_checks(state.policy) or AlwaysConfirm(),), None
    return (as_checks(given), None) if _is_checks(given) else ((AlwaysConfirm(),), given)


def _is_checks(confirm: Checks | Confirm) -> TypeIs[Checks]:
    return is_checks(confirm)


async def _configure(core: Core, setup: Setup) -> None:
    """Record what the conversation is opened with, where the log does not say so already."""
    state = core.state
    events: list[Event] = []
    recorded, missing = record_agent(core.agent)
    if state.agent is None or (
        setup.agent is not None and (state.agent.agent, state.agent.missing) != (recorded, missing)
    ):
        events.append(AgentConfigured(agent=recorded, missing=missing))
    spec = record_workspace(core.workspace)
    opened = WorkspaceOpened(workspace=spec.kind, spec=spec.params)
    if state.workspace is None or (state.workspace.workspace, state.workspace.spec) != (opened.workspace, opened.spec):
        events.append(opened)
    if setup.limits is not None and setup.limits != state.limits:
        events.append(ConversationStateUpdateEvent(update=LimitsSet(limits=setup.limits)))
    if setup.confirm is not None:
        policy: dict[str, JsonValue] = {"name": "custom"} if core.confirm else record_checks(core.checks)
        if policy != state.policy:
            events.append(ConversationStateUpdateEvent(update=PolicySet(policy=policy)))
    if names := tuple(name for name in core.secrets.names if name not in state.secret_names):
        events.append(ConversationStateUpdateEvent(update=SecretsRegistered(names=names)))
    if events:
        await core.journal.write(*events)
    _log.debug("conversation open", head=state.head)
