"""The environment of what is started: this program's, without what belongs to this program. The one file here to read it."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from typing import Final

__all__ = ["MARKS", "environment", "is_own_variable"]

MARKS: Final = "AGENTCORE_PROCESSES"
"""Inherited by all descendants of a process, so that they are found wherever they went: the marks of the processes around
them, the outermost first, with colons between."""

# What this program pays or signs in with. Not AWS_ACCESS_KEY_ID, GITHUB_TOKEN and the like: those are what a user's own
# commands (aws, gh) work with.
_OWN: Final = re.compile(
    r"AGENTCORE_.*|(.*_)?API_?KEYS?(_.*)?|ANTHROPIC_AUTH_TOKEN|AWS_BEARER_TOKEN_BEDROCK", re.IGNORECASE
)


def is_own_variable(name: str) -> bool:
    """Say whether a variable belongs to this program, and is kept from what it starts."""
    return _OWN.fullmatch(name) is not None


def environment(
    inherit: bool | tuple[str, ...], *added: Mapping[str, str] | None, mark: str, terminal: bool
) -> dict[str, str]:
    """Put the environment of a new process together.

    Args:
        inherit: Everything but this program's own variables (True), nothing (False), or those of these names.
        added: What comes on top, the later over the earlier.
        mark: The mark of the new process.
        terminal: Whether it gets a terminal, whose size and kind are not those of this program's.
    """
    ours = os.environ
    if inherit is True:
        variables = {name: value for name, value in ours.items() if not is_own_variable(name)}
    else:
        variables = {name: ours[name] for name in inherit or () if name in ours}
    if terminal:
        variables.pop("COLUMNS", None)
        variables.pop("LINES", None)
        if variables.get("TERM", "dumb") == "dumb":
            variables["TERM"] = "xterm-256color"
    for more in added:
        variables.update(more or {})
    outer = ours.get(MARKS)
    variables[MARKS] = f"{outer}:{mark}" if outer else mark
    return variables
