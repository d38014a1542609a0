"""Deleting a conversation that is closed: its log, and the outputs that it kept in its workspace."""

from __future__ import annotations

import anyio

from agentcore.conversation.setup import enter_workspace
from agentcore.errors import LogDamaged, WorkspaceError, WorkspaceNotRestored
from agentcore.logs import get_logger
from agentcore.record import ConversationState, EventLog, Store
from agentcore.workspace import Workspace

_log = get_logger(__name__)


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
            await _remove_outputs(log.state, workspace)
        finally:
            with anyio.CancelScope(shield=True):
                await log.close()
    await store.delete(conversation_id)


async def _remove_outputs(state: ConversationState, workspace: Workspace | None) -> None:
    if workspace is None and state.workspace is None:
        return  # it never worked anywhere
    try:
        async with enter_workspace(workspace, state) as place:
            await place.remove_private_folder(state.conversation_id)
    except (WorkspaceError, WorkspaceNotRestored) as error:
        _log.warning("outputs not removed", conversation=state.conversation_id, error=str(error))
