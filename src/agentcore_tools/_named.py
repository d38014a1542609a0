"""The secrets that a command names: it alone gets them."""

from __future__ import annotations

import re

from agentcore.errors import ToolError
from agentcore.tools import ToolSecrets

__all__ = ["named_secrets"]


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
