"""Exceptions: their text whatever raised them, and task groups whose exceptions leave as themselves, not as groups."""

from __future__ import annotations

import traceback
from collections.abc import AsyncGenerator, Callable, Collection
from contextlib import asynccontextmanager, suppress
from typing import Final, cast

import anyio
from anyio import get_cancelled_exc_class
from anyio.abc import TaskGroup
from anyio.lowlevel import checkpoint_if_cancelled

from agentcore._groups import leaf_exceptions
from agentcore.conversation.guards import is_asyncio
from agentcore.secrets import SecretRegistry


def safe_str(error: BaseException) -> str:
    """Return the text of an exception, whatever its class makes of that."""
    return _told(str, error)


def safe_repr(error: BaseException) -> str:
    """Return its `repr`, whatever its class makes of that."""
    return _told(repr, error)


def masked_repr(secrets: SecretRegistry, error: BaseException) -> str:
    """Return its `repr` for the log of the program, without the values of secrets."""
    match getattr(error, "args", ()):
        case (str(words),):
            # Masked by itself first: a value that is encoded in it would be encoded twice in the `repr`.
            return secrets.mask(f"{type(error).__name__}({secrets.mask(words)!r})")
        case _:
            return secrets.mask(safe_repr(error))


def _told(tell: Callable[[object], str], error: BaseException) -> str:
    try:
        return tell(error)
    except Exception as another:  # of a class outside agentcore
        return f"<{type(error).__name__}, and telling of it raised {type(another).__name__}>"


def format_tool_error(error: BaseException) -> str:
    """Format a tool's exception for the model: what was raised, and where in the tool."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" (at {frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name})" if frames else ""
    notes: object = getattr(error, "__notes__", ())  # a tool may have made anything of it
    lines = [str(note) for note in cast("list[object]", notes)] if isinstance(notes, list) else []
    return "\n".join((f"The tool raised {type(error).__name__}: {safe_str(error)}{where}", *lines))


_ENDS: Final = (SystemExit, KeyboardInterrupt)
"""Exceptions that stop asyncio's loop, whichever task raises them."""


def unwrap(error: BaseException, own: Collection[BaseException] = ()) -> BaseException:
    """Return the one exception that a group is about; its notes name the others.

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
            _note(first, f"At the same time: {type(leaf).__name__}: {safe_str(leaf)}")
    return first


def _note(error: BaseException, note: str) -> None:
    with suppress(Exception):  # its notes may have been made anything
        error.add_note(note)


@asynccontextmanager
async def open_group() -> AsyncGenerator[TaskGroup]:
    """Open a task group; what a task or the body raises leaves bare, where it may (see `exception_to_raise`)."""
    raised: BaseException | None = None
    try:
        async with anyio.create_task_group() as tasks:
            try:
                yield tasks
            except BaseException as error:
                raised = error
                raise
    except BaseExceptionGroup as group:
        error = exception_to_raise(group, () if raised is None else (raised,))
        # The cause stays what it was: the group would only repeat it.
        raise error from error.__cause__


def exception_to_raise(group: BaseExceptionGroup[BaseException], own: Collection[BaseException]) -> BaseException:
    """Return the exception to raise for a group: the one that it is about, or the group where that may not leave bare.

    An end of the process that comes out of a task has stopped asyncio's loop already. All else is unwound while the loop
    is being closed: a task that raises it bare once more stops that too, before the threads are asked to end, and the
    process waits for them for ever.

    Args:
        group: What was raised.
        own: What has not left a task before.
    """
    error = unwrap(group, own)
    if isinstance(error, _ENDS) and not any(error is one for one in own) and is_asyncio():
        return group
    return error


async def is_cancelled() -> bool:
    """Return whether a cancellation that was caught is one of a scope that is in force here.

    Code of users can raise the same exception by itself: on asyncio, awaiting a task that was cancelled does.
    """
    try:
        await checkpoint_if_cancelled()
    except get_cancelled_exc_class():  # noqa: ASYNC103 asking is the purpose: the one who caught the first raises it
        return True  # noqa: ASYNC104 the same
    return False


def spurious_cancellation(who: str, error: BaseException) -> RuntimeError:
    """Make the error of code that raised a cancellation that no scope asked for."""
    failed = RuntimeError(
        f"{who} raised {type(error).__name__} although it was not cancelled. Most likely it awaited a task or a future "
        "that was cancelled; catch that where it is awaited."
    )
    failed.__cause__ = error
    return failed
