"""The conversations that are kept, and the one that a person means."""

from __future__ import annotations

import fcntl
import os
import shlex
from contextlib import suppress

import anyio

from agentcore.cli.failures import UsageError
from agentcore.cli.settings import Settings
from agentcore.events import ConversationStatus
from agentcore.record import ConversationState, FileStore

__all__ = ["find_conversation", "folder_of", "is_at_work", "is_there", "open_store"]

_LISTED = 10


def open_store(settings: Settings) -> FileStore:
    """Give the store in the settings' folder; nothing is made before it is needed."""
    return FileStore(settings.conversations)


async def find_conversation(store: FileStore, settings: Settings, given: str | None, *, or_words: bool = False) -> str:
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


def is_at_work(store: FileStore, state: ConversationState) -> bool:
    """Say whether a process works on it now: its log may say so only because whoever wrote that died.

    Looks at files, which does not take long.
    """
    if state.status is not ConversationStatus.RUNNING:
        return False
    try:
        descriptor = os.open(os.path.join(store.folder(state.conversation_id), "lock"), os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        # Shared, and let go of at once: several may look at the same moment.
        with suppress(BlockingIOError):
            fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
            return False
        return True
    finally:
        os.close(descriptor)


async def is_there(store: FileStore, conversation_id: str) -> bool:
    """Say whether there is a log of this very id."""
    try:
        folder = store.folder(conversation_id)
    except ValueError:
        return False  # it could be no folder's name
    return await anyio.Path(folder, "meta.json").exists()
