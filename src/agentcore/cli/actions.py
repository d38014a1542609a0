"""How a call of a tool is said: in the live view, when a person is asked, and when a log is read."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from typing import Any, cast

from pydantic import JsonValue
from rich.text import Text

from agentcore.cli.console import BAD, DIM, NAME, STRONG, styled
from agentcore.cli.diff import changes
from agentcore.cli.file_calls import say_file_call
from agentcore.cli.printable import one_line, printable
from agentcore.cli.said import Said, added, inside, lines, with_arguments
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
            return _say_command(title, shlex.join(map(str, words)), rest, longest)
        case "file_editor", {"command": str() as command, "path": str() as path, **rest}:
            return _say_edit(title, command, inside(path, root), rest, longest)
        case "think", {"thought": str() as thought}:
            return Said(title, lines(thought, DIM))
        case "finish", {"message": str() as message}:
            return Said(title, lines(message))
        case _:
            said = say_file_call(title, event.tool_name, given, root, longest)
            return said or Said(with_arguments(title, given, longest))


def _say_command(title: Text, command: str, rest: Mapping[str, Any], longest: int) -> Said:
    first, *more = printable(command).split("\n")
    if rest.get("is_input"):
        title.append(" types ", DIM)
    elif command or rest.get("reset"):
        title.append(" $ ", DIM)
    else:
        title.append(" waits on", DIM)
    said = {name: value for name, value in rest.items() if name != "is_input" and value is not False}
    return Said(with_arguments(title.append(first, STRONG), said, longest, DIM), [Text(line, STRONG) for line in more])


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
    return Said(with_arguments(title, more, longest, DIM), body)
