"""Whole outputs, kept in the workspace where the model can read them and the project's git does not see them."""

from __future__ import annotations

from agentcore.conversation.core import Core
from agentcore.errors import WorkspaceError
from agentcore.logs import get_logger

__all__ = ["SPOOL_LIMIT", "remove_spool", "spool", "spool_if_room"]

_log = get_logger(__name__)

SPOOL_LIMIT = 256 * 1024 * 1024
"""Bytes that one conversation may keep, while it is open."""


async def spool(core: Core, name: str, data: bytes) -> str:
    """Keep an output, masked, and give its path.

    Raises:
        WorkspaceError: It can't be written, or the conversation has kept as much as it may.
    """
    if core.spooled + len(data) > SPOOL_LIMIT:
        raise WorkspaceError(
            f"{name!r} was not kept: outputs of this conversation take {core.spooled:,} bytes already, "
            f"and {SPOOL_LIMIT:,} is the most."
        )
    core.spooled += len(data)
    folder = await core.workspace.private_folder(core.state.conversation_id)
    path = f"{folder}/{name}"
    await core.workspace.write(path, core.secrets.masker.mask_bytes(data))
    return path


async def spool_if_room(core: Core, name: str, data: bytes) -> str | None:
    """Keep an output and give its path; None where that can't be done: the answer must not be lost over it."""
    try:
        return await spool(core, name, data)
    except WorkspaceError as error:
        _log.warning("output not kept", name=name, error=str(error))
        return None


async def remove_spool(core: Core) -> None:
    """Remove what was kept."""
    try:
        await core.workspace.remove_private_folder(core.state.conversation_id)
    except WorkspaceError as error:
        _log.warning("outputs not removed", error=str(error))
