"""Task groups whose exceptions leave as themselves, not as groups."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from contextlib import asynccontextmanager, suppress
from typing import Final

import anyio
from anyio import get_cancelled_exc_class
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint_if_cancelled

from agentcore._groups import leaf_exceptions
from agentcore.conversation.home import is_asyncio
from agentcore.conversation.telling import text_of

__all__ = ["bare", "cancelled_itself", "is_cancelled", "open_group", "to_raise"]

_ENDS: Final = (SystemExit, KeyboardInterrupt)
"""What asyncio lets stop the loop, whichever task raises it."""


def bare(error: BaseException, own: Collection[BaseException] = ()) -> BaseException:
    """Give the one exception that a group is about; others are told in its notes.

    Args:
        error: The group, or an exception that is none.
        own: What user code raised itself: it goes first, and a group that it made stays one.
    """
    leaves = leaf_exceptions(error, own)
    # An interrupt from the keyboard, or the end of the process, goes before what it caused.
    ends = [leaf for leaf in leaves if not isinstance(leaf, Exception | BaseExceptionGroup)]
    first = next((leaf for leaf in (*ends, *own) if any(leaf is each for each in leaves)), leaves[0])
    for leaf in leaves:
        if leaf is not first:
            _note(first, f"At the same time: {type(leaf).__name__}: {text_of(leaf)}")
    return first


def _note(error: BaseException, note: str) -> None:
    with suppress(Exception):  # its notes may have been made anything
        error.add_note(note)


@asynccontextmanager
async def open_group() -> AsyncGenerator[TaskGroup]:
    """Open a task group; what a task or the body raises leaves bare, where it may (see `to_raise`)."""
    raised: BaseException | None = None
    try:
        async with anyio.create_task_group() as tasks:
            try:
                yield tasks
            except BaseException as error:
                raised = error
                raise
    except BaseExceptionGroup as group:
        error = to_raise(group, () if raised is None else (raised,))
        # The cause stays what it was: the group would only repeat it.
        raise error from error.__cause__


def to_raise(group: BaseExceptionGroup[BaseException], own: Collection[BaseException]) -> BaseException:
    """Give what is to leave for a group: the exception that it is about, or the group where that may not leave bare.

    An end of the process that comes out of a task has stopped asyncio's loop already. All else is unwound while the loop
    is being closed: a task that raises it bare once more stops that too, before the threads are told to end, and the
    process waits for them for ever.

    Args:
        group: What was raised.
        own: What has not left a task before.
    """
    error = bare(group, own)
    if isinstance(error, _ENDS) and not any(error is one for one in own) and is_asyncio():
        return group
    return error


async def is_cancelled() -> bool:
    """Say whether a cancellation that was caught is one of a scope that is in force here.

    Code of users can raise the same exception by itself: on asyncio, whoever awaits a task that was cancelled does.
    """
    try:
        await checkpoint_if_cancelled()
    except get_cancelled_exc_class():  # noqa: ASYNC103 asking is the purpose: whoever caught the first one raises it
        return True  # noqa: ASYNC104 the same
    return False


def cancelled_itself(who: str, error: BaseException) -> RuntimeError:
    """Make the error of code that raised a cancellation which nobody asked for."""
    failed = RuntimeError(
        f"{who} raised {type(error).__name__} although nobody cancelled it. Most likely it awaited a task or a future "
        "that was cancelled; catch that where it is awaited."
    )
    failed.__cause__ = error
    return failed
