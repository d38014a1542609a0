"""How a call of a tool is said: in the live view, when a person is asked, and when a log is read."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any, cast

from pydantic import JsonValue
from rich.text import Text

from agentcore.cli.console import BAD, DIM, NAME, STRONG, styled
from agentcore.cli.diff import changes
from agentcore.cli.file_calls import say_file_call
from agentcore.cli.printable import one_line, printable
from agentcore.cli.said import Said, added, inside, lines, named, with_arguments
from agentcore.events import ActionEvent

__all__ = ["say_call"]

_LONGEST_VALUE = 200
_NO_END = 1 << 62


def say_call(
    event: ActionEvent,
    arguments: Mapping[str, JsonValue] | None = None,
    *,
    root: str | None = None,
    whole: bool = False,
) -> Said:
    """Say a call: the tools that everybody has in their own way, any other by its arguments.

    Args:
        event: The action.
        arguments: What it is called with, where a person changed that.
        root: The workspace's folder: paths in it are said without it.
        whole: Whether to say all of a long value. Who decides about a call has to see all of it.
    """
    title = styled(one_line(event.tool_name), NAME)
    if event.malformed is not None:
        return Said(title, lines(event.malformed, BAD))
    longest = _NO_END if whole else _LONGEST_VALUE
    given: dict[str, Any] = dict(event.arguments if arguments is None else arguments)
    match event.tool_name, given:
        case "terminal", {"command": str() as command, **rest}:
            return _say_command(title, command, rest, longest)
        case "run", {"command": str() as command, **rest}:
            return _say_command(title, command, rest, longest)
        case "run", {"command": list(), **rest}:
            words = cast("list[object]", given["command"])
            return _say_command(title, " ".join(_quoted(str(word)) for word in words), rest, longest)
        case "file_editor", {"command": str() as command, "path": str() as path, **rest}:
            return _say_edit(title, command, inside(path, root), rest, longest)
        case "think", {"thought": str() as thought}:
            return Said(title, lines(thought, DIM))
        case "finish", {"message": str() as message, **rest}:
            return Said(title, [*lines(message), *named(rest, longest)])
        case _:
            said = say_file_call(title, event.tool_name, given, root, longest)
            return said or Said(with_arguments(title, given, longest))


def _say_command(title: Text, command: str, rest: Mapping[str, Any], longest: int) -> Said:
    """Say a command as at a prompt; what else was asked stands before it, where it can't be taken for a part of it."""
    said = {name: value for name, value in rest.items() if name != "is_input" and value is not False}
    if not command and rest.get("reset"):
        del said["reset"]
    with_arguments(title, said, longest, DIM)
    first, *more = printable(command).split("\n")
    if rest.get("is_input"):
        key = _KEY.fullmatch(command.strip()) is not None
        title.append(" presses " if key else " types ", DIM)
        first = _CONTROL.sub(lambda match: f"Ctrl-{match[1].upper()}", first.strip()) if key else first
    elif command:
        title.append(" $ ", DIM)
    else:
        title.append(" starts a new shell" if rest.get("reset") else " waits on", DIM)
    return Said(title.append(first, STRONG), [Text(f"> {line}", STRONG) for line in more])


_CONTROL = re.compile(r"(?:C-|\^|Ctrl[-+])([A-Z\\\]\[^_])", re.IGNORECASE)
_KEY = re.compile(rf"(?-i:ENTER|TAB|ESC|BS|UP|DOWN|RIGHT|LEFT|HOME|END|PGUP|PGDN)|{_CONTROL.pattern}", re.IGNORECASE)


def _quoted(word: str) -> str:
    """Quote a word for a shell, with the quotation marks that can be read best."""
    if "'" in word and not set(word) & set('"$`\\!\n'):
        return f'"{word}"'
    return shlex.quote(word)


def _say_edit(title: Text, command: str, path: str, rest: dict[str, Any], longest: int) -> Said:
    title.append(f" {one_line(command)}", DIM).append(f" {one_line(path)}", STRONG)
    body: list[Text] = []
    match rest:
        case {"old_str": str() as old, **more}:
            new = more.pop("new_str", None)
            body = changes(old, new if isinstance(new, str) else "")
        case {"file_text": str() as text, **more}:
            body = added(text)
        case {"new_str": str() as text, **more}:
            body = added(text)
        case _:
            more = rest
    return Said(with_arguments(title.append(_where(more), DIM), more, longest, DIM), body)


def _where(rest: dict[str, Any]) -> str:
    """Say which lines it is about, and take that out of what is left to say."""
    match rest:
        case {"view_range": [int() as first, int() as last]}:
            del rest["view_range"]
            return f" from line {first}" if last == -1 else f" lines {first} to {last}"
        case {"insert_line": 0}:
            del rest["insert_line"]
            return " at the beginning"
        case {"insert_line": int() as line}:
            del rest["insert_line"]
            return f" after line {line}"
        case _:
            return ""
