"""Setup: the arguments a conversation is opened with, and what the log has of them: agent, workspace, checks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from os import PathLike
from pathlib import PurePath
from typing import Any, NamedTuple, cast

import anyio
from anyio.to_thread import run_sync
from typing_extensions import TypeIs

from agentcore import workspace as workspaces
from agentcore.agent import Agent, restore_agent
from agentcore.errors import (
    ConversationError,
    ConversationNotFound,
    NotRecorded,
    WorkspaceError,
    WorkspaceNotRestored,
)
from agentcore.events import (
    WorkspaceOpened,
)
from agentcore.ids import new_conversation_id
from agentcore.messages import Message
from agentcore.record import ConversationState, EventLog, Store
from agentcore.secrets import SecretSource
from agentcore.security import (
    AlwaysConfirm,
    Check,
    Checks,
    Confirm,
    NeverConfirm,
    as_checks,
    is_checks,
    read_checks,
)
from agentcore.usage import Limits
from agentcore.workspace import Workspace, WorkspaceSpec, resolve_workspace


class Setup(NamedTuple):
    """The arguments a conversation is opened with."""

    agent: Agent | None
    workspace: Workspace | str | PathLike[str] | None
    id: str | None
    store: Store | None
    confirm: Checks | Confirm | None
    limits: Limits | None
    secrets: Mapping[str, SecretSource] | None
    deps: Any = None

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


def check_message(message: str | Message | object) -> Message:
    """Return a user's text as a message."""
    if isinstance(message, str):
        message = Message.user(message)
    if not isinstance(message, Message):
        raise TypeError(f"A message is text or a Message, not {type(message).__name__}.")
    if message.role != "user":
        raise ValueError(f"A message of role {message.role!r} can't be sent: make it with Message.user(...).")
    return message


def check_limits(limits: Limits | object) -> Limits:
    if not isinstance(limits, Limits):
        raise TypeError(f"limits are Limits(steps=..., cost=...), not {limits!r}.")
    return limits


@asynccontextmanager
async def enter_workspace(
    given: Workspace | str | PathLike[str] | None, state: ConversationState
) -> AsyncGenerator[Workspace]:
    """Enter a workspace that is not open yet; without one, the one in which the conversation worked."""
    if given is None and state.workspace is not None:
        workspace = await _restore(state.conversation_id, state.workspace)
    else:
        workspace = given if given is not None else "."
        workspace = workspaces.LocalWorkspace(workspace) if isinstance(workspace, str | PathLike) else workspace
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


async def open_log(setup: Setup, store: Store) -> tuple[EventLog, Agent]:
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


def choose_checks(given: Checks | Confirm | None, state: ConversationState) -> tuple[tuple[Check, ...], Confirm | None]:
    if given is None:
        if state.policy is None:
            return (NeverConfirm(),), None
        # Checks of the program's own could not be recorded: until they are given again, ask about everything.
        return (read_checks(state.policy) or AlwaysConfirm(),), None
    return (as_checks(given), None) if _is_checks(given) else ((AlwaysConfirm(),), given)


def _is_checks(confirm: Checks | Confirm) -> TypeIs[Checks]:
    return is_checks(confirm)
