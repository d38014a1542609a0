"""Setup: the arguments a conversation is opened with, and what the log has of them: agent, workspace, checks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from os import PathLike
from pathlib import PurePath
from typing import Any, Final, NamedTuple, cast

import anyio
from anyio.to_thread import run_sync
from typing_extensions import TypeIs

from agentcore import workspace as workspaces
from agentcore._arguments import (
    FLAG,
    FOLDER,
    TEXT,
    TEXT_BY_NAME,
    Argument,
    check_arguments,
    has_methods,
    instance_of,
    object_with,
    optional,
)
from agentcore.agent import Agent, restore_agent
from agentcore.conversation.questions import OnQuestion
from agentcore.conversation.switch import refuse_vanished_tools
from agentcore.errors import (
    ConversationError,
    ConversationNotFound,
    NotRecorded,
    WorkspaceError,
    WorkspaceNotRestored,
)
from agentcore.events import CheckpointTimes, WorkspaceOpened
from agentcore.ids import check_conversation_id, new_conversation_id
from agentcore.messages import Message, TextBlock
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


def _is_workspace(value: object) -> bool:
    return FOLDER.accepts(value) or has_methods(value, "open_process", "is_open")


def _name_store(value: object) -> str | None:
    return f"Pass FileStore({str(value)!r})." if isinstance(value, str | PurePath) else None


def _is_confirm(value: object) -> bool:
    return not isinstance(value, type) and (is_checks(value) or callable(value))


def _explain_policy(value: object) -> str | None:
    return "A function that is asked about each call is passed as confirm=." if callable(value) else None


def _is_checkpoint_time(value: object) -> bool:
    return value in ("settled", "asked")


def _is_by_name(value: object) -> bool:
    return isinstance(value, Mapping) and all(isinstance(name, str) for name in cast("Mapping[Any, Any]", value))


_AGENT: Final = instance_of(Agent, description="an Agent(llm=..., tools=...)")

ARGUMENTS: Final = {
    "agent": optional(_AGENT),
    "workspace": optional(Argument("a folder or a workspace, as LocalWorkspace('.')", _is_workspace, FOLDER.hint)),
    "id": optional(instance_of(str, description="text, the id of a conversation")),
    "store": optional(
        object_with("create", "open", description="a store, as FileStore('conversations') or MemoryStore()")._replace(
            hint=_name_store
        )
    ),
    "confirm": optional(
        Argument(
            "a policy, as AlwaysConfirm() or ConfirmRisky(), a check or a list of those, or a function that is asked about "
            "each call",
            _is_confirm,
        )
    ),
    "on_question": optional(Argument("a function that answers questions", callable)),
    "attended": FLAG,
    "checkpoints": optional(Argument('"settled" or "asked"', _is_checkpoint_time)),
    "limits": optional(instance_of(Limits, description="Limits(steps=..., cost=...)")),
    "secrets": optional(
        Argument(
            "a mapping of names to values, as {'TOKEN': value}", _is_by_name, hidden=True
        )  # it may hold the values
    ),
}
"""The arguments that a conversation is opened with."""

_IDS: Final = instance_of(str, list, tuple, set, frozenset, description="an id of an action or a list of them")

CALLS: Final = {
    "agent": _AGENT,
    "message": instance_of(str, Message, description="text or a Message"),
    "limits": instance_of(Limits, description="Limits(steps=..., cost=...)"),
    "policy": Argument("a policy or a check, as ConfirmRisky(), or a list of those", is_checks, _explain_policy),
    "ids": optional(_IDS),
    "arguments": optional(Argument("a mapping of names to values", _is_by_name)),
    "by": optional(TEXT),
    "reason": TEXT,
    "question": TEXT,
    "id": instance_of(str, description="the id of a question, or of the action that asks it"),
    "title": TEXT,
    "files": FLAG,
    "tags": TEXT_BY_NAME,
    "secrets": ARGUMENTS["secrets"]._replace(accepts=_is_by_name),
}
"""The arguments of a conversation's methods."""


INTERRUPT: Final = {"reason": optional(TEXT)}


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
    on_question: OnQuestion | None = None
    attended: bool = False
    checkpoints: CheckpointTimes | None = None

    def validate(self) -> None:
        """Refuse what could only fail later: at once, not by the first call that needs it.

        Raises:
            TypeError: An argument is not what it has to be.
            ValueError: `id` can't be the id of a conversation.
        """
        check_arguments(ARGUMENTS, **self._asdict())
        if self.id is not None:
            check_conversation_id(self.id)
        if self.confirm is not None and is_checks(self.confirm):
            as_checks(cast("Checks", self.confirm))


def check_message(message: str | Message | object) -> Message:
    """Return a user's text as a message.

    Raises:
        TypeError: It is neither text nor a message.
        ValueError: There is nothing in it, or it is not a user's.
    """
    check_arguments(CALLS, message=message)
    if isinstance(message, str):
        message = Message.user(message)
    assert isinstance(message, Message)
    if message.role != "user":
        raise ValueError(f"A message of role {message.role!r} can't be sent: make it with Message.user(...).")
    if all(isinstance(block, TextBlock) and not block.text.strip() for block in message.content):
        raise ValueError("The message is empty. To go on without one, call run() with no argument.")
    return message


@asynccontextmanager
async def enter_workspace(
    given: Workspace | str | PathLike[str] | None, state: ConversationState, epoch: int
) -> AsyncGenerator[Workspace]:
    """Enter a workspace that is not open yet; without one, the one in which the conversation worked. Then fence it.

    Args:
        given: The workspace that was passed.
        state: What the log says.
        epoch: The log's: what earlier openings started in the workspace is ended, whoever entered it.

    Raises:
        WorkspaceNotRestored: None was passed, and the one in which the conversation worked is gone.
        WorkspaceError: The one that was passed cannot be used.
    """
    if given is None and state.workspace is not None:
        workspace = await _restore(state.conversation_id, state.workspace)
    else:
        workspace = given if given is not None else "."
        workspace = workspaces.LocalWorkspace(workspace) if isinstance(workspace, str | PathLike) else workspace
    async with AsyncExitStack() as stack:
        try:
            if not workspace.is_open:
                if isinstance(workspace, workspaces.Labelled):
                    workspace.label(state.conversation_id, epoch)
                await stack.enter_async_context(workspace)
            await workspaces.fence_workspace(workspace, epoch, state.conversation_id)
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
        agent = await _choose_agent(setup.agent, log.state)
        # An agent that was set during a step was checked before the step ended: it stays the conversation's.
        if setup.agent is not None or log.state.agent is None or log.state.agent.command is None:
            refuse_vanished_tools(agent, log.state)
        return log, agent
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
        raise ConversationError(
            "A new conversation needs an agent; agent=None resumes the recorded conversation that `id` names."
        )
    return await EventLog.create(store, setup.id or new_conversation_id())


async def _choose_agent(agent: Agent | None, state: ConversationState) -> Agent:
    if agent is not None:
        return agent
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
