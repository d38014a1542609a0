"""The task that a conversation is: it opens everything, hosts the driver, and leaves nothing behind.

Above: a handle or a host, which start it. It enters and leaves every context itself, in one task.
"""

from __future__ import annotations

import math
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager, suppress

import anyio
from anyio import get_cancelled_exc_class
from anyio.abc import TaskGroup, TaskStatus
from pydantic import JsonValue

from agentcore.agent import Agent, record_agent
from agentcore.conversation.checkpoints import restore
from agentcore.conversation.core import Core, Lifecycle
from agentcore.conversation.decide import configure
from agentcore.conversation.deferral import Deferral
from agentcore.conversation.deltas import DeltaBroadcast
from agentcore.conversation.driver import close_unfinished, drive
from agentcore.conversation.exceptions import open_group
from agentcore.conversation.guards import LoopAffinity
from agentcore.conversation.jobs import Jobs
from agentcore.conversation.journal import Decision, Intake, Journal
from agentcore.conversation.prompt import PromptSource
from agentcore.conversation.recorder import keep_record
from agentcore.conversation.recover import recover
from agentcore.conversation.setup import Setup, choose_checks, enter_workspace, open_log
from agentcore.conversation.tool_host import remove_spool
from agentcore.conversation.tools import ToolSessions
from agentcore.conversation.turn import Turn
from agentcore.conversation.watch import HeadSignal
from agentcore.errors import (
    ConversationClosed,
    StoreError,
)
from agentcore.events import (
    CheckpointsSet,
    ConversationStateUpdateEvent,
    Event,
    LimitsSet,
    PolicySet,
    SecretsRegistered,
    WorkspaceOpened,
)
from agentcore.logs import bind_conversation, get_logger
from agentcore.record import EventLog, MemoryStore, Store
from agentcore.secrets import SecretRegistry
from agentcore.security import (
    record_checks,
)
from agentcore.stuck import StuckTracker
from agentcore.workspace import record_workspace

_log = get_logger(__name__)

_REMOVE_SECONDS = 10.0


@asynccontextmanager
async def serve_here(setup: Setup) -> AsyncGenerator[Core]:
    """Serve a conversation for as long as the block lasts.

    Raises:
        StoreError: The log could not be opened, or died.
    """
    async with open_group() as tasks:
        core: Core = await tasks.start(serve_conversation, setup, tasks, name="conversation")
        try:
            yield core
        except Exception as error:
            # Closed as it is when all went well: what is open is not to be cancelled over an error of the body.
            core.life.stop.set()
            try:
                await core.life.ended.wait()
            except get_cancelled_exc_class():
                raise error from error.__cause__  # noqa: ASYNC104 the body's error goes before a cancellation that came meanwhile
            raise
        finally:
            core.life.stop.set()
    if core.life.failure is not None and not core.journal.failure_reported:
        raise core.life.failure


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
    log, agent = await open_log(setup, store)
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
                        recording.core.life.delete_error = error  # raised in delete()
    finally:
        if recording.core is not None:
            recording.core.life.ended.set()


