"""The conversations that are kept, and the one that a person means."""

from __future__ import annotations

import shlex

from agentcore.cli.failures import UsageError
from agentcore.cli.settings import Settings
from agentcore.errors import ConversationNotFound, StoreError
from agentcore.events import ConversationStatus
from agentcore.record import ConversationState, FileStore, Store

__all__ = ["find_conversation", "folder_of", "is_at_work", "is_there", "open_store"]

_LISTED = 10


def open_store(settings: Settings) -> Store:
    """Return the store in the settings' folder; nothing is made before it is needed.

    No other place of the command line knows which kind of store it is.
    """
    return FileStore(settings.conversations)


async def find_conversation(store: Store, settings: Settings, given: str | None, *, or_words: bool = False) -> str:
    """Give the id that starts like this; without one, that of the conversation that changed last.

    Args:
        store: Where they are.
        settings: How commands are told.
        given: What a person typed.
        or_words: Whether it may have been meant as a message: then the error says how to say it.

    Raises:
        UsageError: There is none, or more than one.
    """
    if given is not None and await is_there(store, given):
        return given
    infos = await store.list()
    if not infos:
        begin = settings.command("run 'your task'")
        raise UsageError(f"There is no conversation in {store.location} yet. Begin one: {begin}")
    newest = max(infos, key=lambda info: info.modified).conversation_id
    if given is None:
        return newest
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
        + (
            f"\nTo say it to the newest one: {settings.command(f'resume {newest} {shlex.quote(given)}')}"
            if or_words
            else ""
        )
    )


def folder_of(state: ConversationState) -> str | None:
    """Return the folder of this machine that a conversation works in, so that it can be resumed from anywhere."""
    opened = state.workspace
    root = opened.spec.get("root") if opened is not None and opened.workspace == "local" else None
    return root if isinstance(root, str) else None


async def is_at_work(store: Store, state: ConversationState) -> bool:
    """Return whether a process works on it now: its log may say so only because whoever wrote that died."""
    if state.status is not ConversationStatus.RUNNING:
        return False
    try:
        return await store.holder(state.conversation_id) is not None
    except StoreError:
        return False  # its events can be read and its lock can't, or it was deleted just now


async def is_there(store: Store, conversation_id: str) -> bool:
    """Return whether there is a log of this very id, readable or not."""
    try:
        await store.holder(conversation_id)
    except (ConversationNotFound, ValueError):
        return False  # there is none, or it could not be an id
    except StoreError:
        return True
    return True
