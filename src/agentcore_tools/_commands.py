"""Shared parts of the tools that start programs: the secrets that a command names, and processes that were left running."""

from __future__ import annotations

import re
import shlex
from typing import Final
from urllib.parse import quote

from agentcore.errors import ToolError
from agentcore.tools import Arguments, Ignored, ToolContext, ToolSecrets
from agentcore.workspace import Workspace

IGNORED: Final[Ignored] = (
    "description",
    "explanation",
    "justification",
    "requires_approval",
    "security_risk",
    "with_escalated_permissions",
    "sandbox_permissions",
    "dangerously_disable_sandbox",
    "max_output_tokens",
    "login",
    "tty",
    ("run_in_background", False),
    ("is_background", False),
    ("shell", "bash"),
    ("shell", "/bin/bash"),
)
"""Arguments that models send to tools that run commands elsewhere, and that change nothing here."""

_IN_BACKGROUND: Final = re.compile(r"(run_?in|is)_?background", re.IGNORECASE)
_MILLISECONDS: Final = ("timeout_ms", "yield_time_ms")
# Some tools elsewhere take milliseconds under the same name. Nobody waits for three hours.
_LEAST_MILLISECONDS: Final = 10_000


def read_seconds(arguments: Arguments) -> None:
    """Put `timeout` in seconds in the place of one in milliseconds."""
    for name in _MILLISECONDS:
        value = arguments.get(name)
        if isinstance(value, int | float) and "timeout" not in arguments:
            del arguments[name]
            arguments["timeout"] = value / 1000
            return
    value = arguments.get("timeout")
    if isinstance(value, int | float) and value >= _LEAST_MILLISECONDS:
        arguments["timeout"] = value / 1000


def refuse_background(arguments: Arguments, instead: str) -> None:
    """Refuse a call that is to go on in the background.

    Raises:
        ToolError: it says what to do instead.
    """
    for name, value in arguments.items():
        if _IN_BACKGROUND.fullmatch(name) and str(value).lower() == "true":
            raise ToolError(f"`{name}` is not an argument of this tool, so the command was not run. {instead}")


async def named_secrets(text: str, secrets: ToolSecrets) -> dict[str, str]:
    """Return the secrets whose names occur in a text as words.

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


# It needs /proc.
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
    """Describe the processes that have this variable: an empty text for none, None where that cannot be found out."""
    found = await workspace.run(_SCRIPT % shlex.quote(f"{name}={mark}"))
    if found.exit_code != 0:
        return None
    return ", ".join(found.stdout.splitlines())


async def kept_output(ctx: ToolContext, name: str) -> str | None:
    """Return the path of an output that was kept of this action, if it was."""
    path = f"{await ctx.workspace.private_folder(ctx.conversation_id)}/{ctx.action_id}-{name}.txt"
    return None if await ctx.workspace.stat(path) is None else path
