"""A command before it is typed: whether it can have been meant as one, and which secrets it names."""

from __future__ import annotations

import ast
import json
import re
from contextlib import suppress

from agentcore.errors import ToolError
from agentcore.tools import ToolSecrets

__all__ = ["named_secrets", "refuse"]


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


async def named_secrets(text: str, secrets: ToolSecrets) -> dict[str, str]:
    """Give the secrets whose names occur in a text as words.

    Raises:
        SecretError: one can't be had.
        ToolError: one can't be in an environment.
    """
    words = set(re.findall(r"[A-Za-z_][A-Za-z0-9_]*", text))
    found = {name: await secrets.get(name) for name in secrets.names if name in words}
    for name, value in found.items():
        if "\0" in value:
            raise ToolError(
                f"The secret {name!r} has a NUL character in it, so it can't be in the environment of a command."
            )
    return found
