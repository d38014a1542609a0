"""The conversations that are kept, and the one that a person means."""

from __future__ import annotations

from typing import Final

import anyio

from agentcore.cli.failures import UsageError
from agentcore.cli.settings import Settings
from agentcore.record import FileStore

__all__ = ["WORKSPACE_TAG", "find_conversation", "open_store"]

WORKSPACE_TAG: Final = "workspace"
"""The tag that says in which folder a conversation works, so that it can be gone on with from anywhere."""

_LISTED = 10


def open_store(settings: Settings) -> FileStore:
    """Give the store in the settings' folder; nothing is made before it is needed."""
    return FileStore(settings.conversations)


async def find_conversation(store: FileStore, settings: Settings, given: str | None) -> str:
    """Give the id that starts like this; without one, that of the conversation that changed last.

    Raises:
        UsageError: There is none, or more than one.
    """
    if given is not None and await _is_there(store, given):
        return given
    infos = await store.list()
    if not infos:
        begin = settings.command("run 'your task'")
        raise UsageError(f"There is no conversation in {store.location} yet. Begin one: {begin}")
    if given is None:
        return max(infos, key=lambda info: info.modified).conversation_id
    found = [info.conversation_id for info in infos if info.conversation_id.startswith(given)]
    if len(found) == 1:
        return found[0]
    if found:
        listed = "".join(f"\n  {each}" for each in found[:_LISTED])
        more = f"\n  and {len(found) - _LISTED} more" if len(found) > _LISTED else ""
        raise UsageError(
            f"{given!r} is the beginning of {len(found)} ids; type more of the one you mean:{listed}{more}"
        )
    raise UsageError(
        f"No conversation in {store.location} has an id that begins with {given!r}. "
        f"To see those that are there: {settings.command('conversations')}"
    )


async def _is_there(store: FileStore, conversation_id: str) -> bool:
    try:
        folder = store.folder(conversation_id)
    except ValueError:
        return False  # it could be no folder's name
    return await anyio.Path(folder, "meta.json").exists()
