"""What still runs of what nobody holds any more, found by a variable that it was given."""

from __future__ import annotations

import shlex
from typing import Final
from urllib.parse import quote

from agentcore.workspace import Workspace

__all__ = ["find_left", "left_mark"]

# Where there is no /proc, nobody can tell.
_SCRIPT: Final = """\
[ -r /proc/self/environ ] || exit 3
grep -lsaF -e %s /proc/[0-9]*/environ | while IFS=/ read -r _ _ pid _; do
  line=$(tr '\\0' ' ' <"/proc/$pid/cmdline") && printf '%%s (%%.80s)\\n' "$pid" "${line%% }"
done 2>/dev/null
exit 0"""


def left_mark(*parts: str) -> str:
    """Make the value of a variable by which something is found again. None is the beginning of another."""
    return "/".join(quote(part, safe="") for part in parts) + ";"


async def find_left(name: str, mark: str, workspace: Workspace) -> str | None:
    """Say which processes have this variable, in words; empty where none has, None where that can't be told."""
    found = await workspace.run(_SCRIPT % shlex.quote(f"{name}={mark}"))
    if found.exit_code != 0:
        return None
    return ", ".join(found.stdout.splitlines())
