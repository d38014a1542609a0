"""What models call the terminal, and how they write its arguments."""

from __future__ import annotations

import shlex
from typing import Final, cast

from agentcore.tools import Aliases, Arguments

__all__ = ["ALIASES", "normalize"]

_OTHER_NAMES: Final = {
    "cmd": "command",
    "code": "command",
    "script": "command",
    "shell_command": "command",
    "input": "command",
    "text": "command",
    "restart": "reset",
    "timeout_seconds": "timeout",
    "timeout_sec": "timeout",
}


def normalize(arguments: Arguments) -> Arguments:
    """Give the arguments their names, and make a line of a list of words."""
    renamed = {
        new if (new := _OTHER_NAMES.get(name, name)) not in arguments else name: value
        for name, value in arguments.items()
    }
    command = renamed.get("command")
    if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        renamed["command"] = _line(cast("list[str]", command))
    if "command" not in renamed and renamed.get("reset"):
        renamed["command"] = ""
    return renamed


def _line(words: list[str]) -> str:
    """Make a line of words, or give the line that a shell was to be called with."""
    if len(words) == 3 and words[0].rpartition("/")[2] in {"bash", "sh"} and words[1] in {"-c", "-lc"}:
        return words[2]
    return words[0] if len(words) == 1 else shlex.join(words)


def _git(arguments: Arguments) -> Arguments | None:
    """Read a call of a tool that would be git."""
    line = normalize(arguments).get("command", arguments.get("args"))
    if isinstance(line, list) and all(isinstance(word, str) for word in line):
        line = shlex.join(cast("list[str]", line))
    if not isinstance(line, str):
        return None
    return {"command": line if line.startswith("git ") else f"git {line}"}


def _grep(arguments: Arguments) -> Arguments | None:
    """Read a call of a tool that would search files."""
    pattern, path, include = (arguments.get(name) for name in ("pattern", "path", "include"))
    if not isinstance(pattern, str):
        return None
    words = ["grep", "-rnIE"]
    if isinstance(include, str):
        words.append(f"--include={include}")
    return {"command": shlex.join([*words, "-e", pattern, "--", path if isinstance(path, str) else "."])}


def _reset(arguments: Arguments) -> Arguments:
    return {"command": "", **arguments, "reset": True}


ALIASES: Final[Aliases] = (
    "bash",
    "shell",
    "command",
    "execute",
    "execute_bash",
    "execute_command",
    "run_command",
    "run_shell_command",
    ("git", _git),
    ("grep", _grep),
    ("reset", _reset),
)
