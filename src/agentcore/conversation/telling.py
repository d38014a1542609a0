"""Telling of an exception in words, whatever its class, or who raised it, made of it."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import cast

from agentcore.secrets import SecretRegistry

__all__ = ["describe", "masked_repr", "repr_of", "text_of"]


def text_of(error: BaseException) -> str:
    """Give the text of an exception, whatever its class makes of that."""
    return _told(str, error)


def repr_of(error: BaseException) -> str:
    """Give its `repr`, whatever its class makes of that."""
    return _told(repr, error)


def masked_repr(secrets: SecretRegistry, error: BaseException) -> str:
    """Give its `repr` for the log of the program, without the values of secrets."""
    return secrets.masker.mask_text(repr_of(error))


def _told(tell: Callable[[object], str], error: BaseException) -> str:
    try:
        return tell(error)
    except Exception as another:  # of a class of somebody's own
        return f"<{type(error).__name__}, and telling of it raised {type(another).__name__}>"


def describe(error: BaseException) -> str:
    """Say what was raised and where in the tool: the model may have written the code that raised."""
    frames = traceback.extract_tb(error.__traceback__)
    where = f" (at {frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name})" if frames else ""
    notes: object = getattr(error, "__notes__", ())  # a tool may have made anything of it
    lines = [str(note) for note in cast("list[object]", notes)] if isinstance(notes, list) else []
    return "\n".join((f"The tool raised {type(error).__name__}: {text_of(error)}{where}", *lines))
