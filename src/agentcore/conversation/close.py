"""Closing a conversation, and deleting it: its log, and the outputs that it kept in its workspace."""

from __future__ import annotations

import anyio
from anyio.lowlevel import checkpoint

from agentcore.conversation.core import Core
from agentcore.conversation.guards import forbid_reentry
from agentcore.conversation.setup import enter_workspace
from agentcore.errors import LogDamaged, WorkspaceError, WorkspaceNotRestored
from agentcore.logs import get_logger
from agentcore.record import EventLog, Store
from agentcore.workspace import Workspace

_log = get_logger(__name__)


async def close(core: Core) -> None:
    """End a conversation, and wait for that; nothing where it has ended."""
    forbid_reentry(core.state.conversation_id, "close")
    if core.life.ended.is_set() or core.home.loop_closed:
        await checkpoint()
        return
    core.check_loop()
    core.life.stop.set()
    await core.life.ended.wait()


async def delete(core: Core) -> None:
    """Close a conversation, if it is open, and remove its log and its outputs.

    Raises:
        StoreError: The log could not be removed, or not any more.
    """
    forbid_reentry(core.state.conversation_id, "delete")
    if core.life.ended.is_set() and not core.life.delete:
        workspace = core.workspace if core.workspace.is_open else None
        await delete_closed(core.store, core.state.conversation_id, workspace)
        return
    core.check_loop()
    core.life.delete = True
    await close(core)
    if core.life.delete_error is not None:
        raise core.life.delete_error


async def delete_closed(store: Store, conversation_id: str, workspace: Workspace | None = None) -> None:
    """Remove the log of a closed conversation and its outputs.

    Outputs that cannot be reached stay: in a workspace that is gone, or that a damaged log does not name.

    Args:
        store: Where the log is.
        conversation_id: The conversation's id.
        workspace: Where it worked, if that is still open; otherwise the one that the log names is opened.

    Raises:
        ConversationNotFound: There is none of that id.
        ConversationLocked: It is open somewhere.
        StoreError: The log could not be removed.
    """
    try:
        log = await EventLog.open(store, conversation_id)
    except LogDamaged:
        log = None
    if log is not None:
        try:
            await _remove_outputs(log, workspace)
        finally:
            with anyio.CancelScope(shield=True):
                await log.close()
    await store.delete(conversation_id)


async def _remove_outputs(log: EventLog, workspace: Workspace | None) -> None:
    state = log.state
    if workspace is None and state.workspace is None:
        return  # it never worked anywhere
    try:
        async with enter_workspace(workspace, state, log.epoch) as place:
            await place.remove_private_folder(state.conversation_id)
    except (WorkspaceError, WorkspaceNotRestored) as error:
        _log.warning("outputs not removed", conversation=state.conversation_id, error=str(error))
