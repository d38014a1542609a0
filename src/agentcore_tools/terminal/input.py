"""A model's input before it is typed: argument names, keys, and commands that cannot be meant."""

from __future__ import annotations

import ast
import json
import re
import shlex
from contextlib import suppress
from typing import Final, cast

from anyio import to_thread

from agentcore.errors import ToolError
from agentcore.tools import Aliases, Arguments
from agentcore_tools._calls import rename
from agentcore_tools._commands import read_seconds, refuse_background

_OTHER_NAMES: Final = {
    "cmd": "command",
    "code": "command",
    "script": "command",
    "shell_command": "command",
    "input": "command",
    "text": "command",
    "restart": "reset",
    "cwd": "workdir",
    "working_directory": "workdir",
    "working_dir": "workdir",
    "press_enter": "enter",
    "submit": "enter",
    "timeout_seconds": "timeout",
    "timeout_sec": "timeout",
}


def normalize(arguments: Arguments) -> Arguments:
    """Rename the arguments, join a list of words into a line, and go to the folder that was named."""
    refuse_background(arguments, "Start it with ` &` behind it and its output in a file, or in a session of its own.")
    renamed = rename(arguments, _OTHER_NAMES)
    read_seconds(renamed)
    command = renamed.get("command")
    if isinstance(command, list) and command and all(isinstance(word, str) for word in command):
        renamed["command"] = _line(cast("list[str]", command))
    if "command" not in renamed and renamed.get("reset"):
        renamed["command"] = ""
    command, folder = renamed.get("command"), renamed.get("workdir")
    if isinstance(command, str) and isinstance(folder, str):
        del renamed["workdir"]
        if folder not in {"", "."}:
            renamed["command"] = f"cd -- {shlex.quote(folder)} && {{\n{command}\n}}"
    return renamed


def _local_shell(arguments: Arguments) -> Arguments:
    """Read a call of OpenAI's `local_shell`, which has all in one argument."""
    action = arguments.get("action")
    if not isinstance(action, dict):
        return arguments
    return {name: value for name, value in action.items() if name not in {"type", "user"} and value not in (None, {})}


def _write_stdin(arguments: Arguments) -> Arguments:
    """Read a call of Codex's `write_stdin`, which types characters as they are."""
    text = arguments.get("chars")
    rest = {name: value for name, value in arguments.items() if name not in {"chars", "session_id"}}
    return {**rest, "command": text, "is_input": True, "enter": False} if text else {**rest, "command": ""}


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


ALIASES: Final[Aliases] = (
    "bash",
    "shell",
    "command",
    "execute",
    "execute_bash",
    "execute_command",
    "run_command",
    "run_shell_command",
    "exec_command",
    ("local_shell", _local_shell),
    ("write_stdin", _write_stdin),
    ("git", _git),
    ("grep", _grep),
    ("reset", lambda arguments: {"command": "", **arguments, "reset": True}),
)


KEYS: Final = {
    "ENTER": b"\r",
    "TAB": b"\t",
    "ESC": b"\x1b",
    "BS": b"\x7f",
    "UP": b"\x1b[A",
    "DOWN": b"\x1b[B",
    "RIGHT": b"\x1b[C",
    "LEFT": b"\x1b[D",
    "HOME": b"\x1b[H",
    "END": b"\x1b[F",
    "PGUP": b"\x1b[5~",
    "PGDN": b"\x1b[6~",
}
"""The bytes that a terminal sends for the keys that have a name."""

KEY_WORDS: Final = frozenset({"TAB", "UP", "DOWN", "LEFT", "RIGHT", "HOME", "END"})
"""The keys whose names a program may ask for as words."""

_WITH_CONTROL: Final = re.compile(r"(?:C-|c-|\^|Ctrl-|Ctrl\+|ctrl-|ctrl\+)([A-Za-z\\\]\[^_])")


def key_name(text: str) -> str | None:
    """Return the name of a key as a keyboard has it ("Ctrl-C", "UP"); None of text."""
    text = text.strip()
    if (control := _WITH_CONTROL.fullmatch(text)) is not None:
        return f"Ctrl-{control[1].upper()}"
    return text if text in KEYS else None


def typed(text: str, enter: bool | None = None) -> bytes:
    """Return the bytes for a key (`C-c`, `UP`), or for text followed by Enter. With `enter` given, it is text."""
    if enter is not None:
        return text.replace("\n", "\r").encode(errors="replace") + (b"\r" if enter else b"")
    if (key := KEYS.get(text.strip())) is not None:
        return key
    if (control := _WITH_CONTROL.fullmatch(text.strip())) is not None:
        return bytes([ord(control[1].upper()) & 0x1F])
    # Enter sends a carriage return; the terminal makes a line end of it where a program reads lines.
    return text.removesuffix("\n").replace("\n", "\r").encode(errors="replace") + b"\r"


_LINE_EDITOR: Final = re.compile(r"\s*set[ \t]+-o[ \t]+(?:vi|emacs)[ \t]*(?:[;&|\n]|\Z)")
_EXIT: Final = re.compile(r"(?:^|[;&|\n{]|\b(?:then|do|else))[ \t]*(?:exit|logout)(?![\w./=-])")
_ERREXIT: Final = re.compile(r"\bset[ \t]+(?:-[a-zA-Z]*e[a-zA-Z]*|-[a-zA-Z]*o[ \t]+errexit)\b")


def asks_to_exit(command: str) -> bool:
    """Return whether a command that ended its shell was to end it."""
    return _EXIT.search(command) is not None


def sets_errexit(command: str) -> bool:
    """Return whether a command has `set -e` in it."""
    return _ERREXIT.search(command) is not None


_BETWEEN: Final = re.compile(r"[\n;&]")
# For some texts the parser takes time that grows with the square of their length: for one of this length, a tenth of a second.
_LONGEST: Final = 10_000


def refuse(command: str) -> None:
    """Refuse what can't have been meant as a command."""
    if "\0" in command:
        raise ToolError("There is a NUL character in the command, and bash can't take one. For printf, write \\0.")
    if _LINE_EDITOR.match(command) is not None:
        raise ToolError(
            "No person edits lines in this shell, and `set -o vi` or `set -o emacs` can crash bash. Leave that command out."
        )
    for read in (json.loads, ast.literal_eval):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            if isinstance(read(command.strip()), list | dict):
                raise ToolError(
                    "The command is a list or an object, and bash would not understand it. Write one line of text, as you "
                    "would type it."
                )


async def count(command: str) -> int:
    """Count the commands that stand one behind the other, on lines of their own or after `;` or `&`: the last gives the exit code.

    A loop, a function, a pipeline, a list with `&&` and `||`, and a here-document with what reads it are one each. What is very long, or
    no bash to the parser (tree-sitter's grammar of it), counts as one.
    """
    command = command.strip()
    if len(command) > _LONGEST or _BETWEEN.search(command) is None:
        return 1
    return await to_thread.run_sync(_count, command)


def _count(command: str) -> int:
    # Few commands are several, and what parses them takes longer to load than they to run.
    import tree_sitter_bash  # noqa: PLC0415
    from tree_sitter import Language, Parser  # noqa: PLC0415

    program = Parser(Language(tree_sitter_bash.language())).parse(command.encode(errors="replace")).root_node
    if program.has_error:
        return 1
    return max(1, sum(child.is_named and child.type != "comment" for child in program.children))
