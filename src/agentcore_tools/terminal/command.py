"""A command before it is typed: whether it can have been meant as one."""

from __future__ import annotations

import ast
import json
from contextlib import suppress

from agentcore.errors import ToolError

__all__ = ["refuse"]


def refuse(command: str) -> None:
    """Refuse what can't have been meant as a command.

    Raises:
        ToolError: it is a list or an object, or bash can't be given it.
    """
    if "\0" in command:
        raise ToolError("There is a NUL character in the command, and bash can't take one. For printf, write \\0.")
    for read in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            if isinstance(read(command.strip()), list | dict):
                raise ToolError(
                    "The command is a list or an object, and bash would not understand it. Write one line of text, as you "
                    "would type it."
                )