class _Recording:
    """The recorder's surroundings, and the listener of what it recorded."""

    def __init__(self, log: EventLog, secrets: SecretRegistry) -> None:
        self.log = log
        self.secrets = secrets
        self.home = LoopAffinity(log.state.conversation_id)
        self.head_signal = HeadSignal(self.home)
        self.core: Core | None = None
        self._intake = Intake()
        self.journal = Journal(log.state.conversation_id, self._intake, secrets, self.home)

    @asynccontextmanager
    async def under_way(self) -> AsyncGenerator[None]:
        """Run the recorder; it outlives all writers, and ends when nothing more is taken in and nothing is left."""
        try:
            async with open_group() as keepers:
                keepers.start_soon(keep_record, self._intake, self.log, self.secrets, self, name="recorder")
                try:
                    yield
                finally:
                    self._intake.close()
        finally:
            self.head_signal.close()

    def recorded(self, decisions: Sequence[Decision]) -> None:
        """Act on a group commit (see `RecordListener`)."""
        if self.core is not None:
            self.core.recorded(decisions)
        self.head_signal.notify()

    def failed(self, error: StoreError) -> None:
        """End the conversation: its log is dead."""
        if self.core is not None:
            self.core.life.fail(error)
        self.head_signal.notify()


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
    checks, confirm = choose_checks(setup.confirm, state)
    async with turns_in, turns_out, enter_workspace(setup.workspace, state, recording.log.epoch) as workspace:
        try:
            async with open_group() as tasks:
                sessions = ToolSessions(
                    tasks,
                    agent.own_tools,
                    agent.toolsets,
                    workspace=workspace,
                    conversation_id=state.conversation_id,
                    secrets=recording.secrets,
                    deps=setup.deps,
                    deferral=Deferral.of(agent),
                )
                core = recording.core = Core(
                    store=store,
                    state=state,
                    agent=agent,
                    workspace=workspace,
                    journal=recording.journal,
                    head_signal=recording.head_signal,
                    deltas=DeltaBroadcast(recording.home),
                    secrets=recording.secrets,
                    checks=checks,
                    confirm=confirm,
                    on_question=setup.on_question,
                    attended=setup.attended or setup.on_question is not None,
                    deps=setup.deps,
                    tool_sessions=sessions,
                    call_tasks=call_tasks,
                    jobs=Jobs(tasks, state.conversation_id),
                    restore_files=lambda: restore(core),
                    home=recording.home,
                    queued_turns=turns_in,
                    stuck=StuckTracker(agent.stuck),
                    clock=anyio.current_time,
                    # A log in memory that only this conversation can reach is gone with the conversation.
                    life=Lifecycle(delete=setup.store is None),
                    prompt=PromptSource(
                        agent,
                        workspace,
                        recording.secrets,
                        sessions,
                        conversation_id=state.conversation_id,
                        deps=setup.deps,
                    ),
                    opened_at=state.head,
                    repaired=recording.log.repaired,
                )
                try:
                    await _configure(core, setup)
                    await restore(core)
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
    """Leave nothing open and no caller waiting, when all tasks have ended: a turn may have been asked for behind the last one."""
    if core.life.serving:
        with suppress(StoreError, ConversationClosed):  # the core reports these to those who wait
            await core.journal.flush()
            await close_unfinished(core)
    core.life.serving = False
    core.close_turn()
    core.deltas.close()
    if core.life.delete and (
        core.spooled or core.has_checkpoints or core.opened_at
    ):  # it may have kept something when it was open before
        with anyio.move_on_after(_REMOVE_SECONDS, shield=True):
            await remove_spool(core)


def _stop_turn(core: Core) -> None:
    if core.turn is not None:
        core.turn.closing = True
        core.turn.interrupt("the conversation was closed")


async def _configure(core: Core, setup: Setup) -> None:
    """Record what the conversation is opened with, where the log does not say so already."""
    state = core.state
    events: list[Event] = []
    recorded, missing = record_agent(core.agent)
    if (setup.agent is not None or state.agent is None) and (event := configure(state, recorded, missing)) is not None:
        events.append(event)
    spec = record_workspace(core.workspace)
    opened = WorkspaceOpened(workspace=spec.kind, spec=spec.params, loosened=spec.loosened)
    if state.workspace is None or _workspace_of(state.workspace) != _workspace_of(opened):
        events.append(opened)
    if setup.checkpoints is not None and setup.checkpoints != state.checkpoints.when:
        events.append(ConversationStateUpdateEvent(update=CheckpointsSet(when=setup.checkpoints)))
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


def _workspace_of(opened: WorkspaceOpened) -> tuple[object, ...]:
    return opened.workspace, opened.spec, opened.loosened
