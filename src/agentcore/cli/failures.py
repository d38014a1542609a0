"""What went wrong, in one sentence and an exit code."""

from __future__ import annotations

import errno
import os

from agentcore.errors import AgentcoreError, ConversationExists, ConversationNotFound, ModelError, PathError, RunError

__all__ = ["UsageError", "explain", "is_broken_pipe"]


class UsageError(Exception):
    """What was asked for can't be done as it was asked: the arguments or the settings have to change."""


def explain(error: BaseException) -> tuple[str, int]:
    """Say it to a person: the sentence and the exit code."""
    match error:
        case BaseExceptionGroup():
            return explain(error.exceptions[0])
        case RunError() if error.__cause__ is not None:
            return explain(error.__cause__)
        case UsageError() | ConversationNotFound() | ConversationExists() | PathError():
            return str(error), 2
        case ModelError():
            return " ".join(str(error).split()), 1  # a provider's own words may be many lines
        case AgentcoreError():
            return str(error), 1
        case OSError(strerror=str() as reason):
            where = f" ({os.fsdecode(error.filename)!r})" if error.filename is not None else ""
            return f"The operating system refused: {reason}{where}.", 1
        case _:
            return f"Something unexpected happened: {type(error).__name__}: {error}. --debug shows where.", 1


def is_broken_pipe(error: BaseException) -> bool:
    """Say whether nobody reads the output any more: after `| head`, or on a terminal that was closed."""
    match error:
        case BaseExceptionGroup(exceptions=exceptions):
            inside: tuple[BaseException, ...] = exceptions
            return any(is_broken_pipe(each) for each in inside)
        case OSError(errno=errno.EPIPE | errno.EIO):
            return True
        case _:
            return False
