"""Errors as one sentence and an exit code."""

from __future__ import annotations

import errno
import os
import re
from typing import Final

from agentcore._groups import leaf_exceptions
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
"""Arguments that the library's messages name, and the flags and variables of the command line for them."""

_QUOTED: Final = r"""('[^']*'|"[^"]*")"""
_SANDBOX: Final = (
    (
        r"\. Pass workspace=(?:Docker|Bubblewrap)Workspace\([\s\S]*",
        ". Ask for its sandbox again: --sandbox, and --network and --sandbox-image as they were.",
    ),
    (rf"^mount={_QUOTED} cannot be used", r"The folder \1 cannot be used"),
    (rf"^mount={_QUOTED}", r"The folder \1"),
    (
        r" (?:Write the path of|Name) (the project's folder|a folder of your own|a folder that is there)( alone)?(?:, or pass copy=)?\.",
        r" Name \1\2 with --workspace.",
    ),
    (r"(Give the folder to a user \(.*\))\. A program can pass [\s\S]*", r"\1, or use --sandbox bubblewrap."),
    (r" Pass the folder of the project alone\.", " Name the project's folder alone with --workspace."),
    (r" Pass copy= in place of mount=\.", " Use --sandbox bubblewrap."),
    (
        rf"^image={_QUOTED}( is not the name of an image: write it as in )image='([^']*)'",
        r"--sandbox-image: \1\2--sandbox-image \3",
    ),
    (r" Pass a larger memory=, or do less at once\.", " Do less at once."),
    (r", or it was left without keep=True", ""),
    (r"\b([Uu]se) DockerWorkspace\b", r"\1 --sandbox docker"),
    (r"\b([Uu]se) BubblewrapWorkspace\b", r"\1 --sandbox bubblewrap"),
)
"""The same of what the library says about sandboxes."""
_ELSEWHERE: Final = "choose another folder with --home or AGENTCORE_HOME."


class UsageError(Exception):
    """The command cannot run with these arguments or settings."""


class OutputRefused(Exception):
    """Standard output could not be written."""

    def __init__(self, refused: OSError, what_now: str = "") -> None:
        super().__init__(f"Cannot write the output: {refused.strerror}.{what_now}")
        self.refused = refused


def explain(error: BaseException) -> tuple[str, int]:
    """Return an error's sentence for a person, and the exit code."""
    match error:
        case BaseExceptionGroup():
            return explain(leaf_exceptions(error)[0])
        case RunError():
            return explain(error.error)
        case UsageError() | ConversationNotFound() | ConversationExists() | PathError():
            return with_sandbox_flags(str(error)), 2
        case ModelError():
            return with_flags(" ".join(str(error).split())), 1  # a provider's message may have many lines
        case StoreError(__cause__=OSError() as refused):
            return _describe_store_error(error, refused), 1
        case AgentcoreError() | OutputRefused():
            return with_sandbox_flags(str(error)), 1
        case OSError(strerror=str() as reason):
            return _describe_os_error(error, reason), 1
        case _:
            return f"Unexpected {type(error).__name__}: {error}. Use --debug to see where.", 1


def with_flags(sentence: str) -> str:
    """Replace arguments in a message of the library by the flags and variables of the command line."""
    for wanted, replacement in _FLAGS:
        sentence = re.sub(wanted, replacement, sentence)
    return sentence


def with_sandbox_flags(sentence: str) -> str:
    """Replace arguments in what the library says about a sandbox by the flags of the command line."""
    for wanted, replacement in _SANDBOX:
        sentence = re.sub(wanted, replacement, sentence)
    return sentence


def _describe_os_error(refused: OSError, reason: str) -> str:
    if output_error(refused) is not None:
        return str(OutputRefused(refused))
    where = f" ({os.fsdecode(refused.filename)!r})" if refused.filename is not None else ""
    return f"The operating system refused: {reason}{where}."


def _describe_store_error(error: StoreError, refused: OSError) -> str:
    path = os.fsdecode(refused.filename) if refused.filename is not None else "the folder of the conversations"
    match refused.errno:
        case errno.EACCES | errno.EPERM | errno.EROFS:
            return f"No permission to read and write {path!r} ({refused.strerror}); {_ELSEWHERE}"
        case errno.ENOTDIR | errno.EEXIST:
            return f"{path!r} cannot be a folder ({refused.strerror}): a part of the path is a file. Fix that, or {_ELSEWHERE}"
        case _:
            return str(error)


def output_error(error: BaseException) -> OSError | None:
    """Return the error that refused the output, such as a full disk, if there is one in `error`."""
    for each in leaf_exceptions(error):
        match each:
            case OutputRefused():
                return each.refused
            case OSError(errno=errno.ENOSPC | errno.EDQUOT | errno.EFBIG, filename=None):
                return each
            case _:
                pass
    return None


def is_broken_pipe(error: BaseException) -> bool:
    """Return whether the reader of the output is gone: after `| head`, or on a closed terminal."""
    return any(isinstance(each, OSError) and each.errno in (errno.EPIPE, errno.EIO) for each in leaf_exceptions(error))
