"""What went wrong, in one sentence and an exit code."""

from __future__ import annotations

import errno
import os
import re
from typing import Final

from agentcore.errors import (
    AgentcoreError,
    ConversationExists,
    ConversationNotFound,
    ModelError,
    PathError,
    RunError,
    StoreError,
)

_FLAGS: Final = (
    (r"LLM\(model='([^']*)', base_url=\.\.\.\)", r"--model '\1' --base-url URL"),
    (r"(the key in) LLM\(api_key=\.\.\.\)", r"\1 AGENTCORE_API_KEY"),
    (r"(Set [A-Z][\w ]*), or pass LLM\(api_key=\.\.\.\)", r"\1, or AGENTCORE_API_KEY"),
    (r"(Pass|into) LLM\(base_url=\.\.\.\)", r"\1 --base-url"),
    (r"\bCheck model and base_url\b", "Check --model and --base-url"),
    (r"(\bis|\bCheck) base_url\b", r"\1 --base-url"),
)
"""What the library tells programs to pass, and by what a person at the command line says it."""

_ELSEWHERE: Final = "choose another folder with --home or AGENTCORE_HOME."


class UsageError(Exception):
    """What was asked for can't be done as it was asked: the arguments or the settings have to change."""


class OutputRefused(Exception):
    """What is printed could not be written to its end."""

    def __init__(self, refused: OSError, what_now: str = "") -> None:
        super().__init__(f"What is printed can't be written: {refused.strerror}.{what_now}")
        self.refused = refused


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
            return with_flags(" ".join(str(error).split())), 1  # a provider's own words may be many lines
        case StoreError(__cause__=OSError() as refused):
            return _say_refused_store(error, refused), 1
        case AgentcoreError() | OutputRefused():
            return str(error), 1
        case OSError(strerror=str() as reason):
            return _say_refusal(error, reason), 1
        case _:
            return f"Something unexpected happened: {type(error).__name__}: {error}. --debug shows where.", 1


def with_flags(sentence: str) -> str:
    """Say a sentence of the library's with the flags and variables that stand for what programs pass."""
    for wanted, said in _FLAGS:
        sentence = re.sub(wanted, said, sentence)
    return sentence


def _say_refusal(refused: OSError, reason: str) -> str:
    if of_the_output(refused) is not None:
        return str(OutputRefused(refused))
    where = f" ({os.fsdecode(refused.filename)!r})" if refused.filename is not None else ""
    return f"The operating system refused: {reason}{where}."


def _say_refused_store(error: StoreError, refused: OSError) -> str:
    path = os.fsdecode(refused.filename) if refused.filename is not None else "the folder of the conversations"
    match refused.errno:
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return f"You may not read and write {path!r} ({refused.strerror}); {_ELSEWHERE}"
        case errno.ENOTDIR | errno.EEXIST:
            return (
                f"{path!r} can't be a folder ({refused.strerror}): a part of it is a file. Mend that, or {_ELSEWHERE}"
            )
        case _:
            return str(error)


def of_the_output(error: BaseException) -> OSError | None:
    """Find the refusal to take any more of what is printed, as of a full disk."""
    match error:
        case BaseExceptionGroup(exceptions=exceptions):
            inside: tuple[BaseException, ...] = exceptions
            return next((found for each in inside if (found := of_the_output(each)) is not None), None)
        case OutputRefused():
            return error.refused
        case OSError(errno=errno.ENOSPC | errno.EDQUOT | errno.EFBIG, filename=None):
            return error
        case _:
            return None


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
